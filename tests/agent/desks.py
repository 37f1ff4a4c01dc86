"""How tests run agents, and what they look at afterwards."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from handrail.agent import Agent, RunError, RunResult, ScriptedModel
from handrail.agent.events import Event
from handrail.agent.kernel.requests import ChatRequest
from handrail.filters import Breach, Message, breaches


class Heard(msgspec.Struct):
    """A run that was listened to: its events, and its result or what it raised."""

    events: list[Event]
    result: RunResult | None = None
    error: BaseException | None = None

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if type(event) is kind]


async def hear(agent: Agent, input: Any, **options: Any) -> Heard:
    """A streamed run, every event read."""
    heard = Heard([])
    try:
        async with agent.stream(input, **options) as run:
            async for event in run:
                heard.events.append(event)
            heard.result = run.result
    except Exception as error:  # noqa: BLE001  # the test says which one it was to be
        heard.error = error
    return heard


async def failure(agent: Agent, input: Any, **options: Any) -> RunError:
    """The error that ends a run."""
    try:
        await agent.run(input, **options)
    except RunError as error:
        return error
    raise AssertionError("the run did not fail")


def requests(*models: ScriptedModel) -> list[ChatRequest]:
    """What these models were asked."""
    return [request for model in models for request in model.requests]


def unlawful(asked: Iterable[ChatRequest]) -> list[Breach]:
    """Where requests break the transcript laws, or ask for an answer to nothing."""
    asked = list(asked)
    assert all(any(message.role != "system" for message in request.messages) for request in asked)
    return [breach for request in asked for breach in breaches(request.messages)]


def answers(messages: Iterable[Message]) -> list[tuple[str | None, str]]:
    """The results in these messages: call id and text."""
    return [(message.call_id, message.text) for message in messages if message.role == "tool"]


def result_of(messages: Iterable[Message], call_id: str | None) -> Message:
    """The one result of a call."""
    (found,) = [message for message in messages if message.call_id == call_id]
    return found


def texts(messages: Iterable[Message]) -> list[str]:
    """The text of each message."""
    return [message.text for message in messages]


def roles(messages: Iterable[Message]) -> str:
    """The first letter of each message's role: `uata` is a user, an answer, a result and an answer."""
    return "".join([message.role[0] for message in messages])


def tasks() -> set["asyncio.Task[Any]"]:
    """The tasks there are beside the test's own."""
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


async def pause() -> None:
    """Lets everything that can go on go on once."""
    loop = asyncio.get_running_loop()
    passed = loop.create_future()
    loop.call_soon(passed.set_result, None)
    await passed


def ids(messages: Sequence[Message]) -> list[str]:
    """The id of each message."""
    return [message.id for message in messages]
