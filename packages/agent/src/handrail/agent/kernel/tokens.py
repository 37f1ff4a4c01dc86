"""The token stream to the caller: what a middleware may do to each token on its way out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias, get_args

import msgspec

from handrail.agent.errors import InvalidAnswer

TokenKind: TypeAlias = Literal["text", "reasoning", "arguments"]
KINDS: tuple[TokenKind, ...] = get_args(TokenKind)


class Token(msgspec.Struct, frozen=True, gc=False):
    """A piece of an answer on its way to who listens. `call_id` and `name` are set for a piece of a tool call's
    arguments; `path` is the agent path, `step` the model call it belongs to, from 1 in the turn.

    It is delivered as a piece of the answer it came from, whatever `message_id` a transform gives it.
    """

    text: str
    kind: TokenKind = "text"
    message_id: str = ""
    path: str = ""
    step: int = 0
    call_id: str = ""
    name: str = ""

    def replace(self, text: str) -> Token:
        """The same token with another text."""
        return Token(text, self.kind, self.message_id, self.path, self.step, self.call_id, self.name)


class TokenTransform:
    """What is done to the tokens of one model call; each call gets a fresh one, so it may keep what it wants.

    `kinds` are the tokens it asks for; others pass it by. `step` gives what goes on in a token's place: nothing,
    itself, or several, of other kinds too. What is still held is asked for by `flush` at a clean end, and by `pause`
    before the first piece of a call's arguments; after an error nothing is asked for.
    """

    kinds: Sequence[TokenKind] = ("text",)

    def step(self, token: Token) -> Sequence[Token]:
        """What goes on in the token's place."""
        return (token,)

    def pause(self) -> Sequence[Token]:
        """What of all that is held must not come after a call's arguments; more tokens may follow."""
        return self.flush()

    def flush(self) -> Sequence[Token]:
        """What is still held, in order."""
        return ()


class Pipeline:
    """Transforms in a row, each with the name of its layer: the first is nearest the model, the last the caller.

    Raises `InvalidAnswer` where a transform gives what are no tokens, and passes on what one raises; both name it.
    """

    __slots__ = ("_by_kind", "_layers")

    def __init__(self, named: Iterable[tuple[str, TokenTransform]]) -> None:
        self._layers = tuple([_Layer(name, transform) for name, transform in named])
        # A transform may change a token's kind, so all that come after the first which asks for it are asked.
        self._by_kind = {
            kind: next((self._layers[place:] for place, each in enumerate(self._layers) if kind in each.kinds), ())
            for kind in KINDS
        }

    def step(self, token: Token) -> Sequence[Token]:
        """What reaches the caller now that this token came."""
        tokens: Sequence[Token] = (token,)
        for layer in self._by_kind[token.kind]:
            if not tokens:
                break
            tokens = layer.step(tokens)
        return tokens

    def pause(self) -> Sequence[Token]:
        """What reaches the caller before the first piece of a call's arguments."""
        return self._cascade([layer.pause for layer in self._layers])

    def flush(self) -> Sequence[Token]:
        """What was still held: each transform's rest passes the ones after it, then they give theirs."""
        return self._cascade([layer.flush for layer in self._layers])

    def _cascade(self, held: Sequence[Callable[[], Sequence[Token]]]) -> Sequence[Token]:
        out: list[Token] = []
        for place, rest_of in enumerate(held):
            tokens = rest_of()
            for later in self._layers[place + 1 :]:
                tokens = later.step(tokens)
            out.extend(tokens)
        return out


class _Layer:
    """A transform, watched: what it gives are tokens, and what it raises names it."""

    __slots__ = ("_asked", "_name", "_transform", "kinds")

    def __init__(self, name: str, transform: TokenTransform) -> None:
        self._name = name
        self._transform = transform
        self._asked = transform.step
        self.kinds = frozenset(transform.kinds)

    def step(self, tokens: Sequence[Token]) -> Sequence[Token]:
        if len(tokens) == 1:
            return self._step(tokens[0]) if tokens[0].kind in self.kinds else tokens
        return [made for token in tokens for made in (self._step(token) if token.kind in self.kinds else (token,))]

    def pause(self) -> Sequence[Token]:
        return self._rest(self._transform.pause, "pause")

    def flush(self) -> Sequence[Token]:
        return self._rest(self._transform.flush, "flush")

    def _step(self, token: Token) -> Sequence[Token]:
        try:
            made = self._asked(token)
        except Exception as error:
            self._name_in(error, "step")
            raise
        # One that passes a token on as it is needs no second look.
        if type(made) is tuple and (not made or (len(made) == 1 and made[0] is token)):
            return made
        return self._checked(made, "step")

    def _rest(self, ask: Callable[[], Sequence[Token]], method: str) -> Sequence[Token]:
        try:
            made = ask()
        except Exception as error:
            self._name_in(error, method)
            raise
        return self._checked(made, method)

    def _name_in(self, error: Exception, method: str) -> None:
        error.add_note(f"raised by {self._name}.token_transform, in {method}()")

    def _checked(self, made: Sequence[Token], method: str) -> Sequence[Token]:
        if isinstance(made, (tuple, list)):  # a union takes longer
            for each in made:
                if type(each) is not Token or type(each.text) is not str or each.kind not in KINDS:
                    break
            else:
                return made
        where = f"the {method}() of {self._name}.token_transform"
        raise InvalidAnswer(f"{where} gives a tuple or list of Tokens, each with a text, not {made!r:.200}")
