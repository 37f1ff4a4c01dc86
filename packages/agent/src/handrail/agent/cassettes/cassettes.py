"""A cassette: model calls are recorded the first time, and answered from the recording after that."""

import os
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

import msgspec

from handrail.agent.cassettes.misses import Ask, not_asked_for, not_recorded
from handrail.agent.cassettes.questions import each_text, message_json, question, question_digest
from handrail.agent.cassettes.tapes import (
    Recording,
    WrittenDelta,
    read_deltas,
    read_tape,
    write_tape,
    written_deltas,
    written_error,
)
from handrail.agent.doors import real_calls_forbidden, stood_in
from handrail.agent.errors import CassetteError, ModelError, NotRecorded
from handrail.agent.http.hiding import hide
from handrail.agent.in_place import InPlaceOf
from handrail.agent.models import ArgumentsDelta, ChatResponse, Delta, Model, find_model
from handrail.agent.scripted import FunctionModel, pieces
from handrail.filters import Message
from handrail.sessions.paths import name_of

if TYPE_CHECKING:
    from handrail.agent.kernel.requests import ChatRequest

Mode: TypeAlias = Literal["none", "once", "all", "new"]
"""`none`: answers from the file alone, and forbids real calls. `once`: the same where there is a file, and records one
where there is none. `all`: records everything anew. `new`: answers what was recorded, and records what was not."""
Redact: TypeAlias = Callable[[str], str]

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD)S?(?![A-Z])")
_TELLING = 8
"""Characters from which on a value is hidden; shorter ones are words that any text may hold."""


class Cassette:
    """Model calls in a file. As a context manager it stands in for the models of every agent that is run in the block,
    but for those that answer in the process (`FunctionModel`, `ScriptedModel`); `model()` puts one of its own around
    any model.

        with Cassette("desk.jsonl") as cassette:
            desk.run_sync("I was charged twice.")

    Requests are matched by what they mean, in whatever order they come; equal ones are answered in the order in which
    they were recorded. At the end the file is written, unless the block failed. Where it only answers, a request that
    was not recorded raises `NotRecorded`, again at the end where that was swallowed, and a recording that nobody asked
    for raises `CassetteError`.

    `redact` is applied to every text before it is written, and to each request before it is compared. Values of
    environment variables that are called a key, token, secret or password are hidden beside that. Raises
    `CassetteError` for a file that cannot be read, and for a mode that there is not.
    """

    def __init__(self, path: str | os.PathLike[str], *, mode: Mode = "once", redact: Redact | None = None) -> None:
        self.path = Path(path)
        if mode not in ("none", "once", "all", "new"):
            raise CassetteError(str(path), f": the mode of a cassette is none, once, all or new, not {mode!r}")
        self.mode = mode
        self._redact = redact or (lambda text: text)
        self._secrets = _secrets()
        there = self.path.exists()
        self.answers_only = mode == "none" or (mode == "once" and there)
        self._recorded = read_tape(self.path) if there and mode != "all" else []
        self._left: dict[str, list[int]] = {}
        for place, each in reversed(list(enumerate(self._recorded))):
            self._left.setdefault(each.digest, []).append(place)
        self._asked = 0
        self._kept: dict[int, Recording] = {}
        self._missed: NotRecorded | None = None
        self._doors = ExitStack()

    def model(self, model: Model | str) -> "CassetteModel":
        """A model that is recorded and answered for by this cassette, in the place of this one."""
        return CassetteModel(self, find_model(model))

    def open(self) -> None:
        """Stands in for the models of all agents from now on; where it only answers, real calls are forbidden."""
        self._doors.enter_context(stood_in(self._stand_in))
        if self.answers_only:
            self._doors.enter_context(real_calls_forbidden(f"the cassette {self.path}, which only answers"))

    def close(self) -> None:
        """Stands in for nothing any more; nothing is written."""
        self._doors.close()

    def finish(self) -> None:
        """Checks that all was asked for, or writes the file. Raises `NotRecorded`, `CassetteError` or `OSError`."""
        if self._missed is not None:
            raise self._missed
        if self.answers_only:
            self._check_used_up()
        elif self._kept:
            write_tape(self.path, [self._kept[place] for place in sorted(self._kept)])
        elif self.mode == "all":
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if error is None:
            self.finish()

    def _stand_in(self, model: Model) -> Model:
        return model if isinstance(model, FunctionModel | CassetteModel) else CassetteModel(self, model)

    def find(self, name: str, request: "ChatRequest") -> tuple[int, Ask, Recording | None]:
        """The number of a request, the request as it is kept, and the recording that answers it; None where it is to
        be made and recorded. Raises `NotRecorded`."""
        ask = self._ask(name, request)
        number = self._asked
        self._asked += 1
        places = self._left.get(ask.digest)
        if places:
            found = self._recorded[places.pop()]
            self._kept[number] = found
            return number, ask, found
        if self.answers_only:
            missed = not_recorded(self.path, number, ask, self._recorded, self._waiting())
            self._missed = self._missed or missed
            raise missed
        return number, ask, None

    def keep(self, number: int, ask: Ask, response: ChatResponse, deltas: list[Delta] | None = None) -> None:
        """Records the answer to a request."""
        answer = self._hidden_message(response.message)
        told: list[WrittenDelta] = []
        if deltas is not None:
            same = answer == response.message and self._shows_nothing(deltas)
            told = written_deltas(deltas if same else pieces(answer))
        self._kept[number] = Recording(
            ask.path,
            ask.told,
            ask.digest,
            answer=answer,
            usage=response.usage,
            finish_reason=response.finish_reason,
            deltas=tuple(told),
        )

    def keep_error(self, number: int, ask: Ask, error: ModelError, deltas: Sequence[Delta] = ()) -> None:
        """Records that a request failed, and what had come until then, unless something in it is to be hidden."""
        written = written_error(error)
        told = {**each_text(written, self._hide), "type": written["type"]}
        heard = tuple(written_deltas(deltas)) if self._shows_nothing(deltas) else ()
        self._kept[number] = Recording(ask.path, ask.told, ask.digest, usage=error.spent, deltas=heard, error=told)

    def _ask(self, name: str, request: "ChatRequest") -> Ask:
        told = each_text(question(name, request), self._hide)
        path = str(getattr(request.run, "path", ""))
        names = "/".join([name_of(step) for step in path.split("/")])
        return Ask(names, told, question_digest(told))

    def _hide(self, text: str) -> str:
        for secret in self._secrets:
            text = hide(text, secret)
        hidden = self._redact(text)
        if not isinstance(hidden, str):
            raise CassetteError(str(self.path), f": redact gives a text, not {type(hidden).__name__}")
        return hidden

    def _hidden_message(self, message: Message) -> Message:
        return msgspec.convert(each_text(message_json(message), self._hide), Message)

    def _shows_nothing(self, deltas: Sequence[Delta]) -> bool:
        # What is to be hidden may come in several pieces, none of which shows it.
        words: dict[object, str] = {}
        for each in deltas:
            stream = each.index if isinstance(each, ArgumentsDelta) else type(each)
            words[stream] = words.get(stream, "") + each.text
        return all([self._hide(text) == text for text in words.values()])

    def _check_used_up(self) -> None:
        waiting = self._waiting()
        if waiting:
            unused = [self._recorded[place] for place in waiting]
            raise CassetteError(str(self.path), not_asked_for(unused, len(self._recorded)))

    def _waiting(self) -> list[int]:
        return sorted([place for places in self._left.values() for place in places])


class CassetteModel(InPlaceOf):
    """A model whose calls a cassette records, or answers."""

    def __init__(self, cassette: Cassette, inner: Model) -> None:
        super().__init__(inner)
        self._cassette = cassette

    async def complete(self, request: "ChatRequest") -> ChatResponse:
        """The recorded answer, or the model's, which is recorded. Raises `NotRecorded`, and what the model raises."""
        number, ask, found = self._cassette.find(self.name, request)
        if found is not None:
            return found.response()
        try:
            response = await self._model.complete(request)
        except ModelError as error:
            self._cassette.keep_error(number, ask, error)
            raise
        self._cassette.keep(number, ask, response)
        return response

    async def stream(self, request: "ChatRequest") -> AsyncGenerator[Delta | ChatResponse, None]:
        """The same in pieces: those that were recorded, or word by word what was recorded as a whole."""
        number, ask, found = self._cassette.find(self.name, request)
        if found is not None:
            whole = [] if found.answer is None else pieces(found.answer)
            for delta in read_deltas(found.deltas) or whole:
                yield delta
            yield found.response()
            return
        deltas: list[Delta] = []
        stream = self._model.stream(request)
        try:
            async for piece in stream:
                if isinstance(piece, ChatResponse):
                    self._cassette.keep(number, ask, piece, deltas)
                else:
                    deltas.append(piece)
                yield piece
        except ModelError as error:
            self._cassette.keep_error(number, ask, error, deltas)
            raise
        finally:
            await stream.aclose()

    async def aclose(self) -> None:
        """Closes the model that it stands for."""
        await self._model.aclose()

    def __repr__(self) -> str:
        return f"CassetteModel({self._model!r}, {str(self._cassette.path)!r})"


def _secrets() -> list[str]:
    named = [value for name, value in os.environ.items() if _SECRET_NAME.search(name.upper())]
    # Of a key of several lines each may be said alone, and of `Bearer abc` the second word tells it all.
    lines = [line.strip() for value in named for line in (value, *value.splitlines())]
    said = {each for line in lines for each in (line, line.rpartition(" ")[2]) if len(each) >= _TELLING}
    return sorted(said, key=lambda each: (-len(each), each))
