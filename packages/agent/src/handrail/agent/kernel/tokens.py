"""The token stream to the caller: what a middleware may do to each token on its way out."""

from collections.abc import Sequence
from typing import ClassVar, Literal, TypeAlias

import msgspec

TokenKind: TypeAlias = Literal["text", "reasoning", "arguments"]


class Token(msgspec.Struct, frozen=True, gc=False):
    """A piece of an answer on its way to who listens. `call_id` and `name` are set for a piece of a tool call's
    arguments; `path` is the agent path, `step` the model call it belongs to, from 1 in the turn."""

    text: str
    kind: TokenKind = "text"
    message_id: str = ""
    path: str = ""
    step: int = 0
    call_id: str = ""
    name: str = ""

    def replace(self, text: str) -> "Token":
        """The same token with another text."""
        return Token(text, self.kind, self.message_id, self.path, self.step, self.call_id, self.name)


class TokenTransform:
    """What is done to the tokens of one model call; each call gets a fresh one, so it may keep what it wants.

    `kinds` are the tokens it asks for; others pass it by. `step` gives what goes on in a token's place: nothing,
    itself, or several. `flush` gives what is still held: it is asked at a clean end, and before the first piece of a
    call's arguments; tokens may follow it.
    """

    kinds: ClassVar[Sequence[TokenKind]] = ("text",)

    def step(self, token: Token) -> Sequence[Token]:
        """What goes on in the token's place."""
        return (token,)

    def flush(self) -> Sequence[Token]:
        """What is still held, in order."""
        return ()


class Pipeline:
    """Transforms in a row: the first is nearest the model, the last nearest the caller."""

    __slots__ = ("_by_kind", "_transforms")

    def __init__(self, transforms: Sequence[TokenTransform]) -> None:
        self._transforms = tuple(transforms)
        kinds: tuple[TokenKind, ...] = ("text", "reasoning", "arguments")
        self._by_kind = {
            kind: tuple([transform for transform in self._transforms if kind in transform.kinds]) for kind in kinds
        }

    def step(self, token: Token) -> Sequence[Token]:
        """What reaches the caller now that this token came."""
        tokens: Sequence[Token] = (token,)
        for transform in self._by_kind[token.kind]:
            if len(tokens) == 1:
                tokens = transform.step(tokens[0])
            else:
                tokens = [out for each in tokens for out in transform.step(each)]
            if not tokens:
                break
        return tokens

    def flush(self) -> Sequence[Token]:
        """What was still held: each transform's rest passes the ones after it, then they give theirs."""
        out: list[Token] = []
        for place, transform in enumerate(self._transforms):
            rest: Sequence[Token] = transform.flush()
            for later in self._transforms[place + 1 :]:
                rest = [
                    made for token in rest for made in (later.step(token) if token.kind in later.kinds else (token,))
                ]
            out.extend(rest)
        return out
