"""A run told to a person while it goes: the words of each agent, the tools it uses, and what crosses a boundary."""

from collections.abc import Mapping, Sequence

from handrail.agent import RunResult
from handrail.agent.events import (
    Discard,
    Event,
    HandoffEnd,
    LimitReached,
    LoopWarning,
    MessageDone,
    Recovered,
    Text,
    ToolEnd,
    ToolProgress,
    ToolStart,
)
from handrail.agent.reports import Crossing
from handrail.agent.streams import Stream
from handrail.cli.screens import aside, say, shortened
from handrail.filters import Message, Report, ToolCall
from handrail.filters.reports import crossed
from handrail.sessions.paths import is_top, name_of

_LISTED = 3
"""How many messages that stayed for one reason are shown one by one."""


class Voice:
    """Words as they stream, a line for each message."""

    def __init__(self, *, named: bool) -> None:
        self._named = named
        self._message = ""

    def speak(self, event: Text) -> None:
        """A piece of a message; before its first one, if that is wanted, who speaks."""
        if event.message_id != self._message:
            self.close()
            self._message = event.message_id
            if self._named:
                say(f"{margin(event.path)}{name_of(event.path)}> ", end="", style="bold cyan")
        say(event.text, end="")

    def speak_whole(self, event: MessageDone) -> None:
        """The words of a message that did not come in pieces."""
        if event.message.text and event.message.id != self._message:
            self.speak(Text(event.run_id, event.path, event.message.id, event.message.text))

    def close(self) -> None:
        """Ends the line that is being said, if one is."""
        if self._message:
            say()
        self._message = ""


class DeskTeller:
    """Tells a run in a conversation: everything, on standard output."""

    def __init__(self, run: Stream[RunResult]) -> None:
        self._run = run
        self._told = 0
        self._voice = Voice(named=True)

    def tell(self, event: Event) -> None:
        """One event, as it comes."""
        match event:
            case Text():
                self._voice.speak(event)
            case MessageDone():
                self._voice.speak_whole(event)
            case ToolStart():
                self._note(event.path, f"· {name_of(event.path)} uses {called(event.call)}")
            case ToolEnd() if event.result.is_error:
                self._note(event.path, f"· {event.call.name} failed: {shortened(event.result.text)}")
            case Recovered() | ToolProgress() | LoopWarning() | LimitReached():
                self._note(event.path, f"· {shortened(str(event), 200)}")
            case Discard():
                self._note(event.path, f"· what was said is withdrawn: {shortened(event.reason)}")
            case HandoffEnd():
                crossing = self._crossing(event)
                head, *lines = [str(event)] if crossing is None else crossing_lines(event, *_seen(crossing))
                self._note(event.path, head, style="bold magenta")
                for line in lines:
                    self._note(event.path, line)
            case _:
                pass

    def _crossing(self, event: HandoffEnd) -> Crossing | None:
        # Of sub-agents that are not heard there are crossings, and no events.
        ends = event.path, event.source, event.target, event.call_id
        for place, each in enumerate(self._run.handoffs[self._told :], self._told + 1):
            if (each.path, each.source, each.target, each.call_id) == ends:
                self._told = place
                return each
        return None

    def _note(self, path: str, text: str, style: str = "dim") -> None:
        self._voice.close()
        say(f"{margin(path)}  {text}", style=style)

    def close(self) -> None:
        """Ends the line that is being said, if one is."""
        self._voice.close()


class RunTeller:
    """Tells a run of any agent: its words on standard output, everything else on standard error."""

    def __init__(self) -> None:
        self._voice = Voice(named=False)

    def tell(self, event: Event) -> None:
        """One event, as it comes."""
        match event:
            case Text() if is_top(event.path):
                self._voice.speak(event)
            case MessageDone() if is_top(event.path):
                self._voice.speak_whole(event)
            case ToolStart() | ToolProgress() | HandoffEnd() | Discard() | Recovered():
                self._beside(str(event))
            case ToolEnd() if event.result.is_error:
                self._beside(f"[{event.path}] {event.call.name} failed: {shortened(event.result.text)}")
            case _:
                pass

    def _beside(self, text: str) -> None:
        self._voice.close()
        aside(shortened(text, 200))

    def close(self) -> None:
        """Ends the line that is being said, if one is."""
        self._voice.close()


def margin(path: str) -> str:
    """The space before what an agent does: a sub-agent's stands to the right of its caller's."""
    return "    " * path.count("/")


def called(call: ToolCall) -> str:
    """A tool call for a person to read."""
    try:
        arguments = call.parse()
    except ValueError:
        return f"{call.name}({shortened(call.arguments)})"
    if not isinstance(arguments, dict):
        return f"{call.name}({shortened(call.arguments)})"
    return f"{call.name}({', '.join(f'{name}={shortened(repr(value))}' for name, value in arguments.items())})"


def _seen(crossing: Crossing) -> tuple[str, Sequence[Message], Report]:
    reason = next((note.text for note in crossing.notes if note.label == "reason"), "")
    history = crossing.edge.messages
    # What the seal does besides is no choice of anybody's.
    return reason, history, crossing.filter.filter.explain(history)


def crossing_lines(event: HandoffEnd, reason: str, history: Sequence[Message], report: Report) -> list[str]:
    """What crossed a boundary and what stayed, and why, in lines. Messages that stayed for one reason are listed where
    they are few, and counted where they are many."""
    known = {message.id: message for message in history}
    why = f": {shortened(reason, 60)}" if reason else ""
    lines = [f"━━ {event.source} → {event.target}{why} ({_numbers(event, reason, known, report)}) ━━"]
    changed = {change.id: change.reason for change in report.changes if change.what == "changed"}
    for message in event.crossed:
        because = changed.get(message.id)
        lines.append(f"    crossed  {summed_up(message)}" + (f"  (changed: {because})" if because else ""))
    groups: dict[str, list[str]] = {}
    for change in report.changes:
        if change.id in known and change.what == "dropped":
            groups.setdefault(change.reason, []).append(change.id)
    order = {message.id: place for place, message in enumerate(history)}
    first = min([order[message.id] for message in event.crossed if message.id in order], default=len(order))
    for because, ids in groups.items():
        about = [summed_up(known[each]) for each in ids]
        if len(ids) > _LISTED:
            older = "older " if all([order[each] < first for each in ids]) else ""
            about = [f"{len(ids)} {older}messages"]
        lines += [f"    stayed   {each}  ({because})" for each in about]
    return lines


def _numbers(event: HandoffEnd, reason: str, known: Mapping[str, Message], report: Report) -> str:
    # What the boundary itself brought, a reason or what a sub-agent is asked, is no message of the history.
    over = event.crossed
    brought = ""
    if over and over[-1].id not in known and len(over) > report.messages_out:
        brought = f" (the {'reason' if over[-1].text == reason else 'input'})"
    return f"{crossed(tuple(known.values()), over)}{brought}"


def summed_up(message: Message, width: int = 60) -> str:
    """A message on one line: who, and the beginning of what."""
    words = [message.text, *[called(call) for call in message.tool_calls]]
    if message.role == "tool":
        words = [f"result of {message.name or message.call_id}"]
    return shortened(f"{message.agent or message.role}: {' '.join([word for word in words if word])}", width)
