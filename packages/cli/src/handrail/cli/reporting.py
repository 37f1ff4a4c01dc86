"""What the filter and the seal of a boundary did, in steps, for whoever looks at a transcript."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handrail.filters import Filter, Message, Note, Report
    from handrail.filters.messages import Messages


def full_report(
    filter: "Filter", history: "Messages", notes: "Sequence[Note]" = (), counter: str | None = None
) -> "Report":
    """What each step of the filter did, and after them what the seal did: the laws it restored, with the law, the
    reasoning it took out, and the notes that stand for a message. Steps of the seal that did nothing are left out.
    With a `counter` also how many tokens go into each step and come out."""
    from handrail.filters import Report, user
    from handrail.filters.reasoning import strip_reasoning
    from handrail.filters.repairs import restore
    from handrail.filters.reports import Change, StepReport, compare

    report = filter.explain(history, counter)
    after: Messages = history
    for step in filter.flat:
        after = step(after)
    lawful = restore(after, "drop")
    spoken = strip_reasoning()(lawful.messages)
    counts = tokens_of(after, counter), tokens_of(lawful.messages, counter)
    steps = [StepReport("repair", len(after), len(lawful.messages), lawful.changes, *counts)]
    steps.append(compare("strip_reasoning()", lawful.messages, spoken, strip_reasoning().reason, counter))
    if notes and not any([message.role == "user" for message in spoken]):
        added = [
            Change("added", len(spoken) + number, "", "user", f"the handoff's {note.label}, as no user message is left")
            for number, note in enumerate(notes)
        ]
        said = (*spoken, *[user(note.text) for note in notes])
        counts = tokens_of(spoken, counter), tokens_of(said, counter)
        steps.append(StepReport("notes", len(spoken), len(said), tuple(added), *counts))
    return Report((*report.steps, *[step for step in steps if step.changes]))


def tokens_of(messages: "Messages", counter: str | None) -> int | None:
    """How many tokens messages take; None without a counter."""
    from handrail.filters.tokens import total

    return total(messages, counter) if counter is not None else None


def counted(count: int, noun: str) -> str:
    """A number of things: `1 message`, `2 messages`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def shown(message: "Message", *, full: bool = True) -> str:
    """A message for a person to read, its id after who said it; a system prompt is cut short unless it is wanted in
    `full`."""
    from handrail.cli.screens import shortened
    from handrail.cli.telling import called

    who = {"tool": f"result of {message.name or message.call_id}", "system": "system"}.get(message.role, message.role)
    speaker = f" ({message.agent})" if message.agent and message.agent != message.role else ""
    text = message.text if full or message.role != "system" else shortened(message.text)
    lines = [text] if text else []
    lines += [f"-> {called(call)}" for call in message.tool_calls]
    others = [type(part).__name__.lower() for part in message.content]
    lines += [f"[{kind}]" for kind in others if kind not in ("text", "toolcall")]
    name = f" [{message.id}]" if message.id else ""
    return f"{who}{speaker}{name}: " + "\n  ".join("\n".join(lines).splitlines())
