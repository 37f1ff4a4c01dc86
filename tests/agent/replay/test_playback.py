"""What a replay takes for the end of a record, what it leaves alone in the world, and who may stop it."""

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from handrail.agent import Agent, FunctionModel, ScriptedModel, fan_out, handoff, tool
from handrail.agent.kernel import Middleware
from handrail.agent.middleware import Approval, Memory
from handrail.agent.replay import rerun
from handrail.agent.replay.differences import of_notes
from handrail.filters import Filter, Note, call, dynamic, full, none, summarize
from handrail.filters.policies import Policy


@tool
async def pay(order: int = 0) -> str:
    """Pays an order."""
    return "paid"


def desk(*script: Any, **fields: Any) -> Agent:
    return Agent("desk", model=ScriptedModel(*script), tools=[pay], **fields)


def never(request: Any) -> str:
    return "never"


class Failing(Middleware):
    """Asks nobody."""

    async def around_chat(self, request: Any, call_next: Any) -> Any:
        raise RuntimeError("a bug")


@pytest.fixture
async def cut_off(tmp_path: Path) -> Path:
    """Two calls that were not approved, and a crash before the end."""
    path = tmp_path / "s.jsonl"
    script = call("pay", call_id="c1"), call("pay", call_id="c2"), "Sorry."
    await desk(*script, middleware=[Approval(never, tools=["pay"])]).run("go", session=str(path))
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))
    return path


@pytest.mark.parametrize(("layers", "what"), [((), "call"), ((Failing(),), "end")])
async def test_what_is_otherwise_before_a_crash_is_a_divergence_and_not_the_crash(
    cut_off: Path, layers: tuple[Middleware, ...], what: str
) -> None:
    same = await rerun(cut_off, desk(middleware=[Approval(never, tools=["pay"])]))
    assert (same.ok, same.runs[0].status) == (True, "cut off")
    found = (await rerun(cut_off, desk(middleware=layers))).divergence
    assert found is not None
    assert found.what == what
    assert not layers or "RuntimeError" in str(found)


def triage(filter: Filter, *script: Any) -> Agent:
    edge = handoff(Agent("billing", model=FunctionModel(lambda request: "Refunded.")), filter=filter)
    return Agent("triage", model=ScriptedModel(*script), handoffs=[edge])


async def shorter(messages: Any) -> str:
    raise AssertionError("nobody is asked in a replay")


@pytest.mark.parametrize("filter", [summarize(shorter), dynamic(lambda history, edge: none())])
async def test_a_filter_that_would_have_to_be_asked_is_not_taken_for_the_one_that_was_there(
    tmp_path: Path, filter: Filter
) -> None:
    await triage(full(), call("transfer_to_billing")).run("go", session=str(tmp_path / "s.jsonl"))
    found = (await rerun(tmp_path / "s.jsonl", triage(filter))).divergence
    assert found is not None
    assert (found.what, [each.where for each in found.differences]) == ("boundary", ["filter"])


async def test_what_a_sub_agents_filter_that_asks_would_be_today_is_said_not_to_be_known(tmp_path: Path) -> None:
    def boss(filter: Filter, *script: Any) -> Agent:
        helper = Agent("helper", model=FunctionModel(lambda request: "Helped."))
        return Agent("boss", model=ScriptedModel(*script), tools=[helper.to_tool(filter=filter)])

    await boss(full(), call("helper", input="x"), "Done.").run("go", session=str(tmp_path / "s.jsonl"))
    replay = await rerun(tmp_path / "s.jsonl", boss(summarize(shorter)))
    assert replay.lacks == ("what the filter from boss to helper would be today, as it asks",)


async def test_nothing_is_added_to_a_memory_by_a_replay(tmp_path: Path) -> None:
    kept, empty = Memory(), Memory()
    deps = {"conversation_id": "c"}
    await desk("Yes.", middleware=[kept]).run("Open today?", session=str(tmp_path / "s.jsonl"), deps=deps)
    assert len(await kept.store.load("c/desk")) == 2
    assert (await rerun(tmp_path / "s.jsonl", desk(middleware=[empty]), deps=deps)).ok
    assert tuple(await empty.store.load("c/desk")) == ()


async def test_another_value_in_the_shared_state_is_a_divergence(tmp_path: Path) -> None:
    class Seen(TypedDict):
        seen: Annotated[int, operator.add]

    class Counting(Middleware):
        def __init__(self, by: int) -> None:
            self.by = by

        async def around_tool(self, request: Any, call_next: Any) -> Any:
            return (await call_next(request)).replace(writes={"seen": self.by})

    def counting(by: int, *script: Any) -> Agent:
        return desk(*script, channels=Seen, middleware=[Counting(by)])

    path = tmp_path / "s.jsonl"
    for _ in range(2):
        await counting(1, call("pay"), "Done.").run("go", session=str(path), state={"seen": 3})
    assert (await rerun(path, counting(1))).ok
    found = (await rerun(path, counting(2))).divergence
    assert found is not None
    assert (found.what, [each.where for each in found.differences]) == ("state", ["state seen"])


async def test_who_stops_a_replay_has_stopped_it_and_no_task_is_left(tmp_path: Path) -> None:
    class Waiting(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            if request.run.agent != "boss":
                waits.set()
                await asyncio.Event().wait()
            return await call_next(request)

    def boss(*script: Any, layers: Any = ()) -> Agent:
        twins = [Agent(name, model=FunctionModel(lambda request: "x"), middleware=layers) for name in ("a", "b")]
        return Agent("boss", model=ScriptedModel(*script), tools=[fan_out(twins, name="both")])

    waits, before = asyncio.Event(), asyncio.all_tasks()
    await boss(call("both", input="x"), "Done.").run("go", session=str(tmp_path / "s.jsonl"))
    replaying = asyncio.ensure_future(rerun(tmp_path / "s.jsonl", boss(layers=[Waiting()])))
    await waits.wait()
    replaying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await replaying
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize(
    "error", [ExceptionGroup("two", [ValueError("x")]), UnicodeDecodeError("utf8", b"x", 0, 1, "")]
)
async def test_an_error_that_cannot_be_made_of_a_text_is_raised_again_by_its_name(
    tmp_path: Path, error: Exception
) -> None:
    with pytest.raises(type(error)):
        await desk(error).run("go", session=str(tmp_path / "s.jsonl"))
    replay = await rerun(tmp_path / "s.jsonl", desk())
    assert replay.ok, str(replay)


async def test_what_came_after_a_cancelled_model_call_is_said_not_to_be_compared(tmp_path: Path) -> None:
    class Again(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            try:
                async with asyncio.timeout(0.05):
                    return await call_next(request)
            except TimeoutError:
                return await call_next(request)

    async def slow_once(request: Any) -> str:
        asked.append(1)
        await asyncio.sleep(60 if len(asked) == 1 else 0)
        return "Done."

    asked: list[int] = []
    agent = Agent("desk", model=FunctionModel(slow_once), middleware=[Again()])
    await agent.run("go", session=str(tmp_path / "s.jsonl"))
    replay = await rerun(tmp_path / "s.jsonl", agent)
    assert (replay.runs[0].status, len(replay.lacks)) == ("cut off", 1)
    assert "run 1 after its cancelled model call (line " in str(replay)


async def test_a_policy_that_the_runs_had_or_had_not_is_missed(tmp_path: Path) -> None:
    policy = Policy.from_toml('[[rule]]\nname = "no secrets"\nmax_tier = "internal"', name="a/rules.toml")
    again = Policy.from_toml('[[rule]]\nname = "no secrets"\nmax_tier = "internal"', name="b/rules.toml")
    await desk("Done.").run("go", session=str(tmp_path / "s.jsonl"), policy=policy)
    assert (await rerun(tmp_path / "s.jsonl", desk(), policy=again)).lacks == ()
    lacks = (await rerun(tmp_path / "s.jsonl", desk())).lacks
    assert lacks == ("run 1 as it was given: policy rules.toml, now none",)


def test_notes_are_told_apart_by_their_labels_and_each_is_compared() -> None:
    then = [Note("reason", "money"), Note("reason", "twice")]
    assert [str(each) for each in of_notes(then, then[:1])] == ["note reason\n  -twice"]
    labelled = [then[0], Note("reason", "twice", "secret")]
    (found,) = of_notes(then, labelled)
    assert (found.where, found.then, found.now) == ("note reason, sensitivity", "None", "secret")
