"""The shared state: channels that are declared, read as a snapshot, folded in call order, and kept with the session."""

import json
import operator
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel

from agent.desks import failure, pause
from agent.goers import goer
from handrail.agent import Agent, BuildError, RunContext, ScriptedModel, handoff, tool
from handrail.agent.errors import StateConflict, StateError, UnknownChannel
from handrail.agent.kernel import (
    Middleware,
    ToolResponse,
    TurnResult,
    after_agent,
    around_chat,
    around_tool,
    around_turn,
    before_agent,
    before_model,
    channel,
)
from handrail.filters import assistant, call
from handrail.sessions import Session, StateRecord, read, verify


class Notes(TypedDict):
    """What the tests share."""

    notes: Annotated[list[str], operator.add]
    plain: str
    last: Annotated[str, channel(conflict="last")]
    first: Annotated[str, channel(conflict="first")]
    hidden: Annotated[list[str], channel(operator.add, private=True)]


@tool
async def note(text: str, wait: int = 0) -> ToolResponse:
    """Notes a text."""
    for _ in range(wait):
        await pause()
    return ToolResponse(text, writes={"notes": [text]})


@tool
def write(channel: str, value: str) -> ToolResponse:
    """Writes a channel."""
    return ToolResponse("written", writes={channel: value})


@tool
def seen(context: RunContext[Any]) -> str:
    """Says what is noted so far."""
    return str(context.state.get("notes", []))


def desk(*script: Any, **options: Any) -> Agent:
    return Agent("A", model=ScriptedModel(*script), tools=[note, write, seen], channels=Notes, **options)


async def test_calls_side_by_side_see_a_snapshot_and_their_writes_are_folded_in_call_order() -> None:
    calls = [
        call("note", call_id="c1", text="slow", wait=5),
        call("seen", call_id="c2"),
        call("note", call_id="c3", text="fast"),
    ]
    result = await desk(calls, call("seen", call_id="c4"), "done").run("go")
    told = {message.call_id: message.text for message in result.messages if message.role == "tool"}
    assert (told["c2"], told["c4"]) == ("[]", "['slow', 'fast']")
    assert result.state == {"notes": ["slow", "fast"]}


async def test_a_channel_without_a_reducer_takes_what_is_written_last() -> None:
    script = [call("write", call_id="c1", channel="plain", value="a"), call("write", channel="plain", value="b")]
    assert (await desk(*script, "done").run("go")).state == {"plain": "b"}


@pytest.mark.parametrize(("policy", "value"), [("last", "b"), ("first", "a")])
async def test_two_calls_of_one_response_that_write_a_channel_follow_its_policy(policy: str, value: str) -> None:
    calls = [call("write", call_id=f"c{each}", channel=policy, value=each) for each in "ab"]
    assert (await desk(calls, "done").run("go")).state == {policy: value}


async def test_two_calls_of_one_response_that_write_a_channel_without_a_policy_are_a_conflict_naming_both() -> None:
    calls = [call("write", call_id=f"c{each}", channel="plain", value=each) for each in "ab"]
    error = await failure(desk(calls), "go")
    assert isinstance(error, StateConflict)
    assert (error.key, error.calls) == ("plain", ("ca", "cb"))


async def test_a_call_that_failed_writes_nothing() -> None:
    async def fail(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return response.replace(is_error=True) if request.arguments["text"] == "bad" else response

    calls = [call("note", call_id="c1", text="bad"), call("note", call_id="c2", text="good")]
    result = await desk(calls, "done", middleware=[around_tool(fail)]).run("go")
    assert result.state == {"notes": ["good"]}


async def test_a_layer_may_write_beside_the_tool() -> None:
    async def add(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return response.replace(writes={**response.writes, "plain": request.tool.name})

    result = await desk(call("note", call_id="c1", text="x"), "done", middleware=[around_tool(add)]).run("go")
    assert result.state == {"notes": ["x"], "plain": "note"}


async def test_a_state_hook_writes_what_it_returns_and_the_hooks_after_it_see_that() -> None:
    looks: list[Any] = []

    async def count(state: Any, run: Any) -> Any:
        looks.append(state.get("notes"))
        return {"notes": [f"step {run.step}"]}

    layers = [before_model(name="one")(count), before_model(name="two")(count)]
    result = await desk("done", middleware=layers).run("go")
    assert (looks, result.state) == ([None, ["step 1"]], {"notes": ["step 1", "step 1"]})


async def test_what_a_hook_is_shown_of_a_channel_is_a_copy() -> None:
    async def spoil(state: Any, run: Any) -> Any:
        state["notes"].append("spoiled")
        with pytest.raises(TypeError):
            state["plain"] = "x"

    result = await desk("done", middleware=[before_agent(spoil)]).run("go", state={"notes": ["whole"]})
    assert result.state == {"notes": ["whole"]}


async def test_a_write_that_equals_what_stands_is_folded_all_the_same() -> None:
    class Sum(TypedDict):
        n: Annotated[int, operator.add]

    async def one(state: Any, run: Any) -> Any:
        return {"n": 1}

    layers = [before_agent(name="a")(one), before_agent(name="b")(one)]
    agent = Agent("A", model=ScriptedModel("done"), channels=Sum, middleware=layers)
    assert (await agent.run("go")).state == {"n": 2}


async def test_a_run_may_be_given_values_to_begin_with() -> None:
    result = await desk(call("note", call_id="c1", text="b"), "done").run("go", state={"notes": ["a"]})
    assert result.state == {"notes": ["a", "b"]}


async def test_a_model_gives_channels_defaults_and_checks_what_is_written() -> None:
    class Account(BaseModel):
        level: int = 1
        tags: list[str] = []

    async def look(state: Any, run: Any) -> Any:
        assert (state["level"], state["tags"], dict(state)["level"]) == (1, [], 1)
        return {"level": "2"}

    agent = Agent("A", model=ScriptedModel("done"), channels=Account, middleware=[before_agent(look)])
    assert (await agent.run("go")).state == {"level": 2, "tags": []}


WRONG: dict[str, tuple[dict[str, Any], type[StateError], str]] = {
    "a channel nobody declared": ({"nowhere": 1}, UnknownChannel, "its channels: first, hidden, last, notes, plain"),
    "a value of another type": ({"notes": 7}, StateError, "'notes' cannot take this value"),
    "what JSON cannot carry": ({"any": float("nan")}, StateError, "'any' holds what JSON cannot carry"),
}


class Anything(TypedDict):
    any: Any


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("door", ["hook", "tool", "run"])
async def test_a_write_that_cannot_be_is_an_error_that_names_writer_and_channel(name: str, door: str) -> None:
    writes, kind, found = WRONG[name]

    async def hook(state: Any, run: Any) -> Any:
        return writes if door == "hook" else None

    @tool
    def wrong() -> ToolResponse:
        """Writes what it may not."""
        return ToolResponse("x", writes=writes)

    layers = [before_model(name="layer")(hook)]
    layers.append(type("More", (Middleware,), {"channels": Anything})() if "any" in writes else layers[0])
    model = ScriptedModel(*([call("wrong", call_id="c1")] if door == "tool" else []), "done")
    agent = Agent("A", model=model, tools=[wrong], channels=Notes, middleware=layers[: 1 + ("any" in writes)])
    error = await failure(agent, "go", **({"state": writes} if door == "run" else {}))
    assert type(error) is kind
    assert isinstance(error, StateError)
    owner = {"hook": "layer.before_model", "tool": "wrong", "run": "the state given to the run"}[door]
    assert (error.owner, error.key) == (owner, next(iter(writes)))
    assert found in str(error)


async def test_writes_that_are_no_mapping_are_an_error_that_names_the_tool() -> None:
    @tool
    def wrong() -> ToolResponse:
        """Writes a list."""
        return ToolResponse("x", writes=["notes"])  # type: ignore[arg-type]  # what is tested

    agent = Agent("A", model=ScriptedModel(call("wrong", call_id="c1")), tools=[wrong], channels=Notes)
    error = await failure(agent, "go")
    assert isinstance(error, StateError)
    assert "wrong" in str(error)


async def test_where_one_of_several_writes_cannot_be_none_is_made(tmp_path: Path) -> None:
    async def writes(state: Any, run: Any) -> Any:
        return {"notes": ["good"], "plain": 7}

    path = tmp_path / "s.jsonl"
    layers = [before_model(writes), around_turn(forgive)]
    result = await desk("done", middleware=layers).run("go", session=path)
    assert (result.output, result.state, Session(path).state) == ("forgiven", {}, {})


def into(standing: list[str], more: list[str]) -> list[str]:
    """A reducer that changes what stands in place."""
    standing.extend(more)
    return standing


async def test_a_reducer_that_changes_in_place_does_not_spoil_what_stands_where_all_is_refused() -> None:
    class Own(TypedDict):
        notes: Annotated[list[str], into]
        plain: str

    async def writes(state: Any, run: Any) -> Any:
        return {"notes": ["new"], "plain": 7}

    layers = [before_model(writes), around_turn(forgive)]
    agent = Agent("A", model=ScriptedModel("done"), middleware=layers, channels=Own)
    result = await agent.run("go", state={"notes": ["old"]})
    assert (result.output, result.state) == ("forgiven", {"notes": ["old"]})


async def forgive(request: Any, call_next: Any) -> Any:
    try:
        return await call_next(request)
    except StateError:
        return TurnResult(status="completed", message=assistant("forgiven"), output="forgiven")


async def test_a_value_that_a_reducer_cannot_fold_is_an_error_that_names_the_writer() -> None:
    async def wrong(state: Any, run: Any) -> Any:
        return {"notes": 7}

    agent = desk("done", middleware=[before_agent(wrong)])
    error = await failure(agent, "go", state={"notes": ["a"]})
    assert isinstance(error, StateError)
    assert (error.owner, error.key) == ("wrong.before_agent", "notes")
    assert "its reducer raised TypeError" in str(error)


async def test_a_private_channel_is_neither_in_the_result_nor_in_the_file(tmp_path: Path) -> None:
    async def writes(state: Any, run: Any) -> Any:
        return {"hidden": ["HUSH"], "notes": ["seen"]}

    async def looks(state: Any, run: Any) -> Any:
        assert state["hidden"] == ["HUSH"]

    path = tmp_path / "s.jsonl"
    layers = [before_agent(writes), after_agent(looks)]
    result = await desk("done", middleware=layers).run("go", session=path)
    assert result.state == {"notes": ["seen"]}
    assert "HUSH" not in path.read_text()


async def test_the_state_comes_back_with_the_session_and_each_write_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    await desk(call("note", call_id="c1", text="a"), "done").run("go", session=path)
    result = await desk(call("note", call_id="c1", text="b"), "done").run("go", session=path)
    assert result.state == {"notes": ["a", "b"]}
    written = [json.loads(bytes(each.values)) for each in read(path).records() if isinstance(each, StateRecord)]
    assert written == [{"notes": ["a"]}, {"notes": ["a", "b"]}]
    assert (Session(path).state, verify(path).state) == ({"notes": ["a", "b"]}, "intact")


def elsewhere(path: Path, said: str, root: Path) -> Any:
    """One turn more, in another process."""
    paths = os.pathsep.join([str(root / "tests"), *sys.path])
    told = subprocess.run(
        [sys.executable, "-m", "agent.goers", str(path), said],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
        check=True,
    )
    return json.loads(told.stdout)


async def test_state_memory_and_view_come_back_in_another_process(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "s.jsonl"
    await goer().run("one", session=path)
    assert elsewhere(path, "two", root) == {
        "state": {"heard": ["one", "two"]},
        "turns": [2],
        "view": ["one", "answer 1", "two", "answer 3"],
    }
    assert (await goer().run("three", session=path)).state == {"heard": ["one", "two", "three"]}


async def test_agents_of_a_run_share_their_channels() -> None:
    b = Agent("B", model=ScriptedModel(call("note", call_id="c2", text="b"), "done"), tools=[note], channels=Notes)
    script = [call("note", call_id="c1", text="a"), call("transfer_to_b", call_id="h1")]
    assert (await desk(*script, handoffs=[handoff(b)]).run("go")).state == {"notes": ["a", "b"]}


async def test_the_state_of_a_sub_agent_is_its_own() -> None:
    child = Agent("Child", model=ScriptedModel(call("note", call_id="c2", text="b"), "x"), tools=[note], channels=Notes)
    boss = Agent(
        "Boss",
        model=ScriptedModel(call("child", call_id="k1", input="?"), "done"),
        tools=[child.to_tool()],
        channels=Notes,
    )
    assert (await boss.run("go")).state == {}


class Other(TypedDict):
    plain: int


def layer(name: str, schema: Any) -> Middleware:
    made: Middleware = type(name, (Middleware,), {"channels": schema})()
    return made


def test_a_channel_that_two_declare_differently_is_refused_when_the_agent_is_made_naming_both() -> None:
    with pytest.raises(BuildError, match="'plain' is declared by both A and Mine"):
        Agent("A", model=ScriptedModel(), channels=Notes, middleware=[layer("Mine", Other)])
    with pytest.raises(BuildError, match="'plain' is declared by both Mine and Yours"):
        Agent("A", model=ScriptedModel(), middleware=[layer("Mine", Other), layer("Yours", Notes)])


def test_a_channel_that_two_agents_declare_differently_is_refused_before_any_request() -> None:
    b = Agent("B", model=ScriptedModel(), channels=Other)
    with pytest.raises(BuildError, match="'plain' is declared by both A and B"):
        Agent("A", model=ScriptedModel(), channels=Notes, handoffs=[handoff(b)]).check()


def test_one_schema_may_be_declared_by_many() -> None:
    agent = Agent("A", model=ScriptedModel(), channels=Notes, middleware=[layer("Mine", Notes), layer("Yours", Notes)])
    assert agent.describe().count("channel plain of A") == 1


class Twice(TypedDict):
    both: Annotated[list[str], operator.add, channel()]


class View(TypedDict):
    messages: list[str]


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (dict, "a TypedDict or a pydantic model"),
        (Twice, "'both' has two reducers"),
        (View, "a channel 'messages'"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused_naming_who_made_it(schema: Any, found: str) -> None:
    with pytest.raises(BuildError, match=found):
        Agent("A", model=ScriptedModel(), channels=schema)
    with pytest.raises(BuildError, match="Mine"):
        Agent("A", model=ScriptedModel(), middleware=[layer("Mine", schema)])


@pytest.mark.parametrize("options", [{"conflict": "never"}, {"reducer": "add"}])
def test_a_channel_that_cannot_be_is_refused_when_it_is_made(options: Any) -> None:
    with pytest.raises(BuildError):
        channel(**options)


async def test_of_several_attempts_only_the_one_that_is_returned_is_said_and_writes() -> None:
    async def keeps_the_first(request: Any, call_next: Any) -> Any:
        first = await call_next(request)
        await call_next(request)
        return first

    script = [call("note", call_id="c1", text="a"), call("note", call_id="c2", text="b"), "first", "second"]
    layers = [around_chat(name="chat")(keeps_the_first), around_tool(name="tool")(keeps_the_first)]
    result = await desk(*script, middleware=layers).run("go")
    assert (result.state, result.output) == ({"notes": ["a"]}, "first")
    assert [message.text for message in result.messages] == ["go", "", "a", "first"]


async def test_what_one_run_writes_the_next_one_does_not_find() -> None:
    agent = desk(*[answer for _ in range(2) for answer in (call("note", call_id="c1", text="b"), "done")])
    first = await agent.run("go", state={"notes": ["a"]})
    assert (first.state, (await agent.run("go")).state) == ({"notes": ["a", "b"]}, {"notes": ["b"]})
