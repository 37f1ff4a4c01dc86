"""A run writes down what it does, in the order in which it counts, and nothing where there is no session."""

from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.agent import (
    Agent,
    BuildError,
    FunctionModel,
    InvalidAnswer,
    Limits,
    RunContext,
    ScriptedModel,
    Settings,
    handoff,
    tool,
)
from handrail.agent.errors import StateError
from handrail.agent.journals import Log, view_edit
from handrail.agent.kernel import CallChat, CallTool, ChatRequest, Middleware, ToolRequest, ToolResponse
from handrail.agent.models import ChatResponse
from handrail.filters import FixedIds, Message, assistant, call, digest, full, user
from handrail.sessions import Session, Usage, Views, read, verify
from handrail.sessions.records import (
    AgentRecord,
    HandoffRecord,
    MessageRecord,
    ModelCallRecord,
    ToolCallRecord,
    ToolResultRecord,
    TurnRecord,
)


async def ok(n: int = 0) -> str:
    return "ok"


async def written(path: Path, agent: Agent, **options: Any) -> list[Any]:
    """The records of a run, but for the header."""
    await agent.run("go", session=str(path), **options)
    assert verify(path).state == "intact"
    return [*read(path).records()][1:]


def of(records: list[Any], kind: type[Any]) -> list[Any]:
    return [record for record in records if type(record) is kind]


async def test_a_run_is_written_from_its_first_agent_to_the_end_of_its_last_turn(tmp_path: Path) -> None:
    model = ScriptedModel(call("ok", call_id="c1"), call("transfer_to_b", call_id="h1"), "done")
    b = Agent("B", model=model)
    agent = Agent("A", model=model, tools=[ok], handoffs=[handoff(b, filter=full())])
    records = await written(tmp_path / "s.jsonl", agent)
    assert [type(record).__name__.removesuffix("Record") for record in records] == [
        *["Agent", "Turn", "Message"],
        *["ModelCall", "Message", "ToolCall", "ToolResult"],
        *["ModelCall", "Message", "Handoff", "ToolResult", "Turn"],
        *["Agent", "Turn", "ModelCall", "Message", "Turn", "Budget"],
    ]
    ends = [(record.path, record.status, record.steps) for record in of(records, TurnRecord) if record.event == "end"]
    assert ends == [("A", "handed_over", 2), ("B", "completed", 1)]


async def test_an_agent_is_written_down_as_it_took_part_once_a_run(tmp_path: Path) -> None:
    model = ScriptedModel(call("transfer_to_b"), call("transfer_to_a"), "done", name="m1")
    b = Agent("B", model=model, handoffs=["A"])
    agent = Agent("A", model=model, instructions="You are A.", tools=[ok], handoffs=[handoff(b, filter=full())])
    first, second = of(await written(tmp_path / "s.jsonl", agent), AgentRecord)
    assert (first.name, first.instructions, first.model, first.tools) == ("A", ("You are A.",), "m1", ("ok",))
    assert first.handoffs == {"transfer_to_b": handoff(b, filter=full()).filter.descriptor}
    assert second.name == "B"


async def test_a_call_is_written_with_the_arguments_it_ran_with(tmp_path: Path) -> None:
    class Tenfold(Middleware):
        async def around_tool(self, request: Any, call_next: Any) -> Any:
            return await call_next(request.replace(arguments={"n": request.arguments["n"] * 10}))

    model = ScriptedModel(call("ok", call_id="c1", n=1), "done")
    agent = Agent("X", model=model, tools=[ok], middleware=[Tenfold()])
    (record,) = of(await written(tmp_path / "s.jsonl", agent), ToolCallRecord)
    assert (record.call_id, record.name, record.arguments) == ("c1", "ok", '{"n": 10}')


async def test_a_call_that_never_began_has_a_result_and_no_mark(tmp_path: Path) -> None:
    model = ScriptedModel([call("unknown", call_id="c1"), call("ok", call_id="c2", n="x")], "done")
    records = await written(tmp_path / "s.jsonl", Agent("X", model=model, tools=[ok]))
    assert of(records, ToolCallRecord) == []
    assert [record.message.call_id for record in of(records, ToolResultRecord)] == ["c1", "c2"]


async def test_results_are_written_as_they_come_in_and_read_back_in_call_order(tmp_path: Path) -> None:
    import asyncio

    done = asyncio.Event()

    async def slow() -> str:
        await done.wait()
        return "slow"

    async def quick() -> str:
        done.set()
        return "quick"

    model = ScriptedModel([call("slow", call_id="c1"), call("quick", call_id="c2")], "done")
    path = tmp_path / "s.jsonl"
    records = await written(path, Agent("X", model=model, tools=[slow, quick]))
    assert [record.message.text for record in of(records, ToolResultRecord)] == ["quick", "slow"]
    assert [message.text for message in Session(path).history("X")] == ["go", "", "slow", "quick", "done"]


async def test_each_attempt_of_a_model_call_is_written_with_what_it_was_sent_and_what_it_cost(tmp_path: Path) -> None:
    from handrail.agent import ModelUnavailable

    class Again(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            try:
                return await call_next(request)
            except ModelUnavailable:
                return await call_next(request)

    model = ScriptedModel(ModelUnavailable("down", spent=Usage(5)), ChatResponse(assistant("done"), Usage(7, 1)))
    path = tmp_path / "s.jsonl"
    first, second = of(await written(path, Agent("X", model=model, middleware=[Again()])), ModelCallRecord)
    assert (first.attempt, first.usage.input_tokens, first.error) == (1, 5, "ModelUnavailable: down")
    assert (second.attempt, second.usage.input_tokens, second.error) == (2, 7, None)
    assert first.request == second.request == ""
    assert second.message_id == Session(path).history("X")[-1].id
    assert Session(path).usage.input_tokens == 12


async def test_a_model_call_on_messages_that_a_hook_changed_is_written_with_their_digest(tmp_path: Path) -> None:
    class Short(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            return await call_next(request.replace(messages=request.messages[-1:]))

    path = tmp_path / "s.jsonl"
    agent = Agent("X", model=ScriptedModel("done"), middleware=[Short()])
    await agent.run([user("one", id="u1"), assistant("two", id="a1"), user("three", id="u2")], session=path)
    (record,) = [record for record in read(path).records() if isinstance(record, ModelCallRecord)]
    assert record.request == digest(Session(path).history("X")[2:3])


async def test_an_answer_of_nothing_is_written_and_in_no_view(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    records = await written(path, Agent("X", model=ScriptedModel("")))
    assert [record.aside for record in of(records, MessageRecord)] == [False, True]
    assert len(Session(path).history("X")) == 1


async def test_a_handoff_stands_before_its_calls_result_and_says_what_crossed(tmp_path: Path) -> None:
    model = ScriptedModel([call("ok", call_id="c1"), call("transfer_to_b", call_id="h1", reason="why")], "done")
    b = Agent("B", model=model)
    records = await written(
        tmp_path / "s.jsonl", Agent("A", model=model, tools=[ok], handoffs=[handoff(b, filter=full())])
    )
    (record,) = of(records, HandoffRecord)
    place = records.index(record)
    assert records[place - 1].message.call_id == "c1"
    assert records[place + 1].message.call_id == "h1"
    assert (record.source, record.target, record.call_id, record.view_length) == ("A", "B", "h1", 3)
    assert [(note.label, note.text) for note in record.notes] == [("reason", "why")]


async def test_a_hook_that_changes_a_turns_messages_changes_the_view_in_the_file_too(tmp_path: Path) -> None:
    class Turned(Middleware):
        async def around_turn(self, request: Any, call_next: Any) -> Any:
            changed = [message.replace(content=message.text.upper()) for message in reversed(request.messages)]
            return await call_next(request.replace(messages=[user("first", id="x1"), *changed[:2]]))

    path = tmp_path / "s.jsonl"
    agent = Agent("X", model=ScriptedModel("done"), middleware=[Turned()])
    result = await agent.run([user(text) for text in ("one", "two", "three")], session=str(path))
    assert [message.text for message in result.messages] == ["first", "THREE", "TWO", "done"]
    assert Session(path).history("X") == result.messages
    assert verify(path).state == "intact"


def test_without_a_session_nothing_is_kept() -> None:
    log = Log(None)
    log.stage(AgentRecord(name="X"))
    log.write(AgentRecord(name="X"))
    log.end_turn()
    assert not log.on


said = st.builds(lambda number, text: user(text, id=f"m{number}"), st.integers(0, 9), st.sampled_from(["a", "b"]))
views = st.lists(said, max_size=8, unique_by=lambda message: message.id)


@given(views, views)
def test_the_record_of_an_edit_leads_from_the_one_view_to_the_other(
    before: list[Message], after: list[Message]
) -> None:
    records = [MessageRecord(path="X", message=message) for message in before]
    edited = Views.of([*records, view_edit("X", before, after, "a test")])
    assert list(edited.history("X")) == after


async def test_the_same_run_is_written_in_the_same_lines(tmp_path: Path) -> None:
    from handrail.filters import FixedClock

    def fixed() -> dict[str, Any]:
        return {"ids": FixedIds("m"), "clock": FixedClock()}

    for name in ("one", "two"):
        with Session(tmp_path / name, **fixed()) as session:
            await Agent("X", model=ScriptedModel(call("ok"), "done"), tools=[ok]).run("go", session=session, **fixed())
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


class Watched(Session):
    """A session that notes what is asked of it, in order."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.order: list[str] = []

    def append(self, *records: Any) -> None:
        super().append(*records)
        self.order += [type(record).__name__.removesuffix("Record") for record in records]

    def before_effect(self) -> None:
        super().before_effect()
        self.order.append("synced")

    def turn_end(self) -> None:
        super().turn_end()
        self.order.append("turn synced")


@pytest.mark.parametrize(
    ("effects", "between"),
    [("side_effecting", ["synced"]), ("external", ["synced"]), ("read_only", []), ("pure", [])],
)
async def test_the_mark_of_a_call_is_synced_before_a_tool_with_effects_runs(
    effects: Any, between: list[str], tmp_path: Path
) -> None:
    @tool(side_effects=effects)
    async def act() -> str:
        session.order.append("acted")
        return "ok"

    with Watched(tmp_path / "s.jsonl") as session:
        await Agent("X", model=ScriptedModel(call("act", call_id="c1"), "done"), tools=[act]).run("go", session=session)
        place = session.order.index("ToolCall")
        assert session.order[place : session.order.index("ToolResult")] == ["ToolCall", *between, "acted"]


async def test_every_turn_is_synced_at_its_end_and_the_last_one_with_its_own_record(tmp_path: Path) -> None:
    model = ScriptedModel(call("transfer_to_b", call_id="h1"), "done")
    agent = Agent("A", model=model, handoffs=[handoff(Agent("B", model=model), filter=full())])
    with Watched(tmp_path / "s.jsonl") as session:
        await agent.run("go", session=session)
        first = session.order.index("turn synced")
        assert session.order[first - 2 : first] == ["Handoff", "ToolResult"]
        last = max(place for place, each in enumerate(session.order) if each == "Turn")
        assert session.order[last + 1 : last + 3] == ["Budget", "turn synced"]


async def test_the_first_turn_of_a_run_tells_what_the_run_was_given(tmp_path: Path) -> None:
    class Quiet(Middleware):
        pass

    options: dict[str, Any] = {"limits": Limits(max_steps=7), "instructions": "Be brief.", "middleware": [Quiet()]}
    b = Agent("B", model=ScriptedModel("done"))
    agent = Agent("A", model=ScriptedModel(call("transfer_to_b")), handoffs=[b])
    first, *others = of(await written(tmp_path / "s.jsonl", agent, **options), TurnRecord)
    assert first.given == {"limits": {"max_steps": 7}, "instructions": "Be brief.", "layers": ["Quiet"]}
    assert [each.given for each in others] == [{}, {}, {}]


async def test_an_agent_is_told_with_digests_of_its_tools_and_with_settings_but_for_what_may_be_a_secret(
    tmp_path: Path,
) -> None:
    settings = Settings(temperature=0.5, extra={"user": "tell-nobody"})
    agent = Agent("X", model=ScriptedModel("done"), tools=[ok], instructions={"a": "A.", "b": "B."}, settings=settings)
    (record,) = of(await written(tmp_path / "s.jsonl", agent), AgentRecord)
    assert (record.blocks, list(record.specs), record.settings["temperature"]) == (("a", "b"), ["ok"], 0.5)
    assert "tell-nobody" not in (tmp_path / "s.jsonl").read_text()


async def test_a_call_that_is_asked_as_its_agent_says_needs_no_more_words(tmp_path: Path) -> None:
    (record,) = of(
        await written(tmp_path / "s.jsonl", Agent("X", model=ScriptedModel("done"), tools=[ok])), ModelCallRecord
    )
    assert (record.instructions, record.tools, record.settings, record.answer) == ({}, None, None, None)


async def test_what_a_layer_changes_of_a_request_stands_in_its_call(tmp_path: Path) -> None:
    class Changing(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            words = {"more": "Speak up."}
            return await call_next(request.replace(instructions=words, tools=[], settings=Settings(seed=1)))

    agent = Agent("X", model=ScriptedModel("done"), tools=[ok], instructions="You are X.", middleware=[Changing()])
    (record,) = of(await written(tmp_path / "s.jsonl", agent), ModelCallRecord)
    assert (record.instructions, record.tools, record.settings) == (
        {"more": "Speak up.", "agent": None},
        {},
        {"seed": 1},
    )


async def test_what_a_model_gave_is_kept_where_no_message_says_it(tmp_path: Path) -> None:
    class Judging(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            first = await call_next(request)
            await request.run.ask_model(self, first.message.text, purpose="moderation")
            second = await call_next(request)
            return second if request.run.step == 1 else second.replace(message=assistant("censored"))

    model = ScriptedModel("no", "bad", call("ok"), "x", "fine", "rude")
    agent = Agent("X", model=model, tools=[ok], middleware=[Judging()])
    calls = of(await written(tmp_path / "s.jsonl", agent), ModelCallRecord)
    told = [(each.purpose, each.answer.text if each.answer else None) for each in calls]
    assert sorted(told, key=str) == sorted(
        [
            ("moderation", "bad"),
            ("answer", "no"),
            ("answer", None),
            ("moderation", "fine"),
            ("answer", "x"),
            ("answer", "rude"),
        ],
        key=str,
    )


async def test_what_a_tool_gave_is_kept_where_a_layer_changed_it_or_it_wrote_or_failed(tmp_path: Path) -> None:
    class Channels(TypedDict):
        seen: int

    class Louder(Middleware):
        async def around_tool(self, request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            return response.replace(content="LOUD") if request.tool.name == "ok" else response

    @tool
    async def keep() -> ToolResponse:
        return ToolResponse("kept", writes={"seen": 3})

    @tool
    async def bad() -> None:
        raise TimeoutError

    asked = [call("ok", call_id="c1"), call("keep", call_id="c2"), call("bad", call_id="c3")]
    agent = Agent(
        "X", model=ScriptedModel(asked, "done"), tools=[ok, keep, bad], channels=Channels, middleware=[Louder()]
    )
    loud, kept, failed = of(await written(tmp_path / "s.jsonl", agent), ToolResultRecord)
    assert (loud.message.text, loud.gave.content[0].text) == ("LOUD", "ok")
    assert (bytes(kept.gave.writes), kept.gave.changed) == (b'{"seen":3}', False)
    assert failed.gave.error_class == "transient"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"tools": ()}, {"tools": {}}),
        ({"instructions": {"tone": "Calm."}}, {"instructions": {"tone": "Calm."}}),
        ({"settings": Settings(temperature=0.0)}, {"settings": {"temperature": 0.0}}),
    ],
)
async def test_whatever_alone_a_layer_changes_of_a_request_is_in_the_record(
    tmp_path: Path, change: dict[str, Any], told: dict[str, Any]
) -> None:
    [record] = of(await written(tmp_path / "s.jsonl", asking(**change)), ModelCallRecord)
    found = {"instructions": record.instructions, "tools": record.tools, "settings": record.settings}
    assert found == {"instructions": {}, "tools": None, "settings": None, **told}


async def test_settings_that_a_layer_put_in_are_in_the_record_of_the_call_and_in_no_other(tmp_path: Path) -> None:
    class Cool(Middleware):
        async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
            if request.run.step == 1:
                request = request.replace(settings=Settings(temperature=0.0))
            return await call_next(request)

    agent = Agent("A", model=ScriptedModel(call("ok", call_id="c1"), "done"), tools=[ok], middleware=[Cool()])
    calls = of(await written(tmp_path / "s.jsonl", agent), ModelCallRecord)
    assert [record.settings for record in calls] == [{"temperature": 0.0}, None]


class Odd:
    """A value that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("gave", "told"),
    [
        (Odd(), "What odd gave cannot be shown: RuntimeError."),
        (CIRCLE, "What odd gave cannot be shown: ValueError."),
        (ToolResponse(value=Odd()), "What odd gave cannot be shown: RuntimeError."),
        (ToolResponse(content="x", is_error="yes"), "x"),  # type: ignore[arg-type]  # this is the test
        (ToolResponse(content="x", is_error=True, error_class=7), "x"),  # type: ignore[arg-type]  # this is the test
        (ToolResponse(content="x", sensitivity=object()), "x"),  # type: ignore[arg-type]  # this is the test
    ],
)
async def test_a_value_that_cannot_be_written_down_and_that_a_layer_changes_ends_no_run(
    tmp_path: Path, gave: Any, told: str
) -> None:
    class Loud(Middleware):
        async def around_tool(self, request: ToolRequest, call_next: CallTool) -> ToolResponse:
            await call_next(request)
            return ToolResponse(content="LOUD")

    async def odd() -> Any:
        return gave

    agent = Agent("A", model=ScriptedModel(call("odd", call_id="c1"), "done"), tools=[odd], middleware=[Loud()])
    [result] = of(await written(tmp_path / "s.jsonl", agent), ToolResultRecord)
    assert (result.message.text, result.message.is_error) == ("LOUD", False)
    assert result.gave.content[0].text == told
    assert [message.call_id for message in Session(tmp_path / "s.jsonl").history("A")][-2] == "c1"


async def test_a_class_of_errors_that_a_layer_gives_and_that_is_no_text_is_written_as_failed(tmp_path: Path) -> None:
    class Refusing(Middleware):
        async def around_tool(self, request: ToolRequest, call_next: CallTool) -> ToolResponse:
            return ToolResponse(content="no", is_error=True, error_class=7)  # type: ignore[arg-type]  # this is the test

    agent = Agent("A", model=ScriptedModel(call("ok", call_id="c1"), "done"), tools=[ok], middleware=[Refusing()])
    [result] = of(await written(tmp_path / "s.jsonl", agent), ToolResultRecord)
    assert (result.message.is_error, result.gave.error_class) == (True, "failed")


async def test_writes_that_are_none_are_told_as_they_are_without_a_session(tmp_path: Path) -> None:
    async def odd() -> Any:
        return ToolResponse(content="x", writes=[1])  # type: ignore[arg-type]  # this is the test

    for options in ({}, {"session": str(tmp_path / "s.jsonl")}):
        agent = Agent("A", model=ScriptedModel(call("odd", call_id="c1")), tools=[odd])
        with pytest.raises(StateError, match="'writes' are values by channel, not list"):
            await agent.run("go", **options)  # type: ignore[arg-type]  # there is no other option
    assert verify(tmp_path / "s.jsonl").state == "intact"


def answering(**changes: Any) -> Agent:
    return Agent("A", model=FunctionModel(lambda _: ChatResponse(assistant("hi"), **changes)))


def asking(**changes: Any) -> Agent:
    class Changes(Middleware):
        async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
            return await call_next(request.replace(**changes))

    return Agent("A", model=ScriptedModel("hi"), tools=[ok], middleware=[Changes()])


@pytest.mark.parametrize(
    ("agent", "wrong"),
    [
        (answering(finish_reason=None), "finish_reason is NoneType, not a text"),
        (answering(usage=None), "usage does not count: None"),
        (answering(usage=Usage(input_tokens=1.5)), "usage does not count"),  # type: ignore[arg-type]  # this is the test
        *[(answering(usage=Usage(**{name: "1"})), "does not count") for name in Usage.__struct_fields__],  # type: ignore[arg-type]  # this is the test
        (asking(purpose=None), "asks the model for the purpose None; one is answer, "),
        (asking(instructions=None), "asks the model with instructions that are not texts by name"),
        (asking(instructions={"tone": 1}), "asks the model with instructions that are not texts by name"),
    ],
)
async def test_what_would_make_a_line_that_nobody_can_read_is_refused_with_a_session_and_without(
    tmp_path: Path, agent: Agent, wrong: str
) -> None:
    with pytest.raises(InvalidAnswer, match=wrong):
        await agent.run("go")
    with pytest.raises(InvalidAnswer, match=wrong):
        await agent.run("go", session=str(tmp_path / "s.jsonl"))
    async with agent.stream("go", session=str(tmp_path / "t.jsonl")) as stream:
        with pytest.raises(InvalidAnswer, match=wrong):
            _ = [event async for event in stream]
    assert [verify(path).state for path in sorted(tmp_path.iterdir())] == ["intact", "intact"]


@pytest.mark.parametrize("reason", [None, 7, object()])
async def test_a_handoff_by_code_whose_reason_is_no_text_is_an_error_of_the_tool(tmp_path: Path, reason: Any) -> None:
    async def go(ctx: RunContext[Any]) -> str:
        ctx.handoff("B", reason=reason)
        return "ok"

    b = Agent("B", model=ScriptedModel("bye"))
    agent = Agent("A", model=ScriptedModel(call("go", call_id="c1"), "done"), tools=[go], handoffs=[b])
    [result] = of(await written(tmp_path / "s.jsonl", agent), ToolResultRecord)
    assert result.message.is_error
    assert f"the reason is a text, not {type(reason).__name__}" in result.message.text


async def test_a_note_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    async def go(ctx: RunContext[Any]) -> str:
        with pytest.raises(StateError, match="'name' of a note is a text, not int"):
            ctx.note(7)  # type: ignore[arg-type]  # this is the test
        return "ok"

    agent = Agent("A", model=ScriptedModel(call("go", call_id="c1"), "done"), tools=[go])
    [result] = of(await written(tmp_path / "s.jsonl", agent), ToolResultRecord)
    assert result.message.text == "ok"


def test_a_model_whose_name_is_no_text_is_refused() -> None:
    with pytest.raises(BuildError, match="the name of the model of A is a text, not 7"):
        Agent("A", model=ScriptedModel(name=7))  # type: ignore[arg-type]  # this is the test
