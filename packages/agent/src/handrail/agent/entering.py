"""What a run is given: messages that are fit to be answered, each with an id, and a view that is lawful before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from handrail.agent.errors import InvalidInput
from handrail.filters import History, Message, Text, View, user
from handrail.filters.messages import Messages, id_given_twice, is_empty
from handrail.filters.repairs import lawful, restore

if TYPE_CHECKING:
    from handrail.agent.runs import Run
    from handrail.agent.scopes import Scope

Input: TypeAlias = str | Message | Sequence[Message]


def entering(run: Run, scope: Scope, path: str, input: Input) -> Messages:
    """The messages that a run adds to its first agent's view, each with an id, the view made lawful before them."""
    for other, held in list(scope.views.items()) if scope.views else ():
        if held.rejected and run.log.on:
            _leave_rejected(run, scope, other, held)
        elif not lawful(held.history):
            # A crash may have cut off any agent's turn, and any of them may be handed the conversation.
            fixed = History([_named(run, scope, message) for message in restore(held.history, "answer").messages])
            run.log.edit(other, held.history, fixed, "the transcript laws, when the conversation went on")
            scope.views[other] = View(fixed, held.removed)
    if isinstance(input, str) and input:
        run.fresh = True
        return (Message("user", (Text(input),), scope.ids.next(), created_at=run.clock()),)
    messages = _messages(input)
    run.fresh = len(messages) == 1 and not messages[0].id
    if not isinstance(messages, History) or run.log.on:
        _refuse_twice(messages, scope.views.get(path))
    if not lawful(messages):
        messages = restore(messages, "answer").messages
    if not isinstance(messages, History) or messages.survey().unnamed_at is not None:
        messages = History([_named(run, scope, message) for message in messages])
    _refuse_silence(messages if len(messages) else scope.views.get(path, View(History())).history)
    return messages


def _leave_rejected(run: Run, scope: Scope, path: str, view: View) -> None:
    # A crash cut off the turn at whose end they would have left.
    kept = restore([message for message in view.history if message.id not in view.rejected], "answer").messages
    after = History([_named(run, scope, message) for message in kept])
    run.log.edit(path, view.history, after, "rejected answers of a turn that was cut off")
    scope.views[path] = View(after, view.removed | view.rejected)


def _messages(input: Input) -> Messages:
    if isinstance(input, History):
        return input
    messages = (user(input),) if isinstance(input, str) else (input,) if isinstance(input, Message) else input
    if not isinstance(messages, list | tuple):
        raise InvalidInput(f"the input of a run is text, a message, or messages, not {type(input).__name__}")
    if (other := next((each for each in messages if type(each) is not Message), None)) is not None:
        kind = type(other).__name__
        raise InvalidInput(
            f"the input of a run is text, a message, or messages such as user('…'), not {kind} among them"
        )
    if any([message.role == "user" and is_empty(message) for message in messages]):
        raise InvalidInput("the input of a run has an empty user message, which no model can answer")
    return messages


def _refuse_twice(messages: Messages, view: View | None) -> None:
    # A message that the view holds already may be given again as it is; other words under its id would be lost.
    if (twice := id_given_twice(messages)) is not None:
        raise InvalidInput(f"the input of a run gives the message id {twice!r} twice")
    if view is None:
        return
    for message in messages:
        place = view.history.position(message.id) if message.id else None
        if place is not None and view.history[place].digest != message.digest:
            raise InvalidInput(f"the conversation holds another message with the id {message.id!r}; leave the id empty")


def _refuse_silence(messages: Messages) -> None:
    if (not messages or messages[-1].role == "system") and all([message.role == "system" for message in messages]):
        raise InvalidInput("there is nothing to answer: the run was given no message but system messages")


def _named(run: Run, scope: Scope, message: Message) -> Message:
    if message.id:
        return message
    return msgspec.structs.replace(message, id=scope.ids.next(), created_at=message.created_at or run.clock())
