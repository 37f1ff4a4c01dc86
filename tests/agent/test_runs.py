"""Three doors lead to one loop: run, stream and run_sync end alike and fail alike."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.desks import failure, hear, ids, pause, requests, result_of, roles, tasks, texts, unlawful
from agent.hanging import FULL
from agent.hanging import waiting as boss_that_waits
from agent.streaming import Streaming, words
from handrail.agent import (
    ActiveAgentUnknown,
    Agent,
    BuildError,
    FunctionModel,
    InvalidAnswer,
    InvalidInput,
    ModelUnavailable,
    RunError,
    ScriptedModel,
    handoff,
)
from handrail.agent.events import Event, Recovered, RunEnd, RunStart, Text
from handrail.agent.kernel import ChatRequest, Middleware
from handrail.agent.models import TextDelta
from handrail.filters import (
    FixedClock,
    FixedIds,
    InvalidMessage,
    Reasoning,
    assistant,
    breaches,
    call,
    full,
    last_user,
    tool_result,
    user,
)
from handrail.sessions import Session, SessionConflict, read, verify
from handrail.sessions.records import MessageRecord, ToolResultRecord, TurnRecord


async def ok() -> str:
    return "ok"


def script() -> ScriptedModel:
    return ScriptedModel(["I look.", call("ok", call_id="c1")], call("transfer_to_b", call_id="h1"), "done")


def pair(model: Any) -> Agent:
    b = Agent("B", model=model, handoffs=["A"])
    return Agent("A", model=model, tools=[ok], handoffs=[handoff(b, filter=full())])


def fixed() -> dict[str, Any]:
    return {"ids": FixedIds("m"), "clock": FixedClock()}


async def test_run_stream_and_run_sync_give_the_same_result() -> None:
    ran = await pair(script()).run("go", **fixed())
    streamed = (await hear(pair(script()), "go", **fixed())).result
    synced = await asyncio.to_thread(pair(script()).run_sync, "go", **fixed())
    assert streamed is not None
    for other in (streamed, synced):
        assert (other.output, other.agent, other.status) == (ran.output, ran.agent, ran.status)
        assert (other.messages, other.new_messages) == (ran.messages, ran.new_messages)
        assert (other.usage, other.steps, other.run_id) == (ran.usage, ran.steps, ran.run_id)


async def test_run_stream_and_run_sync_raise_the_same_error_and_never_a_group() -> None:
    failing = ModelUnavailable("down")
    ran = await failure(Agent("X", model=ScriptedModel(failing)), "go")
    heard = await hear(Agent("X", model=ScriptedModel(failing)), "go")
    with pytest.raises(ModelUnavailable) as synced:
        await asyncio.to_thread(Agent("X", model=ScriptedModel(failing)).run_sync, "go")
    assert ran is heard.error is synced.value is failing


async def test_run_sync_in_a_running_loop_is_refused_and_leaves_nothing_unawaited() -> None:
    with pytest.raises(RuntimeError, match="running event loop"):
        Agent("X", model=ScriptedModel()).run_sync("go")


def test_run_sync_closes_every_model_at_its_end_also_after_a_failure() -> None:
    closed: list[str] = []

    class Closing(ScriptedModel):
        async def aclose(self) -> None:
            closed.append(self.name)

    Agent("X", model=Closing("hi", name="well")).run_sync("go")
    with pytest.raises(ModelUnavailable):
        Agent("X", model=Closing(ModelUnavailable("down"), name="ill")).run_sync("go")
    assert closed == ["well", "ill"]


async def test_a_streams_result_is_there_when_its_events_have_ended() -> None:
    async with Agent("X", model=ScriptedModel("Hello.")).stream("go") as run:
        with pytest.raises(RunError, match="not ended"):
            run.result  # noqa: B018  # the look is what is tested
        async for _ in run:
            pass
        assert run.result.output == "Hello."
    assert run.result.output == "Hello."


async def test_a_stream_is_one_run_and_used_with_async_with() -> None:
    stream = Agent("X", model=ScriptedModel("Hello.")).stream("go")
    with pytest.raises(RunError, match="async with"):
        await anext(stream)
    async with stream as run:
        assert [event async for event in run]
    with pytest.raises(RunError, match="one run"):
        await stream.__aenter__()


async def test_leaving_a_stream_cancels_its_run_and_answers_every_call() -> None:
    stopped: list[int] = []
    kept: list[Any] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(1)

    class Keep(Middleware):
        async def around_turn(self, request: Any, call_next: Any) -> Any:
            try:
                return await call_next(request)
            finally:
                kept.append(request.run.messages)

    model = ScriptedModel([call("ok", call_id="c1"), call("hang", call_id="c2"), call("hang", call_id="c3")])
    agent = Agent("X", model=model, tools=[ok, hang], middleware=[Keep()])
    async with agent.stream("go") as run:
        async for event in run:
            if str(event) == "[X] hang({})":
                break
    assert (tasks(), breaches(kept[0]), roles(kept[0])) == (set(), [], "uattt")
    with pytest.raises(RunError, match="cancelled before it ended"):
        run.result  # noqa: B018  # the look is what is tested


async def test_leaving_a_stream_in_the_middle_of_an_answer_ends_the_run(tmp_path: Path) -> None:
    async with Agent("X", model=ScriptedModel("one two three")).stream("go", session=str(tmp_path / "s.jsonl")) as run:
        async for event in run:
            if isinstance(event, Text):
                break
    assert tasks() == set()
    assert verify(tmp_path / "s.jsonl").state == "intact"
    assert Session(tmp_path / "s.jsonl").history("X")[0].text == "go"


async def test_cancelling_the_listener_in_mid_stream_ends_the_run_and_a_later_one_goes_on(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    model = ScriptedModel([call("hang", call_id="c1"), call("ok", call_id="c2")], "done")
    agent = Agent("X", model=model, tools=[ok, hang])

    async def listen() -> None:
        async with agent.stream("go", session=str(tmp_path / "s.jsonl")) as run:
            async for _ in run:
                pass

    listening = asyncio.create_task(listen())
    await begun.wait()
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    assert (tasks(), breaches(Session(tmp_path / "s.jsonl").history("X"))) == (set(), [])
    result = await agent.run("and?", session=str(tmp_path / "s.jsonl"))
    assert (result.output, roles(result.messages), unlawful(requests(model))) == ("done", "uattua", [])
    assert verify(tmp_path / "s.jsonl").state == "intact"


async def test_an_error_of_the_listener_comes_out_and_ends_the_run() -> None:
    async def listen() -> None:
        async with Agent("X", model=ScriptedModel("one two")).stream("go") as run:
            async for _ in run:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await listen()
    assert tasks() == set()


async def test_a_slow_listener_holds_up_the_run_and_loses_no_event() -> None:
    asked: list[int] = []

    def answer(request: ChatRequest) -> Any:
        asked.append(1)
        return call("ok") if len(asked) < 800 else "done"

    from handrail.agent import Limits

    agent = Agent("X", model=FunctionModel(answer), tools=[ok])
    async with agent.stream("go", limits=Limits(max_steps=None)) as run:
        first = await anext(run)
        for _ in range(2000):
            await pause()
        ahead = len(asked)
        events = [first, *[event async for event in run]]
    assert 100 < ahead < 400
    assert (type(events[0]), type(events[-1]), run.result.steps) == (RunStart, RunEnd, 800)
    assert len([event for event in events if str(event).endswith("ok -> ok")]) == 799


async def test_a_clock_that_gives_no_whole_number_is_refused_where_its_time_would_be_written() -> None:
    class Seconds(FixedClock):
        def __call__(self) -> Any:
            return 0.5

    with pytest.raises(InvalidMessage, match="created_at"):
        await Agent("X", model=ScriptedModel("Hello.")).run(user("go", id="u1", created_at=1), clock=Seconds())


async def test_ids_and_times_come_from_the_sources_given() -> None:
    result = await Agent("X", model=ScriptedModel("Hello.")).run("go", ids=FixedIds("m"), clock=FixedClock(7, 0))
    assert (result.run_id, ids(result.messages)) == ("m-1", ["m-2", "m-3"])
    assert [message.created_at for message in result.messages] == [7, 7]


async def test_a_conversation_goes_on_from_its_file_with_its_active_agent_and_each_view(tmp_path: Path) -> None:
    path = str(tmp_path / "s.jsonl")
    await pair(script()).run("go", session=path)
    model = ScriptedModel("B again.", call("transfer_to_a"), "A again.")
    second = await pair(model).run("and?", session=path)
    assert (second.agent, texts(second.messages)[-3:]) == ("B", ["done", "and?", "B again."])
    third = await pair(model).run("go back", session=path)
    assert third.agent == "A"
    assert roles(model.requests[2].messages) == "uatatauau"
    assert unlawful(requests(model)) == []
    assert verify(path).state == "intact"
    assert Session(path).history("A") == third.messages


async def test_start_self_begins_with_the_agent_that_run_was_called_on(tmp_path: Path) -> None:
    path = str(tmp_path / "s.jsonl")
    await pair(script()).run("go", session=path)
    result = await pair(ScriptedModel("A here.")).run("and?", session=path, start="self")
    assert (result.agent, Session(path).active_agent) == ("A", "B")
    with pytest.raises(BuildError, match="'active' or 'self'"):
        await pair(ScriptedModel()).run("x", start="none")  # type: ignore[arg-type]  # what is tested


async def test_an_active_agent_that_cannot_be_reached_is_an_error_naming_those_that_can(tmp_path: Path) -> None:
    path = str(tmp_path / "s.jsonl")
    await pair(script()).run("go", session=path)
    model = ScriptedModel("X here.")
    lonely = Agent("X", model=model)
    error = await failure(lonely, "and?", session=path)
    assert type(error) is ActiveAgentUnknown
    assert (error.name, list(error.known), requests(model)) == ("B", ["X"], [])
    assert (await lonely.run("and?", session=path, start="self")).output == "X here."


async def test_messages_a_session_holds_already_are_not_said_again(tmp_path: Path) -> None:
    path = str(tmp_path / "s.jsonl")
    agent = Agent("X", model=ScriptedModel("one", "two"))
    first = await agent.run("go", session=path)
    second = await agent.run([*first.messages, user("and?")], session=path)
    assert texts(second.messages) == ["go", "one", "and?", "two"]
    assert (texts(Session(path).log), verify(path).state) == (["go", "one", "and?", "two"], "intact")


async def test_a_session_given_open_stays_open_and_is_up_to_date(tmp_path: Path) -> None:
    agent = Agent("X", model=ScriptedModel("one", "two"))
    with Session(tmp_path / "s.jsonl") as session:
        await agent.run("go", session=session)
        with pytest.raises(SessionConflict):
            await agent.run("me too", session=str(tmp_path / "s.jsonl"))
        second = await agent.run("and?", session=session)
        assert session.history("X") == second.messages
    assert texts(Session(tmp_path / "s.jsonl").history("X")) == ["go", "one", "and?", "two"]


async def test_a_run_that_fails_leaves_all_that_came_before_in_its_file(tmp_path: Path) -> None:
    path = str(tmp_path / "s.jsonl")
    model = ScriptedModel(call("ok"), ModelUnavailable("down"), "done")
    agent = Agent("X", model=model, tools=[ok])
    error = await failure(agent, "go", session=path)
    assert (roles(error.messages), roles(Session(path).history("X"))) == ("uat", "uat")
    ends = [record for record in read(path).records() if isinstance(record, TurnRecord) and record.event == "end"]
    assert [(record.status, record.error) for record in ends] == [("failed", "ModelUnavailable")]
    assert (await agent.run("again", session=path)).output == "done"
    assert verify(path).state == "intact"


async def test_what_led_to_a_tool_is_in_the_file_before_the_tool_runs(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    seen: list[str] = []

    async def look() -> str:
        seen.append(path.read_text())
        return "ok"

    model = ScriptedModel([Reasoning("hm"), "I look.", call("look", call_id="c1")], "done")
    await Agent("X", model=model, tools=[look]).run("go", session=str(path))
    assert "I look." in seen[0]
    assert '"kind":"tool_call"' in seen[0]


async def test_a_seed_crosses_again_the_same_in_a_later_process(tmp_path: Path) -> None:
    path = str(tmp_path / "s.jsonl")
    for _ in range(3):
        model = ScriptedModel(call("transfer_to_b"), call("transfer_to_a"), "done")
        b = Agent("B", model=model, handoffs=[handoff("A", filter=last_user())])
        await Agent("A", model=model, handoffs=[handoff(b, filter=full())]).run("go", session=path)
    verdict = verify(path)
    assert (verdict.state, verdict.handoffs) == ("intact", 6)


async def test_a_run_without_a_session_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    await pair(script()).run("go")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def hanging(root: Path, tmp_path: Path) -> Any:
    """Starts a run in a process of its own that hangs, and gives it with its session's path once it does."""

    def start(what: str) -> Any:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "tests"), *sys.path])}
        path = str(tmp_path / "s.jsonl")
        command = [sys.executable, "-m", "agent.hanging", path, what]
        return path, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )

    return start


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGKILL])
async def test_a_run_that_was_interrupted_or_killed_can_be_gone_on_with(hanging: Any, signal_number: int) -> None:
    path, process = hanging("wait")
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal_number)
    process.communicate()
    assert process.returncode in (-signal_number, 130)
    assert verify(path).ok
    model = ScriptedModel("Back again.")
    result = await boss_that_waits(model).run("are you there?", session=path)
    assert (result.output, roles(result.messages), unlawful(requests(model))) == ("Back again.", "uattua", [])
    assert [message.is_error for message in result.messages if message.role == "tool"] == [False, True]
    assert verify(path).state == "intact"


async def test_a_full_disk_ends_the_run_and_what_was_written_can_be_gone_on_with(hanging: Any) -> None:
    path, process = hanging("fill")
    told, _ = process.communicate()
    assert told == "JournalFailed\n"
    assert (verify(path).state, FULL * 0.8 < Path(path).stat().st_size <= FULL) == ("intact", True)
    model = ScriptedModel("Back again.")
    result = await Agent("X", model=model).run("and now?", session=path)
    assert (result.output, unlawful(requests(model))) == ("Back again.", [])
    assert verify(path).state == "intact"


async def test_a_view_that_a_crash_left_open_is_closed_when_it_is_gone_on_with(tmp_path: Path) -> None:
    path = str(tmp_path / "s.jsonl")
    said = [user("go", id="m1"), assistant(call("ok", call_id="c1"), call("ok", call_id="c2"), id="m2")]
    with Session(path) as session:
        session.append(*[MessageRecord(path="X", message=message) for message in said])
        session.append(ToolResultRecord(path="X", message=tool_result("c2", "ok", id="m3")))
    model = ScriptedModel("done")
    result = await Agent("X", model=model, tools=[ok]).run("well?", session=path)
    assert (roles(result.messages), unlawful(requests(model))) == ("uattua", [])
    assert [result_of(result.messages, each).synthetic for each in ("c1", "c2")] == [True, False]
    assert Session(path).history("X") == result.messages
    assert verify(path).state == "intact"


async def test_deps_are_never_written_down(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    await pair(script()).run("go", session=str(path), deps={"password": "tell-nobody"})
    assert "tell-nobody" not in path.read_text()


async def test_a_failed_run_is_over_for_those_who_listen_before_its_error_is_raised(tmp_path: Path) -> None:
    heard = await hear(
        Agent("X", model=ScriptedModel(ModelUnavailable("down"))), "go", session=str(tmp_path / "s.jsonl")
    )
    assert (type(heard.error), heard.events[-1].__class__) == (ModelUnavailable, RunEnd)
    assert verify(tmp_path / "s.jsonl").state == "intact"


class Stop(BaseException):
    """What no handler of errors may catch."""


async def test_what_is_no_exception_comes_out_of_a_stream_as_of_a_run() -> None:
    class Stopping(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            raise Stop

    async def listen() -> None:
        async with Agent("X", model=ScriptedModel(), middleware=[Stopping()]).stream("go") as run:
            async for _ in run:
                pass

    with pytest.raises(Stop):
        await listen()
    assert tasks() == set()


@pytest.mark.parametrize("names", [["interrupt"], ["ok", "interrupt", "hang"]])
def test_an_interrupt_in_a_tool_comes_out_and_every_call_is_answered(names: list[str], tmp_path: Path) -> None:
    async def interrupt() -> None:
        raise KeyboardInterrupt

    async def hang() -> None:
        await asyncio.Event().wait()

    path = str(tmp_path / "s.jsonl")
    model = ScriptedModel([call(name, call_id=name) for name in names])
    with pytest.raises(KeyboardInterrupt):
        Agent("X", model=model, tools=[ok, interrupt, hang]).run_sync("go", session=path)
    view = Session(path).history("X")
    assert ([message.call_id for message in view[2:]], breaches(view)) == (names, [])
    assert verify(path).state == "intact"


class Late(Middleware):
    """A turn layer that fails, or waits for ever, when the turn has handed over."""

    def __init__(self, ends: str) -> None:
        self.ends = ends
        self.reached = asyncio.Event()

    async def around_turn(self, request: Any, call_next: Any) -> Any:
        await call_next(request)
        self.reached.set()
        if self.ends == "fails":
            raise PermissionError("no")
        return await asyncio.Event().wait()


@pytest.mark.parametrize("ends", ["fails", "is cancelled"])
@pytest.mark.parametrize("again", [False, True])
async def test_what_was_recorded_as_crossed_stays_in_the_targets_view_whatever_becomes_of_the_turn(
    ends: str, again: bool, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    late, target = Late(ends), ScriptedModel(*["B was here." for _ in range(again)], "B here.")
    b = Agent("B", model=target)
    edges: dict[str, Any] = {"handoffs": [handoff(b, filter=full())]}
    with Session(path) as session:
        if again:
            await Agent("A", model=ScriptedModel(call("transfer_to_b")), **edges).run("first", session=session)
        agent = Agent("A", model=ScriptedModel(call("transfer_to_b", call_id="h9")), middleware=[late], **edges)
        running = asyncio.create_task(agent.run("go", session=session, start="self"))
        await late.reached.wait()
        running.cancel() if ends == "is cancelled" else None
        with pytest.raises(asyncio.CancelledError if ends == "is cancelled" else PermissionError):
            await running
        assert session.active_agent == "B"
        assert session.history("B") == Session(path).history("B")
        result = await Agent("A", model=ScriptedModel(), **edges).run("and?", session=session)
        assert (result.output, texts(target.requests[-1].messages)[-2:]) == ("B here.", ["go", "and?"])
        assert session.history("B") == result.messages == Session(path).history("B")
    assert (verify(path).state, unlawful(requests(target))) == ("intact", [])


async def test_other_words_under_an_id_that_the_conversation_holds_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "s.jsonl")
    model = ScriptedModel("one", "two")
    agent = Agent("X", model=model)
    await agent.run(user("go", id="u1"), session=path)
    before = Path(path).read_bytes()
    with pytest.raises(InvalidInput, match="another message with the id 'u1'"):
        await agent.run([user("stop", id="u1"), user("and?")], session=path)
    assert (len(requests(model)), Path(path).read_bytes()) == (1, before)
    same = [user("go", id="u1", created_at=7), user("and?")]
    assert texts((await agent.run(same, session=path)).messages) == ["go", "one", "and?", "two"]
    assert verify(path).state == "intact"


async def test_ids_that_count_from_one_again_are_given_where_none_holds_them(tmp_path: Path) -> None:
    path = str(tmp_path / "s.jsonl")
    for number in (1, 2, 3):
        agent = pair(ScriptedModel(call("transfer_to_b"), f"done {number}"))
        result = await agent.run(f"go {number}", session=path, ids=FixedIds("m"), start="self")
        assert texts(result.messages)[-2:] == [f"go {number}", f"done {number}"]
        assert result.messages == Session(path).history("B")
    assert len(set(ids(Session(path).log))) == len(Session(path).log)
    assert verify(path).state == "intact"


async def test_an_id_twice_in_what_a_run_is_given_is_refused(tmp_path: Path) -> None:
    model = ScriptedModel()
    twice = [user("one", id="u1"), user("two", id="u1")]
    for session in (None, tmp_path / "s.jsonl"):
        with pytest.raises(InvalidInput, match="the message id 'u1' twice"):
            await Agent("X", model=model).run(twice, session=session)
    assert requests(model) == []


@pytest.mark.parametrize("load_history", [True, False])
async def test_an_id_twice_in_what_a_hook_around_the_turn_gives_is_refused(load_history: bool) -> None:
    class Twice(Middleware):
        async def around_turn(self, request: Any, call_next: Any) -> Any:
            made = [*request.messages, user("please", id="p1"), user("now", id="p1")]
            return await call_next(request.replace(messages=made, load_history=load_history))

    model = ScriptedModel()
    error = await failure(Agent("X", model=model, middleware=[Twice()]), "go")
    assert type(error) is InvalidAnswer
    assert "gives the message id 'p1' twice" in str(error)
    assert (requests(model), texts(error.messages)) == ([], ["go"])


async def test_a_listener_that_is_cancelled_again_while_it_leaves_still_waits_for_the_runs_end() -> None:
    begun, stopping, done = asyncio.Event(), asyncio.Event(), asyncio.Event()
    stopped: list[str] = []

    async def slow_to_stop() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopping.set()
            await done.wait()
            stopped.append("tool")

    agent = Agent("X", model=ScriptedModel(call("slow_to_stop")), tools=[slow_to_stop])

    async def listen() -> None:
        async with agent.stream("go") as run:
            async for _ in run:
                pass

    listening = asyncio.create_task(listen())
    await begun.wait()
    listening.cancel()
    await stopping.wait()
    for _ in range(3):
        listening.cancel()
        await pause()
    assert not listening.done()
    done.set()
    with pytest.raises(asyncio.CancelledError):
        await listening
    assert (stopped, tasks()) == (["tool"], set())


HANGING = """
import threading
from handrail.agent import Agent, ScriptedModel, tool
from handrail.filters import call


@tool(timeout=0.05)
def hang() -> None:
    threading.Event().wait()


agent = Agent("X", model=ScriptedModel(call("hang", call_id="c1"), "I go on."), tools=[hang])
result = agent.run_sync("go")
print(result.messages[2].text, result.output, flush=True)
"""


def test_a_sync_tool_that_hangs_keeps_neither_the_run_nor_the_program_from_ending() -> None:
    ended = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "hang did not end within 0.05 seconds. I go on.\n"


async def test_what_a_crash_left_at_the_end_of_a_session_is_cut_and_told(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    agent = Agent("X", model=ScriptedModel("one", "two", "three"))
    assert (await agent.run("go", session=path)).recovered == ""
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"prev":"0000","kind":"mess')
    heard = await hear(agent, "and?", session=path)
    assert heard.result is not None
    assert f"27 bytes from byte {size} on" in heard.result.recovered
    assert [event.what for event in heard.of(Recovered)] == [heard.result.recovered]
    assert (texts(heard.result.messages), verify(path).state) == (["go", "one", "and?", "two"], "intact")
    assert (await agent.run("more", session=path)).recovered == ""


async def test_what_one_loop_over_a_stream_leaves_the_next_one_hears() -> None:
    async with Agent("X", model=ScriptedModel("one two three")).stream("go") as run:
        first = [event async for event in _until(run, Text)]
        rest = [event async for event in run]
    assert [type(event) for event in (first[0], rest[-1])] == [RunStart, RunEnd]
    assert "".join([event.text for event in first + rest if isinstance(event, Text)]) == "one two three"
    assert run.result.output == "one two three"


@pytest.mark.parametrize("gone", [0, 1, 2])
async def test_each_event_is_heard_by_one_of_those_who_listen_side_by_side_whoever_gives_up(gone: int) -> None:
    comes = asyncio.Event()
    heard: list[Event] = []
    model = Streaming([comes, TextDelta("one "), *words("two")])
    async with Agent("X", model=model).stream("go") as run:

        async def listen() -> None:
            async for event in run:
                heard.append(event)
                await pause()

        listening = [asyncio.create_task(listen()) for _ in range(3)]
        for _ in range(20):
            await pause()
        for each in listening[:gone]:
            each.cancel()
        await pause()
        comes.set()
        async with asyncio.timeout(5):
            await asyncio.wait(listening[gone:])
    assert (type(heard[0]), type(heard[-1]), run.result.output) == (RunStart, RunEnd, "two")
    assert [event.text for event in heard if isinstance(event, Text)] == ["one ", "two"]
    assert [each.cancelled() for each in listening] == [place < gone for place in range(3)]


async def test_who_gives_up_waiting_for_an_event_again_and_again_misses_none() -> None:
    waiting = [asyncio.Event() for _ in range(20)]
    pieces = [piece for number, comes in enumerate(waiting) for piece in (comes, TextDelta(f"{number} "))]
    heard: list[Event] = []
    async with Agent("X", model=Streaming([*pieces, *words("end")])).stream("go") as run:
        while type(heard[-1] if heard else None) is not RunEnd:
            following = asyncio.ensure_future(anext(run))
            for _ in range(20):
                await pause()
            if following.done():
                heard.append(await following)
            else:
                following.cancel()
                waiting.pop(0).set()
    assert [event.text for event in heard if isinstance(event, Text)] == [*[f"{n} " for n in range(20)], "end"]


async def _until(run: Any, kind: type) -> Any:
    async for event in run:
        yield event
        if isinstance(event, kind):
            return
