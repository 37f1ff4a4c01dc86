"""Random runs: what the models of three agents and a child answer, and how such a run ended."""

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from agent.desks import hear, pause
from handrail.agent import (
    Agent,
    FunctionModel,
    Limits,
    ModelUnavailable,
    RunError,
    RunResult,
    ScriptedModel,
    handoff,
    tool,
)
from handrail.agent.events import Event
from handrail.agent.kernel import ChatRequest, Middleware
from handrail.agent.models import ChatResponse
from handrail.filters import (
    FixedClock,
    FixedIds,
    HandrailError,
    Message,
    Reasoning,
    ToolCall,
    assistant,
    full,
    last_n,
)
from handrail.sessions import Usage


async def ok(n: int = 0) -> str:
    return f"ok {n}"


async def bad() -> None:
    raise ValueError("bad")


async def slow(n: int) -> int:
    for _ in range(3):
        await pause()
    return n


@tool(return_direct=True)
async def direct() -> str:
    """Gives what is the answer."""
    return "said directly"


fit = st.sampled_from(
    [
        ToolCall("c1", "ok", '{"n":1}'),
        ToolCall("c2", "slow", '{"n":2}'),
        ToolCall("c3", "bad"),
        ToolCall("d1", "direct"),
        ToolCall("k1", "child", '{"input":"x"}'),
    ]
)
transfers = st.builds(
    ToolCall,
    st.sampled_from(["h1", "h2", "c1"]),
    st.sampled_from(["transfer_to_a", "transfer_to_b", "transfer_to_c"]),
    st.sampled_from(["", '{"reason":"why"}']),
)
wild = st.builds(
    ToolCall,
    st.sampled_from(["", "c1", "c2", "c3"]),
    st.sampled_from(["ok", "bad", "slow", "child", "unheard_of", "transfer_to_b"]),
    st.sampled_from(["", "{}", '{"n":1}', '{"input":"x"}', '{"reason":7}', "{broken", '{"n":"x"}']),
)
said = st.builds(
    lambda thought, text, made: assistant([Reasoning("hm")] if thought else [], text, made),
    st.booleans(),
    st.sampled_from(["", "I look.", "one two three"]),
    st.lists(fit | transfers | wild, min_size=1, max_size=3),
)
reasons = st.sampled_from(["tool_calls", "tool_calls", "length"])
asking = st.builds(ChatResponse, said, st.builds(Usage, st.integers(0, 9), st.integers(0, 9)), reasons)
final = st.sampled_from(["Hello.", "Hello.", "", ModelUnavailable("down", spent=Usage(1)), RuntimeError("a bug"), 7])
scripts: st.SearchStrategy[list[Any]] = st.builds(
    lambda steps, last: [*steps, *last], st.lists(asking, max_size=7), st.lists(final, max_size=1)
)
limits = st.just(Limits()) | st.builds(
    Limits,
    max_steps=st.integers(0, 12),
    max_tool_calls=st.none() | st.integers(0, 9),
    max_handoffs=st.none() | st.integers(0, 4),
    max_parallel_tools=st.integers(1, 3),
    max_tokens=st.none() | st.integers(0, 40),
    max_repeats=st.none() | st.integers(1, 3),
    on_max_tool_calls=st.sampled_from(["raise", "tell", "end"]),
)


def desk(script: Sequence[Any], layers: Sequence[Middleware] = ()) -> Agent:
    """Three agents that hand to each other, each with tools and a child."""
    model = ScriptedModel(*script)

    def helps(request: ChatRequest) -> Any:
        return "helped" if request.messages[-1].role == "tool" else ToolCall("k1", "bad")

    child = Agent("Child", model=FunctionModel(helps), tools=[bad], middleware=layers)
    tools: list[Any] = [ok, bad, slow, direct, child.to_tool()]
    names = {"A": full(), "B": last_n(2, keep_user=True), "C": None}

    def ways(agent: str) -> list[Any]:
        return [handoff(late[name], filter=filter) for name, filter in names.items() if name != agent]

    def found(name: str) -> Any:
        return lambda: made[name]

    late = {name: found(name) for name in names}
    made = {name: Agent(name, model=model, tools=tools, handoffs=ways(name), middleware=layers) for name in names}
    return made["A"]


class Ended(msgspec.Struct):
    """How a run ended, without what no two runs share."""

    error: str
    output: str
    agent: str
    messages: tuple[Message, ...]
    new_messages: tuple[Message, ...]
    usage: Usage
    crossed: tuple[str, ...] = ()
    steps: int = -1


def ending(result: RunResult | None, error: BaseException | None) -> Ended:
    """What can be told of an end, whichever it was."""
    if result is None:
        left = error if isinstance(error, RunError) else RunError()
        told = f"{type(error).__name__}: {error}"
        return Ended(told, "", left.agent, tuple(left.messages), tuple(left.new_messages), left.usage)
    crossed = tuple([f"{each} {each.path} {each.notes}" for each in result.handoffs])
    said = tuple(result.messages), tuple(result.new_messages)
    return Ended("", result.output, result.agent, *said, result.usage, crossed, result.steps)


def fixed() -> dict[str, Any]:
    """The same ids and times in every run."""
    return {"ids": FixedIds("m"), "clock": FixedClock(0, 0)}


async def ran(agent: Agent, **options: Any) -> Ended:
    """How a run ends."""
    try:
        return ending(await agent.run("go", **fixed(), **options), None)
    except (HandrailError, RuntimeError) as error:
        return ending(None, error)


async def streamed(agent: Agent, **options: Any) -> tuple[Ended, list[Event]]:
    """How the same run ends when it is heard, and what was heard."""
    heard = await hear(agent, "go", **fixed(), **options)
    return ending(heard.result, heard.error), heard.events
