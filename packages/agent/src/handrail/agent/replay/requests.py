"""A request as it was recorded beside the same request as it is now."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.agent.introducing import output_digest, spec_digest, told_settings
from handrail.agent.models import OutputSchema
from handrail.agent.replay.differences import Difference, like, of_mappings, of_messages, of_tools
from handrail.filters import History, digest
from handrail.filters.messages import Messages
from handrail.sessions import AgentRecord

if TYPE_CHECKING:
    from handrail.agent.kernel.requests import ChatRequest
    from handrail.agent.replay.recorded import RecordedCall, RecordedRun
    from handrail.agent.turns import TurnState

_NONE = AgentRecord(name="")


class Comparing:
    """Compares the requests of one run with those that were recorded; `lacks` says what the record does not tell."""

    def __init__(self, run: "RecordedRun") -> None:
        self.run = run
        self.by_id = run.prefix is not None
        self.lacks: dict[str, None] = {}
        self._plain: dict[str, bool] = {}
        self._known: dict[str, tuple[History, History]] = {}

    def differences(self, call: "RecordedCall", turn: "TurnState", request: "ChatRequest") -> tuple[Difference, ...]:
        """What of a request is not as it was."""
        found: list[Difference] = []
        if request.purpose == "answer" and not self._is_asked_alike(call, turn, request):
            found += self._asked(call, turn, request)
        if call.record.model != request.model.name:
            found.append(Difference("model", call.record.model, request.model.name))
        return (*found, *self._messages(call, turn, request))

    def _is_asked_alike(self, call: "RecordedCall", turn: "TurnState", request: "ChatRequest") -> bool:
        record, bound = call.record, turn.bound
        plain = not record.instructions and record.tools is None and record.settings is None and record.output is None
        same = request.instructions is turn.instructions and request.tools is bound.specs
        own = bound.output.schema if bound.output is not None else None
        if not plain or not same or request.settings is not bound.settings or request.output is not own:
            return False
        known = self._plain.get(bound.name)
        if known is None:
            known = self._plain[bound.name] = not any(True for _ in self._asked(call, turn, request))
        return known

    def _asked(self, call: "RecordedCall", turn: "TurnState", request: "ChatRequest") -> Iterator[Difference]:
        record, agent = call.record, self.run.agents.get(turn.bound.name, _NONE)
        yield from _of_instructions(self._instructions(call, agent), request.instructions)
        now = {spec.name: spec_digest(spec) for spec in request.tools}
        known = agent.specs
        if known is None:
            self.lacks["descriptions and schemas of tools"] = None
            answers = agent.output.get("tools", ())
            known = {name: now.get(name, "") for name in (*agent.tools, *answers, *agent.handoffs)}
        offered = record.tools
        then = known if offered is None else {name: each or known.get(name, "") for name, each in offered.items()}
        yield from of_tools(then, now)
        settings = record.settings if record.settings is not None else agent.settings
        if settings is None:
            self.lacks["settings of models"] = None
        else:
            yield from of_mappings("setting", _told(settings), _told(told_settings(request.settings)))
        output = turn.bound.introduction().output
        if agent.output and "schema" not in agent.output:
            output = {name: value for name, value in output.items() if name != "schema"}
        yield from of_mappings("output", _told(agent.output), _told(output))
        own = turn.bound.output.schema if turn.bound.output is not None else None
        yield from _of_outputs(call.record.output, request.output, own)

    def _instructions(self, call: "RecordedCall", agent: AgentRecord) -> dict[str, str]:
        names = agent.blocks or ("agent", *[f"block {place}" for place in range(2, len(agent.instructions) + 1)])
        then = dict(zip(names, agent.instructions, strict=False))
        if words := self.run.given.get("instructions"):
            then["run"] = words
        changed = call.record.instructions
        said = {name: text for name, text in changed.items() if text is not None}
        then = {name: text for name, text in (then | said).items() if changed.get(name, text) is not None}
        # Where all are told, they are told in their order.
        return said if said.keys() == then.keys() else then

    def _messages(self, call: "RecordedCall", turn: "TurnState", request: "ChatRequest") -> Iterator[Difference]:
        sent, view, changed = request.messages, turn.history, call.record.request
        if request.purpose == "answer" and not changed:
            if not self._is_alike(turn.path, call.messages, sent):
                yield from of_messages(call.messages, sent, by_id=self.by_id)
            return
        if not self.by_id:
            self.lacks["requests that a hook had changed, in runs with ids of the application's own"] = None
            return
        if digest(sent) == changed:
            return
        viewed = list(of_messages(call.messages, view)) if request.purpose == "answer" else []
        yield from viewed
        if not viewed:
            # Of what a hook made the record holds the digest alone; what it makes now can be shown.
            yield Difference("messages that a hook changed", f"digest {changed}", f"digest {digest(sent)}")
            yield from of_messages(view if request.purpose == "answer" else (), sent)

    def _is_alike(self, path: str, then: History, now: Messages) -> bool:
        """The same as `alike`, of a view that mostly goes on from one that was looked at."""
        if not isinstance(now, History) or len(then) != len(now):
            return self.alike(then, now)
        known = self._known.get(path)
        start = 0
        if known is not None and then.goes_on_from(known[0]) and now.goes_on_from(known[1]):
            start = len(known[0])
        places = range(start, len(then))
        same = all([like(a, b, self.by_id) for a, b in zip(then.pick(places), now.pick(places), strict=True)])
        if same:
            self._known[path] = then, now
        return same

    def alike(self, then: Messages, now: Messages) -> bool:
        """Whether these are the same messages."""
        if len(then) != len(now):
            return False
        if not self.by_id:
            return all([like(a, b, by_id=False) for a, b in zip(then, now, strict=True)])
        return digest_of(then) == digest_of(now)


def digest_of(messages: Messages) -> str:
    """The digest of messages, kept up where they are a history."""
    return messages.digest if isinstance(messages, History) else digest(messages)


def _of_instructions(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Difference]:
    yield from of_mappings("instructions", then, now)
    if then.keys() == now.keys() and list(then) != list(now):
        yield Difference("the order of the instructions", "\n".join(then), "\n".join(now))


def _of_outputs(then: str | None, now: OutputSchema | None, own: OutputSchema | None) -> Iterator[Difference]:
    # What the agent itself asks for was compared as such.
    as_now = None if now is own or now == own else output_digest(now)
    if then != as_now:
        sides = ["its own" if each is None else f"digest {each}" if each else "" for each in (then, as_now)]
        yield Difference("the schema of the answer", *sides)


def _told(values: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode() for name, value in values.items()
    }
