"""Every call of a response gets exactly one result, in call order, whatever happens to it."""

import asyncio
import threading
import time
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.desks import answers, failure, hear, pause, requests, result_of, roles, tasks, unlawful
from handrail.agent import (
    Agent,
    BuildError,
    InvalidAnswer,
    Limits,
    Output,
    RunContext,
    ScriptedModel,
    Tool,
    handoff,
    tool,
)
from handrail.agent.events import MessageDone, ToolEnd, ToolProgress, ToolStart
from handrail.agent.events import Text as TextHeard
from handrail.agent.kernel import Middleware, ToolRequest, ToolResponse
from handrail.agent.models import ChatResponse
from handrail.filters import History, Image, Text, ToolCall, assistant, breaches, call, full
from handrail.sessions import Session, Usage, verify


def every(*names: str) -> list[ToolCall]:
    return [call(name, call_id=f"c{number}") for number, name in enumerate(names, 1)]


def an(name: str, fn: Any, **options: Any) -> Tool:
    return tool(name=name, **options)(fn)


class Hook(Middleware):
    """A tool layer that is a function."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    async def around_tool(self, request: ToolRequest, call_next: Any) -> Any:
        return await self.fn(request, call_next)


async def ok() -> str:
    return "ok"


async def bad() -> str:
    raise ValueError("bad")


async def never() -> None:
    await asyncio.Event().wait()


async def ended(calls: Any, tools: list[Any], **options: Any) -> Any:
    """The view of a run in which these calls were made and answered."""
    model = ScriptedModel(calls, "done")
    result = await Agent("X", model=model, tools=tools, **options).run("go")
    assert result.output == "done"
    assert unlawful(requests(model)) == []
    return result.messages


async def test_an_error_becomes_the_result_of_its_call_and_the_others_finish() -> None:
    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    gone = asyncio.Event()

    async def slow_ok() -> str:
        await gone.wait()
        return "ok"

    async def last() -> str:
        gone.set()
        return "ok"

    view = await ended(
        every("ok", "bad", "cancels_itself", "slow_ok", "last"), [ok, bad, cancels_itself, slow_ok, last]
    )
    assert [call_id for call_id, _ in answers(view)] == ["c1", "c2", "c3", "c4", "c5"]
    told = {call_id: result_of(view, call_id) for call_id, _ in answers(view)}
    assert [told[each].text for each in ("c1", "c4", "c5")] == ["ok"] * 3
    assert (told["c2"].text, told["c2"].is_error) == ("ValueError: bad", True)
    assert (told["c3"].text, told["c3"].is_error) == ("cancels_itself was cancelled.", True)


async def test_a_single_tool_that_cancels_itself_is_an_error_result_too() -> None:
    async def it() -> None:
        raise asyncio.CancelledError

    view = await ended(every("it"), [it])
    assert (result_of(view, "c1").text, result_of(view, "c1").is_error) == ("it was cancelled.", True)


async def test_calls_run_at_once_and_their_results_stand_in_call_order() -> None:
    started: list[str] = []
    both = asyncio.Event()

    async def first() -> str:
        started.append("first")
        await both.wait()
        return "1"

    async def second() -> str:
        started.append("second")
        both.set()
        return "2"

    view = await ended(every("first", "second"), [first, second])
    assert started == ["first", "second"]
    assert answers(view) == [("c1", "1"), ("c2", "2")]


async def test_no_more_tools_run_at_once_than_the_limit() -> None:
    running: list[int] = [0, 0]

    async def it() -> None:
        running[0] += 1
        running[1] = max(running)
        for _ in range(3):
            await pause()
        running[0] -= 1

    await ended(every(*["it"] * 10), [it], limits=Limits(max_parallel_tools=3))
    assert running == [0, 3]


async def test_a_sequential_tool_waits_for_those_before_it_and_those_after_wait_for_it() -> None:
    order: list[str] = []

    def step(name: str) -> Any:
        async def run() -> None:
            order.append(f"{name}(")
            await pause()
            order.append(f"){name}")

        return run

    tools = [an("a", step("a")), an("b", step("b")), an("s", step("s"), sequential=True), an("d", step("d"))]
    await ended(every("a", "b", "s", "d"), tools)
    assert order == ["a(", "b(", ")a", ")b", "s(", ")s", "d(", ")d"]


async def test_an_unknown_tool_is_an_error_naming_the_closest_and_those_there_are() -> None:
    view = await ended(every("ok", "okk"), [ok])
    assert result_of(view, "c1").text == "ok"
    assert result_of(view, "c2").is_error
    assert "Did you mean ok?" in result_of(view, "c2").text
    view = await ended(every("anything"), [])
    assert "none" in result_of(view, "c1").text


async def test_a_tool_that_hangs_is_given_up_after_its_timeout_and_leaves_nothing_behind() -> None:
    stopped: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("hang")

    view = await ended(every("hang", "ok"), [an("hang", hang, timeout=0.01), ok])
    assert "0.01 seconds" in result_of(view, "c1").text
    assert (result_of(view, "c1").is_error, result_of(view, "c2").text) == (True, "ok")
    assert (stopped, tasks()) == (["hang"], set())


async def test_a_timeout_of_the_tools_own_making_is_not_taken_for_its_deadline() -> None:
    async def impatient() -> None:
        raise TimeoutError("the printer")

    view = await ended(every("impatient"), [an("impatient", impatient, timeout=60)])
    assert result_of(view, "c1").text == "TimeoutError: the printer"


async def test_cancelling_the_run_cancels_its_tools_and_answers_every_call() -> None:
    begun, stopped = asyncio.Event(), []

    async def hang() -> None:
        begun.set()
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

    kept: list[Any] = []
    model = ScriptedModel(every("ok", "hang", "hang"))
    agent = Agent("X", model=model, tools=[ok, hang], middleware=[Keep()])
    running = asyncio.create_task(agent.run("go"))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (len(stopped), tasks(), breaches(kept[0])) == (2, set(), [])
    assert [text for _, text in answers(kept[0])] == ["ok", "The call was cancelled.", "The call was cancelled."]


async def test_a_hooks_error_comes_out_as_itself_and_the_other_calls_are_stopped_and_awaited() -> None:
    stopped: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("hang")

    async def refuse(request: ToolRequest, call_next: Any) -> Any:
        if request.call.id == "c2":
            raise PermissionError("no")
        return await call_next(request)

    kept: list[Any] = []

    class Keep(Middleware):
        async def around_turn(self, request: Any, call_next: Any) -> Any:
            try:
                return await call_next(request)
            finally:
                kept.append(request.run.messages)

    agent = Agent("X", model=ScriptedModel(every("hang", "ok")), tools=[hang, ok], middleware=[Keep(), Hook(refuse)])
    with pytest.raises(PermissionError, match="no") as raised:
        await agent.run("go")
    assert "refuse" in [entry.name for entry in raised.traceback]
    assert (stopped, tasks()) == (["hang"], set())
    assert (breaches(kept[0]), roles(kept[0])) == ([], "uatt")


async def test_of_several_errors_the_first_in_call_order_is_raised_and_tells_of_the_others() -> None:
    both = asyncio.Event()

    async def refuse(request: ToolRequest, call_next: Any) -> Any:
        if request.call.id == "c1":
            try:
                await both.wait()
            finally:
                raise PermissionError("first")
        raise LookupError("second")

    agent = Agent("X", model=ScriptedModel(every("ok", "ok")), tools=[ok], middleware=[Hook(refuse)])
    with pytest.raises(PermissionError, match="first") as raised:
        await agent.run("go")
    assert raised.value.__notes__ == ["beside it: LookupError: second", "raised in Hook.around_tool"]


class Stop(BaseException):
    """What no handler of errors may catch."""


@pytest.mark.parametrize("names", [["ok"], ["ok", "ok"]])
async def test_what_is_no_exception_passes_every_handler(names: list[str]) -> None:
    async def stop(request: ToolRequest, call_next: Any) -> Any:
        raise Stop

    agent = Agent("X", model=ScriptedModel(every(*names)), tools=[ok], middleware=[Hook(stop)])
    with pytest.raises(Stop):
        await agent.run("go")
    assert tasks() == set()


@pytest.mark.parametrize("nonsense", [None, "ok", 7, {"value": 1}])
async def test_a_hook_that_returns_what_is_no_response_ends_the_run_with_every_call_answered(nonsense: Any) -> None:
    async def odd(request: ToolRequest, call_next: Any) -> Any:
        return nonsense

    agent = Agent("X", model=ScriptedModel(every("ok", "ok")), tools=[ok], middleware=[Hook(odd)])
    error = await failure(agent, "go")
    assert type(error) is InvalidAnswer
    assert type(nonsense).__name__ in str(error)
    assert (roles(error.messages), breaches(error.messages)) == ("uatt", [])


async def test_a_hook_may_answer_in_the_tools_place_and_change_what_came() -> None:
    async def change(request: ToolRequest, call_next: Any) -> Any:
        if request.call.id == "c1":
            return ToolResponse("cached")
        return (await call_next(request)).replace(content="shown")

    view = await ended(every("bad", "ok"), [ok, bad], middleware=[Hook(change)])
    assert answers(view) == [("c1", "cached"), ("c2", "shown")]


async def test_arguments_a_hook_changed_are_checked_again() -> None:
    async def it(n: int) -> int:
        return n

    async def change(request: ToolRequest, call_next: Any) -> Any:
        n = request.arguments["n"]
        return await call_next(request.replace(arguments={"n": "x" if n == 2 else n * 10}))

    calls = [call("it", call_id="c1", n=1), call("it", call_id="c2", n=2)]
    view = await ended(calls, [it], middleware=[Hook(change)])
    assert (result_of(view, "c1").text, result_of(view, "c2").is_error) == ("10", True)


async def test_a_hook_sees_parsed_arguments_it_cannot_change_in_place() -> None:
    async def it(tags: list[str]) -> str:
        return ",".join(tags)

    async def look(request: ToolRequest, call_next: Any) -> Any:
        assert dict(request.arguments) == {"tags": ["a"]}
        assert len(request.arguments) == 1
        request.arguments["tags"].append("b")
        return await call_next(request)

    view = await ended([call("it", call_id="c1", tags=["a"])], [it], middleware=[Hook(look)])
    assert answers(view) == [("c1", "a")]


async def test_a_call_tried_again_by_a_hook_has_one_result() -> None:
    tries: list[int] = []

    async def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("down")
        return "up"

    async def again(request: ToolRequest, call_next: Any) -> Any:
        response = await call_next(request)
        while response.error_class == "transient":
            response = await call_next(request)
        return response

    view = await ended(every("flaky"), [flaky], middleware=[Hook(again)])
    assert (len(tries), answers(view)) == (3, [("c1", "up")])


async def test_a_hook_is_not_shown_arguments_that_are_no_object() -> None:
    seen: list[str] = []

    async def look(request: ToolRequest, call_next: Any) -> Any:
        seen.append(request.call.id)
        return await call_next(request)

    calls = [ToolCall("c1", "ok", "{"), ToolCall("c2", "ok", "[]"), ToolCall("c3", "ok", "")]
    view = await ended(calls, [ok], middleware=[Hook(look)])
    assert (seen, [result_of(view, each.id).is_error for each in calls]) == (["c3"], [True, True, False])


async def test_calls_of_one_id_or_none_each_get_a_result_of_their_own() -> None:
    async def it(n: int) -> int:
        return n

    calls = [call("it", call_id="c", n=1), call("it", call_id="c", n=2), call("it", n=3), call("it", n=4)]
    view = await ended(calls, [it])
    assert [text for _, text in answers(view)] == ["1", "2", "3", "4"]
    assert len({call_id for call_id, _ in answers(view)}) == 4
    assert breaches(view) == []


async def test_several_calls_without_ids_have_one_each_and_what_they_leave_out_has_its_default() -> None:
    async def weigh(n: int, unit: str = "kg") -> str:
        return f"{n} {unit}"

    view = await ended([call("weigh", n=1), call("weigh", n=2), call("weigh", n=3, unit="g")], [weigh])
    told = answers(view)
    assert [text for _, text in told] == ["1 kg", "2 kg", "3 g"]
    assert [call_id for call_id, _ in told] == [each.id for each in view[1].tool_calls]
    assert len({call_id for call_id, _ in told if call_id}) == 3


async def test_a_call_id_may_come_back_in_a_later_step() -> None:
    model = ScriptedModel(call("ok", call_id="c1"), call("ok", call_id="c1"), "done")
    result = await Agent("X", model=model, tools=[ok]).run("go")
    assert (answers(result.messages), unlawful(requests(model))) == ([("c1", "ok")] * 2, [])


class Odd:
    def __repr__(self) -> str:
        return "odd \ud83d"


class Row(msgspec.Struct):
    n: int


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("text", "text"),
        ("", ""),
        (None, ""),
        (7, "7"),
        (True, "true"),
        (1.5, "1.5"),
        ({"a": [1, "é"]}, '{"a":[1,"é"]}'),
        ([], "[]"),
        (date(2024, 5, 1), '"2024-05-01"'),
        (Row(1), '{"n":1}'),
        (123456789012345678901234567890, "123456789012345678901234567890"),
        ("half \ud83d", "half \ufffd"),
        ({"half": "\ud83d"}, '{"half":"\ufffd"}'),
        (Odd(), "odd \ufffd"),
        (ToolCall("c9", "other"), '{"kind":"tool_call","id":"c9","name":"other"}'),
        ([Text("see "), ToolCall("c9", "other")], 'see {"kind":"tool_call","id":"c9","name":"other"}'),
    ],
)
async def test_what_a_tool_gives_is_shown_as_text_or_json(value: Any, shown: str) -> None:
    async def it() -> Any:
        return value

    result = result_of(await ended(every("it"), [it]), "c1")
    assert (result.text, result.is_error) == (shown, False)


async def test_parts_that_a_tool_gives_stay_parts() -> None:
    async def it() -> Any:
        return [Text("look"), Image(url="https://example.org/a.png")]

    assert result_of(await ended(every("it"), [it]), "c1").content == (
        Text("look"),
        Image(url="https://example.org/a.png"),
    )


async def test_a_result_that_cannot_be_shown_is_an_error_of_its_call() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise LookupError("no repr")

    async def it() -> Any:
        return Broken()

    assert result_of(await ended(every("it", "ok"), [it, ok]), "c1").is_error


async def test_each_call_is_told_from_start_to_end_with_its_progress() -> None:
    from handrail.agent import RunContext

    async def it(context: RunContext[None]) -> str:
        context.progress("half way")
        return "ok"

    heard = await hear(Agent("X", model=ScriptedModel(every("it"), "done"), tools=[it]), "go")
    told = [event for event in heard.events if isinstance(event, ToolStart | ToolProgress | ToolEnd)]
    assert [str(event) for event in told] == ["[X] it({})", "[X] c1: half way", "[X] it -> ok"]
    assert [event.path for event in told] == ["X"] * 3


async def test_results_are_new_messages_of_the_agent_with_ids_and_times() -> None:
    view = await ended(every("ok"), [ok])
    result = result_of(view, "c1")
    assert (result.agent, result.name) == ("X", "ok")
    assert result.id
    assert abs((result.created_at or 0) - time.time() * 1000) < 60_000
    assert isinstance(view, History)


async def test_a_sync_tool_that_hangs_is_given_up_and_its_call_answered() -> None:
    release = threading.Event()

    def hang() -> None:
        release.wait(30)

    view = await ended(every("hang"), [an("hang", hang, timeout=0.01)])
    release.set()
    assert "0.01 seconds" in result_of(view, "c1").text


@pytest.mark.parametrize("timeout", [None, 60])
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_that_raises_stop_iteration_has_an_error_result(timeout: float | None, is_async: bool) -> None:
    def first(n: int = 0) -> Any:
        return next(iter(range(n)))

    async def first_async(n: int = 0) -> Any:
        return first(n)

    it = an("it", first_async if is_async else first, timeout=timeout)
    view = await ended(every("it", "ok"), [it, ok])
    assert (result_of(view, "c1").is_error, result_of(view, "c2").text) == (True, "ok")
    assert "StopIteration" in result_of(view, "c1").text


@pytest.mark.parametrize("debug", [False, True])
async def test_the_progress_of_a_sync_tool_is_told_while_it_runs(debug: bool) -> None:
    from handrail.agent import RunContext

    listening, heard = threading.Event(), threading.Event()

    def it(context: RunContext[None]) -> str:
        assert listening.wait(30)
        context.progress("half way")
        return "heard" if heard.wait(30) else "nobody listens"

    loop = asyncio.get_running_loop()
    loop.set_debug(debug)
    told: list[str] = []
    async with Agent("X", model=ScriptedModel(every("it"), "done"), tools=[it]).stream("go") as run:
        async for event in run:
            if isinstance(event, ToolStart):
                loop.call_soon(listening.set)  # which is when this waits for the next event
            if isinstance(event, ToolProgress):
                told.append(f"{event.call_id} {event.text}")
                heard.set()
        assert answers(run.result.messages) == [("c1", "heard")]
    assert told == ["c1 half way"]


@pytest.mark.parametrize("hooked", [False, True])
async def test_arguments_with_a_number_beyond_what_is_read_are_an_error_of_their_call(hooked: bool) -> None:
    seen: list[str] = []

    async def look(request: ToolRequest, call_next: Any) -> Any:
        seen.append(str(dict(request.arguments)))
        return await call_next(request)

    async def it(n: int) -> str:
        return str(n)

    long, short = ToolCall("c1", "it", f'{{"n":{"7" * 5000}}}'), ToolCall("c2", "it", f'{{"n":{"7" * 30}}}')
    view = await ended([long, short], [it], middleware=[Hook(look)] if hooked else [])
    assert (result_of(view, "c1").is_error, result_of(view, "c2").text) == (True, "7" * 30)
    assert len(result_of(view, "c1").text) < 500
    assert len(seen) == hooked


def direct(name: str, fn: Any, **options: Any) -> Tool:
    return an(name, fn, return_direct=True, **options)


async def test_the_results_of_direct_tools_are_the_answer_and_the_model_is_not_asked_again() -> None:
    model = ScriptedModel(every("a", "b"))
    tools = [direct("a", ok, output_sensitivity="internal"), direct("b", ok, output_sensitivity="secret")]
    heard = await hear(Agent("X", model=model, tools=tools), "go")
    result = heard.result
    assert result is not None
    assert (result.output, result.status, result.finish_reason, roles(result.messages)) == (
        *("ok\nok", "completed", "stop"),
        "uatta",
    )
    assert (result.message, result.messages[-1].agent) == (result.messages[-1], "X")
    assert (result.messages[-1].sensitivity, len({message.id for message in result.messages})) == ("secret", 5)
    assert "".join(event.text for event in heard.of(TextHeard)) == "ok\nok"
    assert heard.of(MessageDone)[-1].message == result.message


@pytest.mark.parametrize("names", [["a", "ok"], ["a", "bad"], ["a", "nothing"], ["ok"], ["a", "transfer_to_other"]])
async def test_unless_all_calls_are_of_direct_tools_and_succeed_the_model_sees_the_results(names: list[str]) -> None:
    calls = [call(name, call_id=f"c{number}") for number, name in enumerate(names)]
    model = ScriptedModel(calls, "done")
    other = Agent("other", model=ScriptedModel("I take it."), description="It waits.")
    agent = Agent(
        "X",
        model=model,
        tools=[direct("a", ok), ok, direct("bad", bad)],
        handoffs=[handoff(other, returns=full())],
    )
    result = await agent.run("go")
    assert (result.output, len(model.requests), unlawful(requests(model))) == ("done", 2, [])


async def test_a_direct_answer_is_recorded_and_the_conversation_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    model = ScriptedModel(call("a", call_id="c1"), "And then?")
    agent = Agent("X", model=model, tools=[direct("a", ok)])
    await agent.run("go", session=path)
    assert [message.text for message in Session(path).history("X")] == ["go", "", "ok", "ok"]
    assert (await agent.run("on", session=path)).output == "And then?"
    assert (unlawful(requests(model)), verify(path).state) == ([], "intact")


def test_an_agent_with_an_output_type_has_no_tool_that_answers_in_its_place() -> None:
    with pytest.raises(BuildError, match="X has an output type, and a would return another answer directly"):
        Agent("X", model=ScriptedModel(), tools=[direct("a", ok)], output_type=int)


async def test_an_answer_given_as_a_call_that_was_cut_off_is_asked_for_again() -> None:
    model = ScriptedModel(cut(ToolCall("o1", "final_answer", '{"value": 1')), call("final_answer", value=12))
    result = await Agent("X", model=model, tools=[ok], output_type=Output(int, mode="tool")).run("go")
    assert (result.output, unlawful(requests(model))) == (12, [])


def cut(*calls: ToolCall, reason: Any = "length") -> ChatResponse:
    return ChatResponse(assistant("I look.", *calls), Usage(1, 1), reason)


@pytest.mark.parametrize("arguments", ["", " ", '{"n": 1', '{"n": 1}, "m": {', "[1]", '"n"'])
async def test_a_call_in_whose_middle_the_answer_ended_is_not_run_and_the_others_are(arguments: str) -> None:
    ran: list[int] = []

    async def it(n: int = 0) -> str:
        ran.append(n)
        return "ok"

    model = ScriptedModel(cut(call("it", call_id="c1", n=7), ToolCall("c2", "it", arguments)), "done")
    result = await Agent("X", model=model, tools=[it]).run("go", limits=Limits(max_tool_calls=1))
    told = result_of(result.messages, "c2")
    assert (ran, result.output, told.is_error, unlawful(requests(model))) == ([7], "done", True, [])
    assert "reached its length limit in the middle of this call" in told.text


async def test_only_the_last_call_of_an_answer_that_was_cut_can_be_incomplete() -> None:
    last = call("ok", call_id="c2")
    for response in (cut(ToolCall("c1", "ok", ""), last), cut(ToolCall("c1", "ok", ""), reason="tool_calls")):
        result = await Agent("X", model=ScriptedModel(response, "done"), tools=[ok]).run("go")
        assert [text for _, text in answers(result.messages)] == ["ok"] * len(response.message.tool_calls)


@pytest.mark.parametrize("arguments", ["", '{"reason": "beca', '{"reason": "because"}'])
async def test_a_transfer_in_whose_middle_the_answer_ended_does_not_take_place(arguments: str) -> None:
    b = Agent("B", model=ScriptedModel("I am B."))
    model = ScriptedModel(cut(call("ok", call_id="c1"), ToolCall("h1", "transfer_to_b", arguments)), "I am A.")
    result = await Agent("A", model=model, tools=[ok], handoffs=[handoff(b, filter=full())]).run("go")
    whole = arguments.endswith("}")
    assert (result.output, bool(result.handoffs)) == (("I am B.", True) if whole else ("I am A.", False))


async def test_why_the_last_answer_ended_is_told_of_the_turn_and_the_run() -> None:
    seen: list[str] = []

    class Look(Middleware):
        async def around_turn(self, request: Any, call_next: Any) -> Any:
            result = await call_next(request)
            seen.append(result.finish_reason)
            return result

    answer = ChatResponse(assistant("It is a long st"), Usage(1, 1), "length")
    result = await Agent("X", model=ScriptedModel(answer), middleware=[Look()]).run("go")
    assert (seen, result.finish_reason) == (["length"], "length")


async def test_a_layer_around_a_tool_sees_the_run_as_its_turn_does_with_the_call_of_its_own() -> None:
    seen: list[RunContext[Any]] = []

    async def look(request: ToolRequest, call_next: Any) -> Any:
        seen.append(request.run)
        first = (request.run.attempt, request.run.key, request.run.step, request.run.call_id)
        assert first == (1, "", 1, "c1")
        await call_next(request)
        return await call_next(request)

    agent = Agent("X", model=ScriptedModel(every("ok"), "done"), tools=[an("ok", ok)], middleware=[Hook(look)])
    result = await agent.run("go", deps="theirs")
    [context] = seen
    told = (context.run_id, context.path, context.agent, context.deps, context.attempt, context.step)
    assert told == (result.run_id, "X", "X", "theirs", 2, 1)
    assert context.budget.steps == 2
