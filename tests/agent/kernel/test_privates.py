"""The private state of a layer: its own, for the turn or the session, folded where calls run side by side."""

import operator
from pathlib import Path
from typing import Any

import pytest

from agent.desks import failure, pause
from handrail.agent import Agent, FunctionModel, ScriptedModel, ScriptError, handoff
from handrail.agent.errors import StateConflict, StateError
from handrail.agent.kernel import Middleware, around_tool
from handrail.filters import call
from handrail.sessions import Session, StateRecord, read, verify

Change = Any


class Remembers(Middleware):
    """Does something with its memory around every tool call, and shows it at the end."""

    reducers = {"sum": operator.add, "calls": operator.add}  # noqa: RUF012  # nobody changes it

    def __init__(self, change: Change = None, first: Any = None, **declared: Any) -> None:
        self.change = change
        self.first = {} if first is None else first
        self.shown: list[Any] = []
        for name, value in declared.items():
            setattr(self, name, value)

    def init_state(self) -> dict[str, Any]:
        return self.first if not isinstance(self.first, dict) else dict(self.first)

    async def around_tool(self, request: Any, call_next: Any) -> Any:
        if self.change is not None:
            self.change(request.state, request)
        for _ in range(request.arguments.get("wait", 0)):
            await pause()
        return await call_next(request)

    async def after_agent(self, state: Any, run: Any) -> Any:
        self.shown.append(dict(state.private))


async def ok(n: int = 0, wait: int = 0) -> str:
    return "ok"


def calls(*numbers: int) -> list[Any]:
    """One response with a call for each number, the first taking longest."""
    return [
        call("ok", call_id=f"c{number}", n=number, wait=len(numbers) - place) for place, number in enumerate(numbers)
    ]


def desk(layer: Middleware, *script: Any, name: str = "A", **options: Any) -> Agent:
    return Agent(name, model=ScriptedModel(*script), tools=[ok], middleware=[layer], **options)


def adds(state: Any, request: Any) -> None:
    state.add("sum", request.arguments["n"])
    state.add("calls", [request.arguments["n"]])


async def test_what_calls_side_by_side_add_is_folded_in_call_order() -> None:
    layer = Remembers(adds, {"sum": 0})
    await desk(layer, calls(3, 1, 2), calls(4), "done").run("go")
    assert layer.shown == [{"sum": 10, "calls": [3, 1, 2, 4]}]


async def test_each_call_sees_the_memory_as_it_stood_before_the_first_with_its_own_changes() -> None:
    seen: list[Any] = []

    def look(state: Any, request: Any) -> None:
        adds(state, request)
        seen.append((request.arguments["n"], state["sum"]))

    await desk(Remembers(look, {"sum": 0}), calls(1, 2), calls(4, 5), "done").run("go")
    assert sorted(seen) == [(1, 1), (2, 2), (4, 7), (5, 8)]


async def test_calls_side_by_side_may_each_assign_a_key_of_their_own() -> None:
    layer = Remembers(lambda state, request: state.update({request.call.id: True}))
    layer = Remembers(lambda state, request: state.__setitem__(request.call.id, True))
    await desk(layer, calls(1, 2), "done").run("go")
    assert layer.shown == [{"c1": True, "c2": True}]


CONFLICTS: dict[str, tuple[Change, Any]] = {
    "assign": (lambda state, request: state.__setitem__("n", request.arguments["n"]), {"n": 0}),
    "assign what it was": (lambda state, request: state.__setitem__("n", 0), {"n": 0}),
    "update": (lambda state, request: state.update(n=request.arguments["n"]), {"n": 0}),
    "change within": (lambda state, request: state["list"].append(request.arguments["n"]), {"list": []}),
    "remove": (lambda state, request: state.pop("n"), {"n": 0}),
    "delete": (lambda state, request: state.__delitem__("n"), {"n": 0}),
}


@pytest.mark.parametrize("how", CONFLICTS)
async def test_two_calls_side_by_side_that_write_one_key_are_a_conflict_naming_layer_key_and_calls(how: str) -> None:
    change, first = CONFLICTS[how]
    error = await failure(desk(Remembers(change, first), calls(1, 2)), "go")
    assert isinstance(error, StateConflict)
    assert (error.owner, error.key, error.calls) == ("Remembers", next(iter(first)), ("c1", "c2"))


async def test_a_key_that_a_call_assigns_and_adds_to_conflicts_with_one_that_another_assigns() -> None:
    def change(state: Any, request: Any) -> None:
        state["calls"] = []
        if request.call.id == "c1":
            state.add("calls", [1])

    error = await failure(desk(Remembers(change, {"calls": []}), calls(1, 2)), "go")
    assert isinstance(error, StateConflict)
    assert (error.key, error.calls) == ("calls", ("c1", "c2"))


async def test_one_call_after_the_other_may_write_what_it_likes() -> None:
    layer = Remembers(lambda state, request: state.update(n=request.arguments["n"]), {"n": 0})
    await desk(layer, calls(1), calls(2), "done").run("go")
    assert layer.shown == [{"n": 2}]


async def test_a_key_without_a_reducer_cannot_be_added_to() -> None:
    layer = Remembers(lambda state, request: state.add("n", 1), {"n": 0})
    with pytest.raises(KeyError, match="Remembers declares no reducer for 'n'; those it declares: sum, calls"):
        await desk(layer, calls(1)).run("go")


async def test_a_memory_of_the_turn_begins_anew_and_one_of_the_session_lives_on(tmp_path: Path) -> None:
    shown = {}
    for scope in ("turn", "session"):
        layer = Remembers(adds, {"sum": 0}, scope=scope)
        path = tmp_path / f"{scope}.jsonl"
        for number in (1, 2):
            await desk(layer, calls(number), "done").run("go", session=path)
        shown[scope] = [each["sum"] for each in layer.shown]
        assert verify(path).state == "intact"
    assert shown == {"turn": [1, 2], "session": [1, 3]}


async def test_a_memory_of_the_session_is_each_agents_own(tmp_path: Path) -> None:
    layer = Remembers(adds, {"sum": 0}, scope="session")
    path = tmp_path / "s.jsonl"
    b = desk(layer, calls(5), "done", name="B")
    await desk(layer, calls(1), call("transfer_to_b", call_id="h1"), handoffs=[handoff(b)]).run("go", session=path)
    assert {key[0]: values["sum"] for key, values in Session(path).private_states.items()} == {"A": 1, "B": 5}


async def test_without_a_session_a_memory_of_the_session_lives_for_the_run() -> None:
    layer = Remembers(adds, {"sum": 0}, scope="session")
    for _ in range(2):
        await desk(layer, calls(1), "done").run("go")
    assert [each["sum"] for each in layer.shown] == [1, 1]


async def test_every_memory_is_in_the_record_by_agent_and_layer(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    await desk(Remembers(adds, {"sum": 0}), calls(1), "done").run("go", session=path)
    (record,) = [each for each in read(path).records() if isinstance(each, StateRecord)]
    assert (record.path, record.layer, record.scope) == ("A", "Remembers", "turn")
    assert b'"sum": 1' in bytes(record.values) or b'"sum":1' in bytes(record.values)


NOT_JSON: dict[str, Any] = {
    "an object": object(),
    "a set": {1},
    "no number": float("nan"),
}


@pytest.mark.parametrize("name", NOT_JSON)
async def test_a_memory_that_json_cannot_carry_is_refused_at_its_seed_naming_layer_and_key(name: str) -> None:
    error = await failure(desk(Remembers(None, {"fine": 1, "bad": NOT_JSON[name]}), calls(1), "done"), "go")
    assert isinstance(error, StateError)
    assert (error.owner, error.key) == ("Remembers", "bad")


@pytest.mark.parametrize("name", NOT_JSON)
async def test_a_memory_that_json_cannot_carry_is_refused_at_the_turns_end_naming_layer_and_key(name: str) -> None:
    layer = Remembers(lambda state, request: state.update(bad=NOT_JSON[name]))
    error = await failure(desk(layer, calls(1), "done"), "go")
    assert isinstance(error, StateError)
    assert (error.owner, error.key) == ("Remembers", "bad")


async def test_a_key_that_is_no_text_is_refused_whether_the_memory_is_written_down_or_not(tmp_path: Path) -> None:
    for session in (None, tmp_path / "s.jsonl"):
        layer = Remembers(lambda state, request: state.update({1: "one"}))
        error = await failure(desk(layer, calls(1), "done"), "go", session=session)
        assert isinstance(error, StateError)
        assert error.owner == "Remembers"


async def test_text_that_cannot_be_written_down_is_refused_where_it_is_to_be(tmp_path: Path) -> None:
    layer = Remembers(lambda state, request: state.update(bad="\ud800"))
    error = await failure(desk(layer, calls(1), "done"), "go", session=tmp_path / "s.jsonl")
    assert isinstance(error, StateError)
    assert (error.owner, error.key) == ("Remembers", "bad")


async def test_what_is_no_dict_is_refused_as_a_memory() -> None:
    error = await failure(desk(Remembers(None, [1]), calls(1), "done"), "go")
    assert isinstance(error, StateError)
    assert "gives list, not a dict" in str(error)


async def test_values_that_json_gives_back_as_others_come_back_as_json_has_them(tmp_path: Path) -> None:
    layer = Remembers(lambda state, request: state.setdefault("pair", (1, 2)), scope="session")
    path = tmp_path / "s.jsonl"
    await desk(layer, calls(1), "done").run("go", session=path)
    assert [values["pair"] for values in Session(path).private_states.values()] == [[1, 2]]


async def test_a_memory_is_never_shared_between_runs_that_begin_from_one_value() -> None:
    class Shared(Remembers):
        def init_state(self) -> dict[str, Any]:
            return kept

    kept: dict[str, Any] = {"list": []}
    layer = Shared(lambda state, request: state["list"].append(1))
    for _ in range(2):
        await desk(layer, calls(1), "done").run("go")
    assert layer.shown == [{"list": [1]}, {"list": [1]}]


async def test_what_a_turn_that_failed_did_to_a_memory_of_the_session_is_kept_as_what_it_wrote_into_channels_is(
    tmp_path: Path,
) -> None:
    layer = Remembers(lambda state, request: state["list"].append(1), {"list": []}, scope="session")
    with Session(tmp_path / "s.jsonl") as session:
        await desk(layer, calls(1), "done").run("go", session=session)
        with pytest.raises(ScriptError):
            await desk(layer, calls(1)).run("go", session=session)
        await desk(layer, calls(1), "done").run("go", session=session)
    assert [each["list"] for each in layer.shown] == [[1], [1, 1, 1]]


async def test_a_memory_of_the_session_is_in_the_file_as_soon_as_the_step_is_done(tmp_path: Path) -> None:
    layer = Remembers(lambda state, request: state["list"].append(1), {"list": []}, scope="session")
    found: list[Any] = []

    def look(request: Any) -> str:
        found.append(Session.open(tmp_path / "s.jsonl").private_states)
        return "done"

    await desk(layer, calls(1), look).run("go", session=tmp_path / "s.jsonl")
    assert [list(each.values()) for each in found] == [[{"list": [1]}]]


async def test_a_memory_that_a_decorator_was_given_as_values_begins_anew_each_turn() -> None:
    shown: list[Any] = []

    async def remember(request: Any, call_next: Any) -> Any:
        request.state["list"].append(1)
        shown.append(list(request.state["list"]))
        return await call_next(request)

    layer = around_tool(init_state={"list": []})(remember)
    for _ in range(2):
        await desk(layer, calls(1), "done").run("go")
    assert shown == [[1], [1]]


async def test_a_sub_agents_layer_has_a_memory_for_each_call() -> None:
    layer = Remembers(adds, {"sum": 0}, scope="session")

    def answer(request: Any) -> Any:
        return "done" if any(message.role == "tool" for message in request.messages) else calls(1)

    child = Agent("Child", model=FunctionModel(answer), tools=[ok], middleware=[layer])
    asked = [call("child", call_id="k1", input="?"), call("child", call_id="k2", input="?")]
    await Agent("Boss", model=ScriptedModel(asked, "done"), tools=[child.to_tool()]).run("go")
    assert [each["sum"] for each in layer.shown] == [1, 1]


class Crossings(Remembers):
    """Does the same around every boundary."""

    around_tool = Middleware.around_tool

    async def around_handoff(self, request: Any, call_next: Any) -> Any:
        self.change(request.state, request)
        return await call_next(request)


def bosses(layer: Middleware) -> Agent:
    """An agent that asks two others at once."""
    helpers = [Agent(name, model=ScriptedModel("helped")) for name in ("One", "Two")]
    asked = [call("one", call_id="k1", input="?"), call("two", call_id="k2", input="?")]
    tools = [helper.to_tool() for helper in helpers]
    return Agent("Boss", model=ScriptedModel(asked, "done"), tools=tools, middleware=[layer])


async def test_boundaries_side_by_side_are_folded_as_calls_are() -> None:
    layer = Crossings(lambda state, request: state.add("calls", [request.target]), {"calls": []})
    await bosses(layer).run("go")
    assert layer.shown == [{"calls": ["One", "Two"]}]


async def test_two_boundaries_side_by_side_that_write_one_key_are_a_conflict_naming_the_calls() -> None:
    error = await failure(bosses(Crossings(lambda state, request: state.update(n=request.target))), "go")
    assert isinstance(error, StateConflict)
    assert (error.key, error.calls) == ("n", ("k1", "k2"))


async def test_a_boundary_of_a_call_shares_its_memory_with_the_call() -> None:
    class Both(Remembers):
        async def around_handoff(self, request: Any, call_next: Any) -> Any:
            assert request.state[request.target.lower()] == "called"
            request.state[request.target.lower()] = "crossed"
            return await call_next(request)

    layer = Both(lambda state, request: state.update({request.call.name: "called"}))
    await bosses(layer).run("go")
    assert layer.shown == [{"one": "crossed", "two": "crossed"}]
