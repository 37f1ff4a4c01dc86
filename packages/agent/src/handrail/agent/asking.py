"""Asking the model: one call through the chat chain, whole or heard as it comes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, get_args

import msgspec

from handrail.agent.delivering import check_response, heard, settle, withdraw
from handrail.agent.doors import met, stand_ins
from handrail.agent.errors import NOTHING_SPENT, BuildError, InvalidAnswer, ModelError, RunError
from handrail.agent.events import MessageDone
from handrail.agent.handing import is_enabled
from handrail.agent.handoffs import Handoff
from handrail.agent.kernel.blame import within, wrong_return
from handrail.agent.kernel.middlewares import Middleware, layer_name
from handrail.agent.kernel.requests import ChatRequest, Purpose
from handrail.agent.models import DEFAULT_SETTINGS, ChatResponse, Model, Settings, ToolSpec
from handrail.agent.spending import spent_on, tell_calls
from handrail.agent.tools import has_effects
from handrail.filters import Message, ToolCall, user
from handrail.filters.messages import Messages, Part, named
from handrail.filters.repairs import restore
from handrail.filters.sensitivity import highest
from handrail.sessions import SessionError

if TYPE_CHECKING:
    from handrail.agent.bounds import Bound
    from handrail.agent.loop import Turn
    from handrail.agent.turns import TurnState


async def ask(turn: Turn) -> None:
    """The model's next answer, as the chat chain accepts it, put into the view and kept as the turn's last."""
    bound, run = turn.bound, turn.run
    turn.drawn = ()
    request = ChatRequest(
        run=turn.context,
        instructions=turn.instructions,
        messages=turn.history,
        tools=bound.specs if not (bound.gated or turn.scope.read_only) else await offered(turn),
        model=bound.model,
        settings=bound.settings,
        output=bound.output.schema if bound.output is not None else None,
    )
    try:
        response = await bound.chat(request)
        if bound.chat is not ask_model and not (
            type(response) is ChatResponse
            and type(response.message) is Message
            and response.message.role == "assistant"
        ):
            _check_chain(bound, response)
    except BaseException:
        settle(turn, "", "no answer was accepted")
        if turn.unsettled:
            with contextlib.suppress(SessionError, OSError):
                tell_calls(turn, None)
        raise
    if turn.unsettled:
        tell_calls(turn, response.message)
    turn.finish_reason = response.finish_reason
    message = _accepted(turn, response.message)
    if turn.delivered:
        settle(turn, message.id, "another answer was accepted")
    turn.say(message)
    # A call's start mark takes along what led to it; tool layers may act on the world before it, so theirs is written.
    if run.log.on and (bound.around_tool or not message.content or type(message.content[-1]) is not ToolCall):
        run.log.write()
    if turn.emit is not None:
        turn.tell(MessageDone, message)
    turn.answer = turn.last_answer = message


async def ask_model(request: ChatRequest) -> ChatResponse:
    """The innermost layer: the model itself. Each attempt draws its own message id, is counted and recorded."""
    context, model = request.run, request.model
    turn: Turn = context.turn
    run = turn.run
    if stand_ins:
        model = met(model)
        request = request.replace(model=model)
    if turn.budget.metered:
        turn.budget.check_call(model.name)
    is_answer = request.purpose == "answer"
    if context.tries or not is_answer:
        # The step counts its first call; another one counts by itself.
        turn.budget.take_step()
    context.tries += 1
    context.arrived = None
    message_id = turn.scope.ids.next()
    if request.messages is not turn.history:
        request = request.replace(messages=_asked_about(turn, request.messages))
    if not is_answer or request.instructions is not turn.instructions:
        _check_words(turn, request)
    asked = request
    if request.output is not None:
        from handrail.agent.strategies import suited

        request = suited(request)
    if is_answer:
        turn.drawn += (message_id,)
        turn.shown = request.tools
    if run.world is not None:
        model = run.world.model(asked)
        request = request.replace(model=model)
    try:
        if turn.emit is not None and model.profile.streaming and is_answer:
            response = await heard(turn, request, message_id)
        else:
            response = await model.complete(request)
            check_response(response, model)
    except ModelError as error:
        spent_on(turn, asked, message_id, error.spent, "", f"{type(error).__name__}: {error}")
        withdraw(turn, (message_id,), "the model call failed")
        raise
    except asyncio.CancelledError:
        # Whoever cancelled it, the service was asked. The cancel matters more than a record that cannot be written.
        with contextlib.suppress(SessionError, OSError):
            spent_on(turn, asked, message_id, context.arrived or NOTHING_SPENT, "", "cancelled")
        withdraw(turn, (message_id,), "the model call did not end")
        raise
    except RunError:
        # It was not asked, or what it answered cannot be taken.
        if context.arrived is not None:
            spent_on(turn, asked, message_id, context.arrived, "", "no answer was taken")
        withdraw(turn, (message_id,), "the model call did not end")
        raise
    except Exception as error:
        spent_on(turn, asked, message_id, context.arrived or NOTHING_SPENT, "", type(error).__name__)
        withdraw(turn, (message_id,), "the model call did not end")
        raise
    message = named(response.message, message_id, turn.bound.name, run.clock())
    spent = spent_on(turn, asked, message_id, response.usage, response.finish_reason, None, response.message, message)
    return ChatResponse(message, spent, response.finish_reason)


def _asked_about(turn: Turn, messages: Sequence[Message]) -> Messages:
    # What a layer put in the view's place.
    if not isinstance(messages, Sequence) or not all([type(message) is Message for message in messages]):
        raise InvalidAnswer(f"a layer of {turn.bound.name} asks the model about what is not messages")
    lawful = restore(messages, "drop").messages
    if not lawful:
        raise InvalidAnswer(f"a layer of {turn.bound.name} leaves no message to ask the model about")
    return lawful


def _check_words(turn: Turn, request: ChatRequest) -> None:
    # What a layer put in the place of the agent's own.
    if request.purpose not in get_args(Purpose):
        found = f"for the purpose {request.purpose!r:.100}; one is {', '.join(get_args(Purpose))}"
    elif not isinstance(request.instructions, Mapping) or not all(
        [isinstance(word, str) for block in request.instructions.items() for word in block]
    ):
        found = "with instructions that are not texts by name"
    else:
        return
    raise InvalidAnswer(f"a layer of {turn.bound.name} asks the model {found}")


async def ask_once(turn: Turn, instructions: Mapping[str, str], settings: Settings | None) -> ChatResponse:
    """One model call outside the loop, through the chat chain."""
    bound = turn.bound
    turn.budget.take_step()
    turn.context.step += 1
    request = ChatRequest(
        run=turn.context,
        instructions={**bound.instructions, **instructions},
        messages=turn.history,
        tools=bound.specs,
        model=bound.model,
        settings=settings or bound.settings,
    )
    try:
        response = await bound.chat(request)
        _check_chain(bound, response)
    except BaseException:
        settle(turn, "", "no answer was accepted")
        raise
    if turn.delivered:
        settle(turn, response.message.id, "another answer was accepted")
    if turn.emit is not None:
        turn.tell(MessageDone, response.message)
    return response


_ASKING: ContextVar[tuple[Turn, frozenset[int]] | None] = ContextVar("asking", default=None)
"""Whose own calls are under way where this runs: the turn, and the places of the layers in it."""


async def ask_aside(
    turn: Turn,
    layer: Middleware,
    messages: str | Message | Sequence[Message],
    *,
    purpose: Purpose,
    instructions: str,
    model: Model | None,
    settings: Settings | None,
) -> ChatResponse:
    """A layer's own model call, through the chat chain without that layer. Raises `BuildError` for a layer that is not
    among the agent's, and for the purpose `answer`, which is the loop's."""
    bound, context = turn.bound, turn.context
    place = next((place for place, each in enumerate(bound.layers) if each is layer), None)
    if place is None:
        raise BuildError(f"{layer_name(layer)} is no layer of {bound.name}; a layer's own call names that layer")
    if purpose not in (asides := ("summary", "selection", "moderation")):
        raise BuildError(f"the purpose of a layer's own call is one of {', '.join(asides)}, not {purpose!r}")
    given = (
        (user(messages),) if isinstance(messages, str) else (messages,) if isinstance(messages, Message) else messages
    )
    request = ChatRequest(
        run=context.for_call(context.call_id),
        instructions={"layer": instructions} if instructions else {},
        messages=restore(given, "drop").messages,
        model=model or bound.model,
        settings=settings or DEFAULT_SETTINGS,
        purpose=purpose,
    )
    # Layers whose own calls are under way are left out, or two of them would ask each other without end. What is under
    # way belongs to whoever asks, not to the turn: others may ask beside it.
    asks = _ASKING.get()
    places = (asks[1] if asks is not None and asks[0] is turn else frozenset()) | {place}
    mark = _ASKING.set((turn, places))
    try:
        response = await bound.chat_without(places)(request)
    finally:
        _ASKING.reset(mark)
    _check_chain(bound, response)
    return response


def _check_chain(bound: Bound, response: object) -> None:
    if type(response) is not ChatResponse:
        raise InvalidAnswer(wrong_return(bound.layers, bound.name, "around_chat", response, "ChatResponse"))
    message = response.message
    if type(message) is not Message or message.role != "assistant":
        found = f"{type(message).__name__}, not an assistant's message"
        raise InvalidAnswer(within(bound.layers, bound.name, "around_chat", f"a ChatResponse with {found}"))


def fitted(turn: TurnState, message: Message) -> Message:
    """The message with calls that can be answered: each with an id of its own, and known as transfer or not."""
    if not message.tool_calls:
        return message
    return msgspec.structs.replace(message, content=_fit_calls(turn, message.content, turn.bound.handoffs))


def _accepted(turn: Turn, message: Message) -> Message:
    calls = message.tool_calls
    changes: dict[str, object] = {}
    # A hook may answer by itself, and may give again what it gave before: that is another message.
    if not message.id or (message.id not in turn.drawn and turn.history.position(message.id) is not None):
        changes = {"id": turn.scope.ids.next(), "agent": turn.bound.name, "created_at": turn.run.clock()}
    if turn.bound.agent.labels == "inherit":
        changes["sensitivity"] = highest(message.sensitivity, turn.label())
    if calls:
        handoffs = turn.bound.handoffs
        call = calls[0]
        if len(calls) > 1 or not call.id or call.transfer or call.name in handoffs:
            changes["content"] = _fit_calls(turn, message.content, handoffs)
    return msgspec.structs.replace(message, **changes) if changes else message


async def offered(turn: Turn) -> Sequence[ToolSpec]:
    """The tools and handoffs that are offered now: those that are enabled, and may be used where only reading is."""
    bound = turn.bound
    specs: list[ToolSpec] = []
    for spec in bound.specs:
        edge, tool = bound.handoffs.get(spec.name), bound.tools.get(spec.name)
        if edge is not None and not await is_enabled(turn, edge):
            continue
        if tool is not None and turn.scope.read_only and has_effects(tool):
            continue
        specs.append(spec)
    return specs


def _fit_calls(turn: TurnState, content: tuple[Part, ...], handoffs: Mapping[str, Handoff]) -> tuple[Part, ...]:
    # A call without an id of its own could not be answered alone; whether it is a transfer is for the loop to say.
    seen: set[str] = set()
    parts: list[Part] = []
    for part in content:
        if type(part) is ToolCall:
            call_id = part.id if part.id and part.id not in seen else turn.scope.ids.next()
            seen.add(call_id)
            edge = handoffs.get(part.name)
            transfer = edge is not None and edge.returns is None
            if call_id != part.id or transfer != part.transfer:
                part = msgspec.structs.replace(part, id=call_id, transfer=transfer)
        parts.append(part)
    return tuple(parts)
