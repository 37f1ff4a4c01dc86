"""The middleware that puts redaction tokens in the place of secrets, in what is delivered and in the answer itself."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from handrail.agent.errors import BuildError
from handrail.agent.json_arrivals import JsonArrival, redacted_json
from handrail.agent.kernel.middlewares import CallChat, Middleware
from handrail.agent.kernel.requests import ChatRequest
from handrail.agent.kernel.tokens import KINDS, Token, TokenKind, TokenTransform
from handrail.agent.models import ChatResponse
from handrail.filters import Message, Opaque, Part, Reasoning, Text, ToolCall
from handrail.filters.arrivals import Arrivals
from handrail.filters.catalogue.redact import redact
from handrail.filters.errors import InvalidFilter
from handrail.filters.redaction import Redactor
from handrail.filters.sensitivity import Tier
from handrail.filters.strings import rewrite_part

_arrivals = lru_cache(32)(Arrivals)


@dataclass(frozen=True)
class TokenRedact(Middleware):
    """What these patterns find is replaced, however the stream cuts it: text that could still become a match waits.

    Each of `patterns` is the name of a detector (`email`, `secrets`, `personal`, …) or else a regular expression. What
    is found becomes `[REDACTED:<tier>:<kind>]`, with `tier` and `kind` those of the finding where not given, or
    `replacement`. `applies_to` names what is looked at: `text`, `reasoning`, `arguments`; a call's arguments are held
    until they are whole, and stay JSON with the same keys, whatever these say. An answer in JSON (the whole text, or in
    its first plain or `json` fence) is held too, and redacted as what it says: its keys as well, which stay distinct.
    With `answer` the answer is redacted in the same way.

    `window`, in characters, is the longest match that is found of a pattern which does not say by itself how far it may
    still reach: see `docs/middleware/token_redact.md`. Raises `BuildError` for what does not fit.
    """

    patterns: str | Sequence[str]
    applies_to: TokenKind | Sequence[TokenKind] = ("text",)
    answer: bool = False
    window: int = 512
    replacement: str | None = None
    kind: str = ""
    tier: Tier | None = None
    name: str = "TokenRedact"
    _watch: Arrivals = field(init=False, repr=False, compare=False)
    _kinds: tuple[TokenKind, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        listed = isinstance(self.applies_to, Sequence | Set)
        kinds: tuple[TokenKind, ...] = ()
        if isinstance(self.applies_to, str):
            kinds = (self.applies_to,)
        elif listed:
            kinds = tuple(self.applies_to)
        if not kinds or (wrong := [kind for kind in kinds if kind not in KINDS]):
            found = repr(wrong[0]) if kinds else "nothing" if listed else repr(self.applies_to)
            raise BuildError(f"TokenRedact.applies_to names some of {', '.join(KINDS)}, not {found}")
        if type(self.answer) is not bool:
            raise BuildError(f"TokenRedact.answer is True or False, not {self.answer!r}")
        if not isinstance(self.patterns, str | Sequence | Set) or isinstance(self.patterns, bytes):
            raise BuildError(f"TokenRedact.patterns is a text or a list of texts, not {self.patterns!r}")
        if type(self.window) is not int or not 1 <= self.window <= 1_000_000:
            raise BuildError(f"TokenRedact.window is a number of characters from 1 to 1,000,000, not {self.window!r}")
        if self.replacement is not None and not isinstance(self.replacement, str):
            raise BuildError(f"TokenRedact.replacement is a text, not {self.replacement!r}")
        try:
            sought = redact(self.patterns, self.kind, self.tier)
        except (InvalidFilter, TypeError) as error:
            raise BuildError(f"TokenRedact: {error}") from error
        redactor = Redactor(sought.patterns, sought.detect, sought.named or None, sought.tier, self.replacement)
        object.__setattr__(self, "_watch", _arrivals(redactor, self.window))
        object.__setattr__(self, "_kinds", kinds)
        object.__setattr__(self, "serves_answer", self.answer)

    def token_transform(self, request: ChatRequest) -> TokenTransform:
        """Redacts what is delivered."""
        return _Redacting(self._watch, self._kinds)

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        """Redacts the answer, where it is asked to."""
        response = await call_next(request)
        if not self.answer:
            return response
        message = _redacted(response.message, self._watch, self._kinds)
        return response if message is response.message else response.replace(message=message)


class _Redacting(TokenTransform):
    """Words go on as soon as they are known, the arguments of a call when they are whole."""

    def __init__(self, watch: Arrivals, kinds: Sequence[TokenKind]) -> None:
        self.kinds = kinds
        self._redactor = watch.redactor
        self._words = {kind: JsonArrival(watch) for kind in kinds if kind != "arguments"}
        self._latest: dict[TokenKind, Token] = {}
        self._calls: dict[str, list[Token]] = {}

    def step(self, token: Token) -> Sequence[Token]:
        if token.kind == "arguments":
            self._calls.setdefault(token.call_id or token.name, []).append(token)
            return ()
        self._latest[token.kind] = token
        said = self._words[token.kind].add(token.text)
        return (token.replace(said),) if said else ()

    def pause(self) -> Sequence[Token]:
        # Calls may come side by side, a piece of each in turn: one that is not whole yet stays.
        whole = [call for call, held in self._calls.items() if _is_json(_text(held))]
        return [*self._rest(), *[self._arguments(call) for call in whole]]

    def flush(self) -> Sequence[Token]:
        return [*self._rest(), *[self._arguments(call) for call in list(self._calls)]]

    def _rest(self) -> list[Token]:
        rest = [(kind, words.flush()) for kind, words in self._words.items()]
        return [self._latest[kind].replace(said) for kind, said in rest if said]

    def _arguments(self, call: str) -> Token:
        held = self._calls.pop(call)
        return held[-1].replace(redacted_json(_text(held), self._redactor, keys=False))


def _text(held: Sequence[Token]) -> str:
    return "".join([token.text for token in held])


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True


def _redacted(message: Message, watch: Arrivals, kinds: Sequence[TokenKind]) -> Message:
    """The message as it would have been delivered; the same object where nothing is found."""
    parts = list(message.content)
    for kind in kinds:
        if kind != "arguments":
            _redact_words(parts, Text if kind == "text" else Reasoning, watch)
    for place, part in enumerate(parts):
        if not isinstance(part, Text | Reasoning) and _kind(part) in kinds:
            keys = _kind(part) != "arguments"
            parts[place] = rewrite_part(part, watch.redactor.text, watch.redactor.across, keys=keys)
    if all([new is old for new, old in zip(parts, message.content, strict=True)]):
        return message
    return message.replace(content=tuple(parts))


def _redact_words(parts: list[Part], kind: type[Text] | type[Reasoning], watch: Arrivals) -> None:
    # What is said in several parts is heard as one text, so what begins in one and ends in another is found too.
    words = {
        place: part for place, part in enumerate(parts) if isinstance(part, Text | Reasoning) and type(part) is kind
    }
    texts = [part.text for part in words.values()]
    whole = _whole("".join(texts), watch)
    if whole != "".join(texts):
        texts = [_whole(text, watch) for text in texts]
        if "".join(texts) != whole:
            texts = [whole, *[""] * (len(texts) - 1)]
    for (place, part), text in zip(words.items(), texts, strict=True):
        beside = {"extra": part.extra} if isinstance(part, Text) else {"data": part.data}
        changed = {field: redacted_json(value, watch.redactor) for field, value in beside.items() if value is not None}
        changed = {field: value for field, value in {"text": text, **changed}.items() if value != getattr(part, field)}
        if changed:
            parts[place] = msgspec.structs.replace(part, **changed)


def _whole(text: str, watch: Arrivals) -> str:
    arrival = JsonArrival(watch)
    return arrival.add(text) + arrival.flush()


def _kind(part: Part) -> TokenKind:
    if isinstance(part, Opaque) and part.family != "other":
        return "arguments" if part.family == "tool" else "reasoning"
    return "arguments" if isinstance(part, ToolCall) else "text"
