"""A turn's view when it changes other than by what is said: edits by hooks, and the turn entered again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.agent.errors import InvalidAnswer, InvalidJump
from handrail.agent.events import Discard, MessageDone
from handrail.agent.kernel.edits import Append, Edit, as_edits, edited
from handrail.agent.kernel.jumps import Jump, Target
from handrail.agent.kernel.middlewares import Middleware, layer_name
from handrail.agent.kernel.requests import TurnRequest
from handrail.agent.kernel.states import MESSAGES
from handrail.agent.stating import write
from handrail.filters import History, Message
from handrail.filters.messages import Messages, id_given_twice, is_empty
from handrail.filters.repairs import lawful, restore
from handrail.sessions import MessageRecord, ViewRecord

if TYPE_CHECKING:
    from handrail.agent.turns import TurnState


def apply(turn: TurnState, layer: Middleware, hook: str, update: Any) -> Target | None:
    """Writes what a state hook returned, and gives where it jumps to, if it does.

    Raises `InvalidAnswer` for what is no update, `InvalidJump` for a jump that its layer does not declare, and what
    writing raises.
    """
    where = f"{layer_name(layer)}.{hook}"
    to: Target | None = None
    if isinstance(update, Jump):
        to, update = update.to, update.update
        if to not in (declared := layer.jumps.get(hook, ())):
            allowed = ", ".join(declared) or "nowhere"
            raise InvalidJump(f"{where} jumps to {to!r}, and declares (in jumps) that it may jump to: {allowed}")
    if not isinstance(update, Mapping):
        raise InvalidAnswer(
            f"{where} of {turn.bound.name} returned {type(update).__name__}, not None, values by channel, or a jump"
        )
    channels = {name: value for name, value in update.items() if name != MESSAGES}
    if channels:
        write(turn, channels, where)
    if MESSAGES in update:
        edits = as_edits(update[MESSAGES])
        if edits is None:
            raise InvalidAnswer(
                f"{where} of {turn.bound.name} gives messages that are neither messages to append nor made by "
                "append(), replace(), remove() or overwrite()"
            )
        for edit in edits:
            _edit(turn, edit, where, to)
    return to


def _edit(turn: TurnState, edit: Edit, where: str, to: Target | None) -> None:
    if type(edit) is Append and to != "tools" and _appended(turn, edit.messages, where):
        return
    try:
        messages = edited(turn.history, edit)
    except KeyError as error:
        raise InvalidAnswer(f"{where} edits the message {error.args[0]!r}, which the view does not hold") from None
    except ValueError as error:
        raise InvalidAnswer(f"{where} appends the message {error.args[0]!r}, which the view holds already") from None
    pending = turn.last_open()
    open_id = pending.id if pending is not None else None
    named = [message if message.id else turn.named(message) for message in messages]
    if to == "tools" and pending is None and named and named[-1].tool_calls:
        # The calls that the jump leads to are open, and stay so.
        open_id = named[-1].id
    before = turn.history
    rewrite(turn, named, where, open_id)
    if turn.emit is not None:
        _tell_edited(turn, before)


def _tell_edited(turn: TurnState, before: History) -> None:
    # Who listens heard the answers of this turn as they were said.
    for message in before:
        if message.role != "assistant" or turn.at_entry.position(message.id) is not None:
            continue
        place = turn.history.position(message.id)
        if place is None:
            turn.tell(Discard, message.id, "a hook took it out of the view")
        elif turn.history[place] != message:
            turn.tell(Discard, message.id, "a hook gave it other words")
            turn.tell(MessageDone, turn.history[place])
    for message in turn.history:
        if message.role == "assistant" and not message.tool_calls and before.position(message.id) is None:
            turn.tell(MessageDone, message)


def _appended(turn: TurnState, messages: Sequence[Message], where: str) -> bool:
    """Puts messages that talk at the end of a view that is whole, which needs no look at the rest of it."""
    view = turn.history
    plain = all([message.role in ("user", "assistant") and not message.tool_calls for message in messages])
    if not plain or turn.last_open() is not None or not lawful(view) or any([is_empty(each) for each in messages]):
        return False
    named = [message if message.id else turn.named(message) for message in messages]
    if id_given_twice(named) is not None or any([view.position(message.id) is not None for message in named]):
        return False
    previous = [view[-1].id if len(view) else "", *[message.id for message in named[:-1]]]
    after = view.extend(named)
    if turn.run.log.on and named:
        inserted = tuple(zip(previous, named, strict=True))
        turn.run.log.write(ViewRecord(path=turn.path, inserted=inserted, reason=where))
    _changed_into(turn, after)
    if turn.emit is not None:
        for message in named:
            if message.role == "assistant":
                turn.tell(MessageDone, message)
    return True


def rewrite(turn: TurnState, messages: list[Message], reason: str, open_id: str | None = None) -> None:
    """The view becomes these messages, made lawful; the message `open_id`, whose calls are being answered, stays as it
    is, at the end. Raises `InvalidAnswer` for an id given twice."""
    if (twice := id_given_twice(messages)) is not None:
        raise InvalidAnswer(
            f"a change of the view of {turn.bound.name} ({reason}) gives the message id {twice!r} twice"
        )
    pending = next((message for message in messages if message.id == open_id), None) if open_id else None
    if pending is not None:
        pending = turn.fitted(pending)
        messages = [message for message in messages if message.id != open_id]
    whole = restore(messages, "drop").messages
    after = whole if isinstance(whole, History) else History(whole)
    if pending is not None:
        after = after.append(pending)
    if pending is not None or (turn.answer is not None and turn.answer.tool_calls):
        turn.answer = pending
    elif turn.answer is not None:
        place = after.position(turn.answer.id)
        turn.answer = after[place] if place is not None else None
    _become(turn, after, reason)


def _become(turn: TurnState, after: History, reason: str) -> None:
    before = turn.history
    if len(before) == len(after) and all([a is b or a == b for a, b in zip(before, after, strict=True)]):
        return
    kept = {message.id for message in after}
    turn.removed |= {message.id for message in before if message.id not in kept}
    turn.run.log.edit(turn.path, before, after, reason)
    _changed_into(turn, after)


def _changed_into(turn: TurnState, after: History) -> None:
    turn.history = after
    turn.edited = True
    turn.labelled = 0
    if not turn.played:
        # What is new to the agent is given to the layers around its turn as a hook before it left it.
        turn.entered = tuple([message for message in after if turn.base.position(message.id) is None])


def enter(turn: TurnState, request: TurnRequest) -> None:
    """The view as an entry of the turn finds it: the first as it stands, a later one begun anew or gone on with.

    Raises `InvalidAnswer` where the turn may not be entered again.
    """
    if turn.passed is not None or turn.ended_as:
        ended = "it handed over" if turn.passed is not None else f"it ended as {turn.ended_as!r}"
        raise InvalidAnswer(f"a hook around the turn of {turn.bound.name} re-enters it after {ended}")
    if turn.acceptance is not None:
        turn.acceptance.begin()
    first = not turn.played
    turn.played = True
    if not first and turn.repeats is not None:
        turn.repeats.begin_anew()
    if first:
        if request.messages is not turn.entered or not request.load_history:
            _changed(turn, request, turn.history, "changed by a hook around the turn")
        turn.at_entry = turn.history
        return
    if request.load_history:
        _withdraw(turn)
        # What was asked for and not done in what leaves, goes with it.
        turn.requested = turn.writes = turn.wanted = None
        # What an outer layer put in front of the turn when it was first begun stands in the view already.
        given = {message.id for message in request.messages} - {message.id for message in turn.entered}
        standing = History([each for each in turn.at_entry if each.id not in given]) if given else turn.at_entry
        _changed(turn, request, standing, "the turn was begun again")
    elif (fresh := _beyond(turn.history, request.messages)) is not None:
        _go_on(turn, fresh, request.keep_attempts)
    else:
        _withdraw(turn)
        _changed(turn, request, turn.at_entry, "changed by a hook around the turn")


def _changed(turn: TurnState, request: TurnRequest, standing: History, reason: str) -> None:
    if request.load_history and request.messages is turn.entered:
        messages = list(standing)
    elif request.load_history:
        own = {message.id for message in turn.entered}
        messages = [message for message in standing if message.id not in own] + list(request.messages)
    else:
        messages = list(request.messages)
    named = [message if message.id else turn.named(message) for message in messages]
    if len(named) != len(turn.history) or any([a is not b for a, b in zip(named, turn.history, strict=True)]):
        pending = turn.last_open()
        rewrite(turn, named, reason, pending.id if pending is not None else None)


def _beyond(view: History, messages: Messages) -> list[Message] | None:
    # What stands after the whole view, where the messages go on from it; else they are another view.
    if len(messages) < len(view) or any([a.id != b.id for a, b in zip(view, messages, strict=False)]):
        return None
    return list(messages[len(view) :])


def _go_on(turn: TurnState, fresh: list[Message], keep: bool) -> None:
    """The answer was rejected: what says so enters view and log, and both leave the view when the turn ends."""
    if not fresh:
        return
    answer = turn.last_answer
    _withdraw(turn)
    said = [message if message.id else turn.named(message) for message in fresh]
    if (twice := id_given_twice([*turn.history, *said])) is not None:
        raise InvalidAnswer(f"a hook around the turn of {turn.bound.name} gives the message id {twice!r} twice")
    if (pending := turn.last_open()) is not None:
        # The turn is entered to have calls answered: what else is said stands before them.
        rewrite(turn, [*turn.history, *said], "changed by a hook around the turn", pending.id)
        return
    rejected = None if keep else answer.id if answer is not None else ""
    if not keep:
        turn.rejected += (*([answer.id] if answer is not None else []), *[message.id for message in said])
    turn.hear_feedback(said, rejected)


def _withdraw(turn: TurnState) -> None:
    if turn.emit is not None and turn.last_answer is not None:
        turn.tell(Discard, turn.last_answer.id, "the answer was rejected")


def feedback_record(turn: TurnState, message: Message, rejected: str | None) -> MessageRecord:
    """The record of what was said to an answer that was rejected; None where both are kept."""
    return MessageRecord(path=turn.path, message=message, rejects=rejected)


def leave_rejected(turn: TurnState) -> None:
    """At the turn's end: rejected answers and the feedback on them leave the view; the log keeps them."""
    gone = set(turn.rejected)
    if any([message.id in gone for message in turn.history]):
        kept = restore([message for message in turn.history if message.id not in gone], "drop").messages
        _become(turn, kept if isinstance(kept, History) else History(kept), "rejected answers and their feedback")
