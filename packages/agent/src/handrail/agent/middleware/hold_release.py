"""The middleware that holds text back until it was judged."""

import inspect
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from handrail.agent.errors import BuildError, tell
from handrail.agent.kernel.middlewares import CallChat, Middleware
from handrail.agent.kernel.requests import ChatRequest
from handrail.agent.kernel.tokens import Token, TokenKind, TokenTransform
from handrail.agent.models import ChatResponse
from handrail.filters import Text, ToolCall
from handrail.filters.sensitivity import highest

By: TypeAlias = Literal["whole", "sentence", "window"]
Verdict: TypeAlias = bool | str
Judge: TypeAlias = Callable[[str], str | None]
"""What is said in a text's place; None where it may go out."""

_WAYS = ("whole", "sentence", "window")
# A sentence ends before a space, and a line before its break, so what follows is known where one ends.
_SENTENCE = re.compile(r"[.!?…][\"'”’»)\]]{0,3}(?=\s)|[。！？][」』]{0,3}(?=[^。！？」』])|(?<=\S)(?=\n)")
_LOOKBACK = 5
_LAST_SPACE = re.compile(r".*\s", re.DOTALL)


@dataclass(frozen=True)
class HoldRelease(Middleware):
    """Text goes out when `check(text)` has said so: True lets it, False puts `replacement` in its place, a text puts
    that there. After a piece that was not let out no more text of that answer follows.

    It is asked for the whole text at once, for each sentence, or for each `window` characters, cut between words. A
    check that raises, or gives none of the three, counts as no and is told as `check_failed`; what is not let out is
    told as `blocked`. With `answer` the answer is what was delivered, without calls, of finish reason
    `content_filtered`. Raises `BuildError` for what does not fit.
    """

    check: Callable[[str], Verdict]
    by: By = "whole"
    window: int = 200
    replacement: str = "[withheld]"
    answer: bool = False
    name: str = "HoldRelease"

    def __post_init__(self) -> None:
        if not callable(self.check) or inspect.iscoroutinefunction(self.check):
            raise BuildError(f"HoldRelease.check is a plain function of a text, not {self.check!r}")
        if self.by not in _WAYS:
            raise BuildError(f"HoldRelease.by is one of {', '.join(_WAYS)}, not {self.by!r}")
        if type(self.window) is not int or self.window < 1:
            raise BuildError(f"HoldRelease.window is a number of characters from 1, not {self.window!r}")
        if not isinstance(self.replacement, str):
            raise BuildError(f"HoldRelease.replacement is a text, not {self.replacement!r}")
        object.__setattr__(self, "serves_answer", self.answer)

    def init_state(self) -> dict[str, Any]:
        """Verdicts by the digest of their text: the stream and the answer are judged once."""
        return {"verdicts": {}}

    def token_transform(self, request: ChatRequest) -> TokenTransform:
        """Holds what is delivered."""
        return _Holding(self, self._judge(request))

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        """Replaces the answer, where it is asked to."""
        if not self.answer:
            return await call_next(request)
        request.state["verdicts"] = {}
        try:
            response = await call_next(request)
            return self._released(response, _Holding(self, self._judge(request)))
        finally:
            request.state["verdicts"] = {}

    def _released(self, response: ChatResponse, holding: "_Holding") -> ChatResponse:
        out: list[Token] = []
        for part in response.message.content:
            if isinstance(part, Text):
                out += holding.step(Token(part.text))
            elif isinstance(part, ToolCall):
                out += holding.pause()
        out += holding.flush()
        if not holding.blocked:
            return response
        label = highest(*[part.sensitivity for part in response.message.content])
        said = Text("".join([token.text for token in out]), sensitivity=label)
        return response.replace(message=response.message.replace(content=(said,)), finish_reason="content_filtered")

    def _judge(self, request: ChatRequest) -> Judge:
        verdicts: dict[str, str | None] = request.state["verdicts"] if self.answer else {}

        def judge(text: str) -> str | None:
            key = sha256(text.encode(errors="surrogatepass")).hexdigest()
            if key not in verdicts:
                verdicts[key] = self._asked(text, request)
            return verdicts[key]

        return judge

    def _asked(self, text: str, request: ChatRequest) -> str | None:
        try:
            verdict = self.check(text)
            problem = "" if isinstance(verdict, bool | str) else f"it gave {type(verdict).__name__}"
        except Exception as error:  # noqa: BLE001  # a gate that fails is closed
            verdict, problem = False, tell(error)["type"]
        if problem:
            request.run.note("check_failed", by=self.name, problem=problem)
        if verdict is True:
            return None
        request.run.note("blocked", by=self.name, where="output")
        return verdict if isinstance(verdict, str) else self.replacement


class _Holding(TokenTransform):
    """Text is held until a piece of it is whole, and goes out in the tokens it came in."""

    kinds: Sequence[TokenKind] = ("text", "arguments")

    def __init__(self, how: HoldRelease, judge: Judge) -> None:
        self.blocked = False
        self._how = how
        self._judge = judge
        self._held: deque[Token] = deque()
        self._text = ""
        self._looked = 0
        self._released = ""

    def step(self, token: Token) -> Sequence[Token]:
        if token.kind == "arguments":
            # An answer that is replaced keeps no calls.
            return () if self.blocked and self._how.answer else (token,)
        if self.blocked:
            return ()
        self._held.append(token)
        self._text += token.text
        return self._release(ended=False)

    def flush(self) -> Sequence[Token]:
        return self._release(ended=True)

    def _release(self, *, ended: bool) -> Sequence[Token]:
        out: list[Token] = []
        while self._text and not self.blocked and (end := self._end(ended)):
            piece, self._text, self._looked = self._text[:end], self._text[end:], 0
            instead = self._judge(self._released + piece if self._how.by == "whole" else piece)
            tokens = self._taken(end)
            if instead is None:
                out += tokens
                self._released += piece
            else:
                self.blocked = True
                out.append(tokens[-1].replace(instead))
        return out

    def _end(self, ended: bool) -> int:
        """Where the next piece ends; 0 where that is not known yet."""
        text, by, window = self._text, self._how.by, self._how.window
        if by == "sentence":
            found = _SENTENCE.search(text, max(self._looked - _LOOKBACK, 1))
            self._looked = len(text)
            if found is not None:
                return found.end()
        elif by == "window" and len(text) >= window:
            spaces = _LAST_SPACE.search(text, 0, window)
            return spaces.end() if spaces is not None else window
        return len(text) if ended else 0

    def _taken(self, end: int) -> list[Token]:
        tokens: list[Token] = []
        while end:
            token = self._held.popleft()
            if len(token.text) > end:
                self._held.appendleft(token.replace(token.text[end:]))
                token = token.replace(token.text[:end])
            tokens.append(token)
            end -= len(token.text)
        return tokens
