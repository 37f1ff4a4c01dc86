"""A recorded session runs again through the kernel, and the first thing that is not as it was is named."""

import asyncio
import json
import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel

from agent.desks import hear
from handrail.agent import (
    Agent,
    Evaluation,
    FunctionModel,
    InvalidOutput,
    LimitExceeded,
    Limits,
    ModelUnavailable,
    RunContext,
    ScriptedModel,
    Settings,
    ToolFailed,
    evaluate_and_retry,
    fan_out,
    handoff,
    tool,
)
from handrail.agent.errors import ReplayRefused
from handrail.agent.kernel import Middleware, ToolResponse
from handrail.agent.middleware import Approval, Validation
from handrail.agent.replay import Replay, rerun, rerun_sync
from handrail.filters import ToolCall, assistant, call, full, last_answer, last_n, none, summarize
from handrail.sessions import DamagedSession, PassphraseMissing, Session, export, import_file, read
from sessions.conversations import rechained


class World:
    """What tools did in it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def look(self, n: int = 0) -> str:
        self.done.append(f"look {n}")
        return f"found {n}"

    def tools(self) -> list[Any]:
        @tool(side_effects="read_only")
        async def look(n: int = 0) -> str:
            return await self.look(n)

        @tool(idempotency_key="order")
        async def pay(order: str) -> str:
            self.done.append(f"pay {order}")
            return "paid"

        @tool
        async def post(text: str) -> str:
            self.done.append(f"post {text}")
            return "posted"

        return [look, pay, post]


Make = Callable[[Sequence[Any]], Any]


def desk(world: World, script: Sequence[Any], **options: Any) -> Agent:
    billing = Agent("billing", model=ScriptedModel("Refunded."), instructions="You refund.")
    edge = handoff(billing, filter=options.pop("filter", full()))
    fields = {"instructions": "You are the desk.", "tools": world.tools(), "handoffs": [edge], **options}
    return Agent("triage", model=ScriptedModel(*script), **fields)


SCRIPT = (call("look", call_id="c1", n=1), call("pay", call_id="c2", order="o7"), call("transfer_to_billing"))


@pytest.fixture
async def recorded(tmp_path: Path) -> Path:
    await desk(World(), SCRIPT).run("I was charged twice.", session=str(tmp_path / "s.jsonl"))
    return tmp_path / "s.jsonl"


async def test_a_run_that_goes_as_it_went_has_no_divergence_and_touches_nothing(recorded: Path) -> None:
    world, before = World(), recorded.read_bytes()
    replay = await rerun(recorded, desk(world, ()))
    assert str(replay) == "1 run, 4 model calls, 2 tool calls: no divergence"
    assert (world.done, recorded.read_bytes(), list(recorded.parent.iterdir())) == ([], before, [recorded])


async def test_other_instructions_are_shown_at_the_first_request_with_them(recorded: Path) -> None:
    replay = await rerun(recorded, desk(World(), (), instructions="You are a desk."))
    assert str(replay) == (
        "1 run, 1 model call, 0 tool calls: a divergence\n"
        "run 1, triage, step 1: the request (line 5) differs\n"
        "  instructions agent\n    -You are the desk.\n    +You are a desk."
    )


async def test_another_filter_is_shown_at_the_boundary_where_something_else_crosses(recorded: Path) -> None:
    found = (await rerun(recorded, desk(World(), (), filter=last_n(2, keep_user=True)))).divergence
    assert found is not None
    assert (found.what, found.path, found.step) == ("boundary", "triage", 3)
    assert [(each.where[:9], bool(each.now)) for each in found.differences] == [
        ("message 2", False),
        ("message 3", False),
    ]


async def test_a_filter_that_lets_the_same_cross_makes_no_difference(recorded: Path) -> None:
    assert (await rerun(recorded, desk(World(), (), filter=last_n(50)))).ok


@pytest.mark.parametrize("gone", ["look", "pay"])
async def test_a_tool_that_is_no_longer_there_is_shown_where_it_is_not_offered(recorded: Path, gone: str) -> None:
    tools = [each for each in World().tools() if each.name != gone]
    found = (await rerun(recorded, desk(World(), (), tools=tools))).divergence
    assert found is not None
    assert (found.what, found.step, [str(each) for each in found.differences]) == ("request", 1, [f"tools\n  -{gone}"])


async def test_a_tool_with_another_schema_is_another_tool(recorded: Path) -> None:
    @tool(side_effects="read_only")
    async def look(n: int = 0, deep: bool = False) -> str:
        return ""

    found = (await rerun(recorded, desk(World(), (), tools=[look, *World().tools()[1:]]))).divergence
    assert found is not None
    assert [each.where for each in found.differences] == ["tool look"]


async def test_other_settings_are_shown_by_name(recorded: Path) -> None:
    found = (await rerun(recorded, desk(World(), (), settings=Settings(temperature=0.5)))).divergence
    assert found is not None
    assert [(each.where, each.now) for each in found.differences] == [("setting temperature", "0.5")]


async def test_another_form_of_the_answer_is_shown(tmp_path: Path) -> None:
    class Total(BaseModel):
        amount: int

    class Sum(BaseModel):
        amount: float

    def made(form: Any, script: Sequence[Any] = ()) -> Agent:
        return Agent("X", model=ScriptedModel(*script), output_type=form)

    await made(Total, [call("final_answer", amount=3)]).run("How much?", session=str(tmp_path / "s.jsonl"))
    assert (await rerun(tmp_path / "s.jsonl", made(Total))).ok
    found = (await rerun(tmp_path / "s.jsonl", made(Sum))).divergence
    assert found is not None
    assert [each.where for each in found.differences] == ["tool final_answer", "output type"]


async def test_a_request_that_a_layer_changed_then_and_changes_otherwise_now_differs(tmp_path: Path) -> None:
    class Cut(Middleware):
        def __init__(self, most: int) -> None:
            self.most = most

        async def around_chat(self, request: Any, call_next: Any) -> Any:
            return await call_next(request.replace(messages=request.messages[: self.most]))

    await desk(World(), SCRIPT).run("go", session=str(tmp_path / "s.jsonl"), middleware=[Cut(1)])
    assert (await rerun(tmp_path / "s.jsonl", desk(World(), ()), middleware=[Cut(1)])).ok
    found = (await rerun(tmp_path / "s.jsonl", desk(World(), ()), middleware=[Cut(3)])).divergence
    assert found is not None
    assert (found.what, found.step) == ("request", 2)
    assert found.differences[0].where == "messages that a hook changed"


async def test_an_agent_of_another_name_is_not_the_one_that_ran(recorded: Path) -> None:
    replay = await rerun(recorded, Agent("front", model=ScriptedModel()))
    assert "is of an agent 'triage', which is not among those of today: front" in str(replay)


async def test_a_layer_that_edits_a_request_is_shown_there_and_one_that_edits_a_result_at_the_result(
    recorded: Path,
) -> None:
    class Shorter(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            cut = request.messages[:1] if request.run.step == 2 else request.messages
            return await call_next(request.replace(messages=cut))

    class Louder(Middleware):
        async def around_tool(self, request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            return response.replace(content=str(response.value).upper())

    for layer, what, step in ((Shorter(), "request", 2), (Louder(), "result", 0)):
        found = (await rerun(recorded, desk(World(), ()), middleware=[layer])).divergence
        assert found is not None
        assert (found.what, found.step) == (what, step)


async def test_what_layers_changed_of_answers_and_results_is_changed_once_when_it_is_replayed(tmp_path: Path) -> None:
    class Signed(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            said = response.message
            return response.replace(message=said if said.tool_calls else assistant(f"{said.text} -- signed"))

        async def around_tool(self, request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            return response.replace(content=f"<{response.value}>")

    def made(script: Sequence[Any]) -> Agent:
        return desk(World(), script, middleware=[Signed()])

    await check(tmp_path, made, [call("look", call_id="c1"), "Done."], expected=(2, 1))


async def check(
    folder: Path,
    make: Make,
    *scripts: Sequence[Any],
    expected: tuple[int, int],
    **options: Any,
) -> Replay:
    """Records a run for each script, and replays them without one."""
    path = folder / "s.jsonl"
    for script in scripts:
        try:
            await make(script).run("go", session=str(path), **options)
        except (ModelUnavailable, ToolFailed, LimitExceeded, InvalidOutput, RuntimeError):
            continue
    replay = await rerun(path, make(()))
    assert replay.ok, str(replay)
    assert (replay.model_calls, replay.tool_calls, replay.lacks) == (*expected, ())
    assert len(replay.runs) == len(scripts)
    return replay


async def test_attempts_that_were_not_accepted_and_own_calls_of_layers_are_answered_from_the_record(
    tmp_path: Path,
) -> None:
    class Picky(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            while "good" not in response.message.text:
                judged = await request.run.ask_model(self, response.message.text, purpose="moderation")
                response = await call_next(request)
                assert judged.message.text == "no"
            return response

    def made(script: Sequence[Any]) -> Agent:
        return Agent("X", model=ScriptedModel(*script), middleware=[Picky()])

    await check(tmp_path, made, ["bad", "no", "worse", "no", "a good one"], expected=(5, 0))


async def test_failures_are_replayed_as_failures(tmp_path: Path) -> None:
    class Again(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            try:
                return await call_next(request)
            except ModelUnavailable:
                return await call_next(request)

    def made(script: Sequence[Any]) -> Agent:
        return Agent("X", model=ScriptedModel(*script), middleware=[Again()])

    down = ModelUnavailable("down")
    replay = await check(tmp_path, made, [down, "up"], [down, down], [RuntimeError("a bug")], expected=(5, 0))
    assert [run.status for run in replay.runs] == ["same", "same", "same"]


async def test_a_tool_whose_failure_ended_the_run_ends_it_again(tmp_path: Path) -> None:
    @tool
    async def bad() -> str:
        raise KeyError("no")

    def made(script: Sequence[Any]) -> Agent:
        return Agent("X", model=ScriptedModel(*script), tools=[bad], tool_errors={"failed": "raise"})

    path = tmp_path / "s.jsonl"
    with pytest.raises(KeyError):
        await made([call("bad")]).run("go", session=str(path))
    assert (await rerun(path, made(()))).ok
    told = Agent("X", model=ScriptedModel(), tools=[bad])
    found = (await rerun(path, told)).divergence
    assert found is not None
    assert found.problem == "is one model call more than the record has there"


async def test_the_limits_of_a_run_hold_again(tmp_path: Path) -> None:
    def made(script: Sequence[Any]) -> Agent:
        return desk(World(), script)

    calls = [call("look", call_id=f"c{n}", n=n) for n in range(9)]
    for limits in (Limits(max_steps=3), Limits(max_tool_calls=2)):
        with pytest.raises(LimitExceeded):
            await made(calls).run("go", session=str(tmp_path / "s.jsonl"), limits=limits)
    ended = Limits(max_tool_calls=1, on_max_tool_calls="end")
    await made(calls).run("go", session=str(tmp_path / "s.jsonl"), limits=ended)
    replay = await rerun(tmp_path / "s.jsonl", made(()))
    assert (replay.ok, replay.lacks, len(replay.runs)) == (True, (), 3)


async def test_sub_agents_and_teams_are_replayed_with_all_below_them(tmp_path: Path) -> None:
    def made(script: Sequence[Any]) -> Agent:
        said = script[1] if script else []
        helper = Agent("helper", model=ScriptedModel(*said))
        judge = Agent("judge", model=FunctionModel(lambda request: '{"score": 0.9, "pass": true}'))
        writer = Agent("writer", model=FunctionModel(lambda request: "text"))
        twins = [Agent(name, model=FunctionModel(lambda request: "mine")) for name in ("one", "two")]
        tools = [
            helper.to_tool(filter=none()),
            fan_out(twins, name="both"),
            evaluate_and_retry(writer, judge, max_iterations=3, name="write"),
        ]
        return Agent("boss", model=ScriptedModel(*(script[0] if script else [])), tools=tools)

    asked = [call(name, call_id=f"t{n}", input="x") for n, name in enumerate(("helper", "both", "write"))]
    script: list[Any] = [[asked, "done"], ["helped"]]
    await check(tmp_path, made, script, expected=(7, 0))


async def test_a_team_that_was_run_by_itself_is_replayed(tmp_path: Path) -> None:
    def made() -> Any:
        good = lambda text, number: Evaluation(passed=number == 2, critique="more")  # noqa: E731
        return evaluate_and_retry(Agent("writer", model=FunctionModel(lambda r: "text")), good, max_iterations=3)

    await made().run("go", session=str(tmp_path / "s.jsonl"))
    replay = await rerun(tmp_path / "s.jsonl", made())
    assert (str(replay), replay.model_calls) == ("1 run, 2 model calls, 0 tool calls: no divergence", 2)


async def test_structured_output_and_re_entry_are_replayed(tmp_path: Path) -> None:
    class Total(BaseModel):
        amount: int

    def valid(result: Any) -> Any:
        return True if result.output.amount > 3 else "too little"

    def made(script: Sequence[Any]) -> Agent:
        return Agent("X", model=ScriptedModel(*script), output_type=Total, middleware=[Validation(valid)])

    tries = [call("final_answer", call_id=f"f{n}", amount=each) for n, each in enumerate(("many", 1, 7))]
    await check(tmp_path, made, tries, expected=(3, 0))


async def test_state_that_tools_write_and_handoffs_that_they_ask_for_are_replayed(tmp_path: Path) -> None:
    class Channels(TypedDict):
        seen: Annotated[int, operator.add]

    class Telling(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            seen = request.run.state.get("seen", 0)
            return await call_next(request.replace(instructions={"agent": f"{seen} seen"}))

    @tool
    async def count() -> ToolResponse:
        return ToolResponse("counted", writes={"seen": 2})

    @tool
    async def leave(context: RunContext[Any]) -> str:
        context.handoff("other", reason="enough")
        return "left"

    def made(script: Sequence[Any]) -> Agent:
        other = Agent("other", model=ScriptedModel("I have it."))
        return Agent(
            "X",
            model=ScriptedModel(*script),
            tools=[count, leave],
            handoffs=[other],
            channels=Channels,
            middleware=[Telling()],
        )

    await check(tmp_path, made, [call("count", call_id="c1"), call("leave", call_id="c2")], expected=(3, 2))


async def test_conversations_that_go_on_are_replayed_from_where_each_run_began(tmp_path: Path) -> None:
    def made(script: Sequence[Any]) -> Agent:
        back = Agent("back", model=ScriptedModel(*(["Back."] * 3)), handoffs=["front"])
        aside = Agent("aside", model=ScriptedModel(*(["Aside."] * 3)))
        edges = [handoff(back, filter=full(), next_turn="caller"), handoff(aside, returns=last_answer())]
        return Agent("front", model=ScriptedModel(*script), handoffs=edges)

    scripts: list[list[Any]] = [
        [call("transfer_to_aside"), call("transfer_to_back")],
        ["Hello again."],
        [call("transfer_to_back")],
    ]
    replay = await check(tmp_path, made, *scripts, expected=(7, 0), instructions="Be brief.")
    assert [run.agent for run in replay.runs] == ["front", "front", "front"]


async def test_what_was_heard_as_it_came_is_replayed_and_can_be_heard_again(tmp_path: Path) -> None:
    await hear(desk(World(), SCRIPT), "go", session=str(tmp_path / "s.jsonl"))
    heard: list[Any] = []
    replay = await rerun(tmp_path / "s.jsonl", desk(World(), ()), on_event=heard.append)
    assert replay.ok
    assert "".join([event.text for event in heard if type(event).__name__ == "Text"]) == "Refunded."


async def test_a_summary_that_a_model_wrote_is_taken_from_the_record(tmp_path: Path) -> None:
    asked: list[int] = []

    async def ask(messages: Any) -> str:
        asked.append(len(messages))
        return "They want money."

    def made(script: Sequence[Any]) -> Agent:
        return desk(World(), script, filter=summarize(ask))

    await check(tmp_path, made, [call("transfer_to_billing")], expected=(2, 0))
    assert asked == [2]


async def test_nobody_is_asked_for_approval_twice(tmp_path: Path) -> None:
    asked: list[str] = []

    def yes_but(request: Any) -> bool | str:
        asked.append(request.call.id)
        return True if request.call.id == "c1" else "not today"

    def made(script: Sequence[Any]) -> Agent:
        return desk(World(), script, middleware=[Approval(yes_but, tools=["look"])])

    await check(tmp_path, made, [call("look", call_id="c1"), call("look", call_id="c2"), "Done."], expected=(3, 1))
    assert asked == ["c1", "c2"]


async def test_on_handoff_is_called_where_its_tool_is_permitted_and_nowhere_else(tmp_path: Path) -> None:
    told: list[str] = []

    def made(script: Sequence[Any]) -> Agent:
        edge = handoff(Agent("b", model=ScriptedModel("B.")), on_handoff=lambda context, value: told.append("told"))
        return Agent("a", model=ScriptedModel(*script), handoffs=[edge])

    await check(tmp_path, made, [call("transfer_to_b")], expected=(2, 0))
    assert told == ["told"]
    assert (await rerun(tmp_path / "s.jsonl", made(()), allow=["transfer_to_b"])).ok
    assert told == ["told", "told"]


async def test_tools_run_where_they_are_permitted_by_class_or_by_name_and_nowhere_else(recorded: Path) -> None:
    for allow, done in ((["read_only"], ["look 1"]), (["pay"], ["pay o7"]), (["post"], [])):
        world = World()
        assert (await rerun(recorded, desk(world, ()), allow=allow)).ok
        assert world.done == done


async def test_a_keyed_tool_does_not_run_with_another_key_than_it_had(recorded: Path) -> None:
    @tool(name="pay", idempotency_key=lambda arguments: "other")
    async def pay(order: str) -> str:
        world.done.append("pay")
        return "paid"

    world = World()
    look, _, post = world.tools()
    found = (await rerun(recorded, desk(world, (), tools=[look, pay, post]), allow=["pay"])).divergence
    assert found is not None
    assert ([str(each) for each in found.differences], world.done) == (["tool call key\n  -o7\n  +other"], [])


async def test_a_permitted_tool_that_gives_something_else_is_a_divergence_at_its_result(recorded: Path) -> None:
    @tool(side_effects="read_only")
    async def look(n: int = 0) -> str:
        return "nothing"

    found = (await rerun(recorded, desk(World(), (), tools=[look, *World().tools()[1:]]), allow=["look"])).divergence
    assert found is not None
    assert (found.what, found.differences[0].then, found.differences[0].now) == ("result", "found 1", "nothing")


def test_what_is_permitted_is_a_tool_or_a_class_that_does_nothing(recorded: Path) -> None:
    for wrong in (["external"], ["unheard_of"]):
        with pytest.raises(ReplayRefused, match="allow names"):
            rerun_sync(recorded, desk(World(), ()), allow=wrong)


async def test_a_run_that_a_crash_cut_off_is_replayed_up_to_there_and_its_tools_do_not_run(recorded: Path) -> None:
    lines = recorded.read_bytes().splitlines(keepends=True)
    whole = len(await_marks(lines))
    for cut in range(whole, len(lines)):
        recorded.write_bytes(b"".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2])
        world = World()
        replay = await rerun(recorded, desk(world, ()), allow=["pay", "look"] if cut % 2 else [])
        assert replay.ok, str(replay)
        assert len(world.done) <= 2 if cut % 2 else world.done == []


def await_marks(lines: list[bytes]) -> list[bytes]:
    """The lines up to the start of the first turn, and its input."""
    return lines[: next(n for n, line in enumerate(lines) if b'"kind":"model_call"' in line)]


async def test_a_tool_that_had_begun_when_the_program_died_is_not_run(recorded: Path) -> None:
    lines = recorded.read_bytes().splitlines(keepends=True)
    mark = next(n for n, line in enumerate(lines) if b'"kind":"tool_call"' in line)
    recorded.write_bytes(b"".join(lines[: mark + 1]))
    world = World()
    replay = await rerun(recorded, desk(world, ()), allow=["look", "pure", "read_only"])
    assert (replay.runs[0].status, world.done) == ("cut off", [])
    assert "run 1 ends where its record is cut off" in str(replay)


async def test_a_run_after_one_that_was_cut_off_begins_where_that_one_was_left(recorded: Path) -> None:
    lines = recorded.read_bytes().splitlines(keepends=True)
    mark = next(n for n, line in enumerate(lines) if b'"kind":"tool_call"' in line)
    recorded.write_bytes(b"".join(lines[: mark + 1]))
    await desk(World(), ["Once more."]).run("Are you there?", session=str(recorded))
    replay = await rerun(recorded, desk(World(), ()))
    assert ([run.status for run in replay.runs], replay.ok) == (["cut off", "same"], True)


async def test_a_cancelled_run_is_replayed_up_to_the_cancel(tmp_path: Path) -> None:
    begun = asyncio.Event()

    @tool
    async def wait() -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    def made(script: Sequence[Any]) -> Agent:
        return Agent("X", model=ScriptedModel(*script), tools=[wait])

    running = asyncio.create_task(made([call("wait")]).run("go", session=str(tmp_path / "s.jsonl")))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [run.status for run in (await rerun(tmp_path / "s.jsonl", made(()))).runs] == ["cut off"]


async def test_a_session_that_was_tampered_with_is_not_run_again(recorded: Path) -> None:
    recorded.write_bytes(recorded.read_bytes().replace(b"found 1", b"found 2", 1))
    with pytest.raises(DamagedSession, match="changed after it was written"):
        await rerun(recorded, desk(World(), ()))


async def test_a_footer_or_a_seed_that_is_not_its_own_is_told_before_anything_runs(recorded: Path) -> None:
    sealed = export(recorded, recorded.with_name("sealed.jsonl"))
    sealed.write_bytes(sealed.read_bytes().replace(b'"handoff":1', b'"handoff":2', 1))
    with pytest.raises(DamagedSession, match="the footer is not that of this file"):
        await rerun(sealed, desk(World(), ()))

    def with_another_seed(lines: list[bytes]) -> list[bytes]:
        made = [json.loads(line) for line in lines]
        (handoff,) = [record for record in made if record["kind"] == "handoff"]
        handoff["seed"] = "0" * len(handoff["seed"])
        return [json.dumps(record).encode() for record in made]

    with pytest.raises(DamagedSession, match="are not those whose digest it holds"):
        await rerun(rechained(recorded, with_another_seed), desk(World(), ()))


async def test_arguments_of_a_secret_call_are_shown_as_a_mark(tmp_path: Path) -> None:
    class Fixing(Middleware):
        async def around_tool(self, request: Any, call_next: Any) -> Any:
            return await call_next(request.replace(arguments={"word": "swordfish"}))

    def made(script: Sequence[Any] = ()) -> Agent:
        @tool(side_effects="read_only")
        async def enter(word: str) -> str:
            return "in"

        return Agent("X", model=ScriptedModel(*script), tools=[enter])

    asked = assistant(ToolCall("c1", "enter", '{"word":"hunter2"}', sensitivity="secret"))
    await made([asked, "Done."]).run("go", session=str(tmp_path / "s.jsonl"))
    replay = await rerun(tmp_path / "s.jsonl", made(), middleware=[Fixing()])
    assert replay.divergence is not None
    assert replay.divergence.what == "call"
    assert "hunter2" not in str(replay)
    assert "swordfish" not in str(replay)


@pytest.mark.parametrize("field", ["step", "attempt"])
async def test_a_model_call_of_another_step_or_attempt_is_not_the_one_that_was_made(recorded: Path, field: str) -> None:
    def counted_up(lines: list[bytes]) -> list[bytes]:
        made = [json.loads(line) for line in lines]
        second = [record for record in made if record["kind"] == "model_call"][1]
        second[field] = second.get(field, 1) + 7
        return [json.dumps(record).encode() for record in made]

    found = (await rerun(rechained(recorded, counted_up), desk(World(), ()))).divergence
    assert found is not None
    assert (found.what, found.step) == ("request", 2)
    assert [each.where for each in found.differences] == [f"model call by {field}"]


async def test_a_sealed_copy_and_what_goes_on_from_it_are_replayed(recorded: Path, tmp_path: Path) -> None:
    sealed = export(recorded, tmp_path / "sealed.jsonl")
    assert (await rerun(sealed, desk(World(), ()))).ok
    with Session.continue_from(sealed, tmp_path / "next.jsonl") as session:
        await desk(World(), ()).run("And?", session=session)
        replay = await rerun(session, desk(World(), ()))
    assert (replay.ok, [run.agent for run in replay.runs]) == (True, ["triage", "billing"])


async def test_one_run_is_chosen_by_its_number_or_its_id(recorded: Path) -> None:
    await desk(World(), ()).run("And?", session=str(recorded))
    second = (await rerun(recorded, desk(World(), ()), run=2)).runs[0]
    assert (await rerun(recorded, desk(World(), ()), run=second.id)).runs == (second,)
    with pytest.raises(ReplayRefused, match="there is no run 3"):
        await rerun(recorded, desk(World(), ()), run=3)


async def test_an_imported_session_has_nothing_to_run_again(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text('[{"role": "user", "content": "Hi"}]')
    (path,) = import_file(tmp_path / "log.json", tmp_path / "s.jsonl", agent="X")
    with pytest.raises(ReplayRefused, match="imported from openai-chat"):
        await rerun(path, Agent("X", model=ScriptedModel()))


async def test_what_an_older_record_does_not_tell_is_said_and_not_taken_for_equal(
    recorded: Path, tmp_path: Path
) -> None:
    older = tmp_path / "older.jsonl"
    with Session(older) as session:
        for record in list(read(recorded).records())[1:]:
            fields = {"specs": None, "settings": None} if type(record).__name__ == "AgentRecord" else {}
            session.append(msgspec_replace(record, **fields))
    replay = await rerun(older, desk(World(), ()))
    assert (replay.ok, replay.lacks) == (True, ("descriptions and schemas of tools", "settings of models"))


def msgspec_replace(record: Any, **fields: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(record, prev="", batch=0, **fields)


async def test_ids_of_the_applications_own_do_not_stand_in_the_way(tmp_path: Path) -> None:
    from handrail.filters import IdSource

    class Letters(IdSource):
        def next(self) -> str:
            return "x" * (len(super().next()) % 7) + super().next().replace("-", "_")

    def made(script: Sequence[Any]) -> Agent:
        return desk(World(), script)

    await made(SCRIPT).run("go", session=str(tmp_path / "s.jsonl"), ids=Letters("own"))
    assert (await rerun(tmp_path / "s.jsonl", made(()))).ok
    found = (await rerun(tmp_path / "s.jsonl", desk(World(), (), filter=last_n(1, keep_user=True)))).divergence
    assert found is not None
    assert found.what == "boundary"


async def test_a_run_that_ends_before_all_was_asked_for_is_told(tmp_path: Path) -> None:
    def made(script: Sequence[Any], *layers: Middleware) -> Agent:
        return Agent("X", model=ScriptedModel(*script), middleware=layers)

    longer = Validation(lambda result: len(result.output) > 3 or "too short")
    await made(["No.", "No, thank you."], longer).run("More?", session=str(tmp_path / "s.jsonl"))
    assert (await rerun(tmp_path / "s.jsonl", made((), longer))).ok
    found = (await rerun(tmp_path / "s.jsonl", made(()))).divergence
    assert found is not None
    assert (found.what, found.problem) == ("end", "comes before all that was recorded was asked for")


async def test_a_run_that_fails_now_is_told_with_what_it_fails(recorded: Path) -> None:
    found = (await rerun(recorded, desk(World(), (), filter=none()))).divergence
    assert found is not None
    assert found.what == "end"
    assert "it fails now with NothingToHandOver: " in found.problem


async def test_what_is_secret_is_shown_as_a_mark(tmp_path: Path) -> None:
    def made(found: str, script: Sequence[Any] = ()) -> Agent:
        @tool(side_effects="pure", output_sensitivity="secret")
        async def key() -> str:
            """A key."""
            return found

        return Agent("X", model=ScriptedModel(*script), tools=[key])

    await made("hunter2", [call("key"), "Done."]).run("go", session=str(tmp_path / "s.jsonl"))
    replay = await rerun(tmp_path / "s.jsonl", made("swordfish"), allow=["pure"])
    assert not replay.ok
    assert "hunter2" not in str(replay)
    assert "swordfish" not in str(replay)


async def test_a_sealed_copy_of_an_encrypted_session_is_replayed_as_the_session_is(
    recorded: Path, tmp_path: Path
) -> None:
    sealed = export(recorded, tmp_path / "sealed.jsonl", passphrase="open sesame")
    packed = export(recorded, tmp_path / "packed.jsonl.gz", passphrase="open sesame")
    for copy in (sealed, packed):
        with pytest.raises(PassphraseMissing):
            await rerun(copy, desk(World(), ()))
        assert (await rerun(Session(copy, passphrase="open sesame"), desk(World(), ()))).ok


async def test_an_encrypted_session_is_replayed_with_its_passphrase(tmp_path: Path) -> None:
    with Session(tmp_path / "s.jsonl", passphrase="open sesame") as session:
        await desk(World(), SCRIPT).run("go", session=session)
        assert (await rerun(session, desk(World(), ()))).ok
    with pytest.raises(PassphraseMissing):
        await rerun(tmp_path / "s.jsonl", desk(World(), ()))
