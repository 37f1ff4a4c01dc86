"""A line at the beginning and one at the end, with what is known and without what was said."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from handrail.agent import (
    Agent,
    BuildError,
    ChatResponse,
    FunctionModel,
    InvalidOutput,
    ModelUnavailable,
    ScriptedModel,
    ScriptError,
    handoff,
    tool,
)
from handrail.agent.kernel import Kernel, Middleware, ToolResponse
from handrail.agent.middleware import Logging, Validation
from handrail.filters import Reasoning, assistant, call, last_user, user
from handrail.filters import Text as Words
from handrail.sessions import Usage


class Lines(logging.Handler):
    """The records that a logger was given."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def of(self, hook: str, event: str = "ends") -> list[Any]:
        return [record for record in self.records if (record.hook, record.event) == (hook, event)]

    def __str__(self) -> str:
        return "\n".join([f"{record.getMessage()} {record.__dict__}" for record in self.records])


@pytest.fixture
def lines() -> Iterator[Lines]:
    logger, handler = logging.getLogger("handrail.test"), Lines()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)


def logged(*layers: Middleware, text: bool = False, **options: Any) -> list[Middleware]:
    return [Logging("handrail.test", text=text, **options), *layers]


async def ok(what: str = "") -> str:
    return "ok"


def both() -> Agent:
    """An agent that calls a tool and hands over to one that answers."""
    model = ScriptedModel(call("ok", call_id="c1"), call("transfer_to_b", call_id="h1"))
    other = Agent("B", model=ScriptedModel(ChatResponse(assistant("done"), Usage(5, 2))), middleware=logged())
    edge = handoff(other, filter=last_user())
    return Agent("A", model=model, tools=[ok], handoffs=[edge], middleware=logged())


async def test_every_hook_has_a_line_when_it_begins_and_one_when_it_ends(lines: Lines) -> None:
    await both().run("go")
    assert [f"{record.agent_path} {record.hook} {record.event}" for record in lines.records] == [
        "A turn begins",
        "A chat begins",
        "A chat ends",
        "A tool begins",
        "A tool ends",
        "A chat begins",
        "A chat ends",
        "A handoff begins",
        "A handoff ends",
        "A turn ends",
        "B turn begins",
        "B chat begins",
        "B chat ends",
        "B turn ends",
    ]


async def test_the_facts_stand_on_the_record_and_in_the_line(lines: Lines) -> None:
    result = await both().run("go")
    chat = lines.of("chat")[-1]
    facts = {"model": "scripted", "purpose": "answer", "messages": 1, "tools": 0, "step": 1, "attempt": 1, "calls": 0}
    facts |= {"status": "completed", "finish_reason": "stop", "characters": 4, "input_tokens": 5, "output_tokens": 2}
    assert {name: getattr(chat, name) for name in facts} == facts
    assert chat.run_id == result.run_id
    assert chat.seconds >= 0
    assert all(f"{name}={value!r}" in chat.getMessage() for name, value in facts.items())
    assert (chat.levelno, chat.name) == (logging.DEBUG, "handrail.test")


async def test_a_tools_lines_say_which_call_and_how_it_ended(lines: Lines) -> None:
    await both().run("go")
    (begin,), (end,) = lines.of("tool", "begins"), lines.of("tool")
    assert (begin.tool, begin.call_id, begin.step) == ("ok", "c1", 1)
    assert (end.tool, end.call_id, end.status, end.characters) == ("ok", "c1", "completed", 2)


async def test_a_tools_error_result_is_told_by_its_class(lines: Lines) -> None:
    model = ScriptedModel(call("ok", call_id="c1", what=5), "done")
    await Agent("X", model=model, tools=[ok], middleware=logged()).run("go")
    (end,) = lines.of("tool")
    assert (end.status, end.error_class) == ("failed", "invalid_arguments")


async def test_a_turn_and_a_boundary_say_how_they_ended(lines: Lines) -> None:
    await both().run("go")
    source, target = lines.of("turn")
    (crossing,) = lines.of("handoff")
    assert (source.status, source.steps, source.calls) == ("handed_over", 2, 2)
    assert (target.status, target.steps, target.input_tokens) == ("completed", 1, 5)
    assert (crossing.kind, crossing.source, crossing.target, crossing.crossed) == ("handoff", "A", "B", 1)


async def test_attempts_are_counted_where_the_layer_stands(lines: Lines) -> None:
    class Again(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            try:
                return await call_next(request)
            except ModelUnavailable:
                return await call_next(request)

    def agent(*layers: Middleware) -> Agent:
        return Agent("X", model=ScriptedModel(ModelUnavailable("busy"), "done"), middleware=layers)

    await agent(*logged(Again())).run("go")
    assert [(record.event, record.attempt) for record in lines.records if record.hook == "chat"] == [
        ("begins", 1),
        ("ends", 2),
    ]
    lines.records.clear()
    await agent(Again(), Logging("handrail.test", name="inner")).run("go")
    assert [(record.event, record.attempt, getattr(record, "error", "")) for record in lines.of("chat")] == [
        ("ends", 1, "ModelUnavailable"),
        ("ends", 2, ""),
    ]


SECRET = "the PIN is 9041"


@tool(output_sensitivity="secret")
async def pin() -> str:
    """The PIN."""
    return SECRET


async def test_without_text_nothing_that_was_said_is_logged(lines: Lines) -> None:
    async def breaks(word: str) -> str:
        raise LookupError(SECRET)

    model = ScriptedModel(["I say", call("breaks", call_id="c1", word="whisper")], ModelUnavailable("shouting"))
    with pytest.raises(ModelUnavailable):
        await Agent("X", model=model, tools=[breaks], middleware=logged()).run("a question")
    assert not [word for word in ("question", "I say", "whisper", SECRET, "shouting") if word in str(lines)]
    assert (lines.of("turn")[0].status, lines.of("turn")[0].error) == ("failed", "ModelUnavailable")


async def test_with_text_it_is_logged_and_cut(lines: Lines) -> None:
    model = ScriptedModel(["well", call("ok", call_id="c1", what="x" * 50)], ModelUnavailable("busy " * 10))
    with pytest.raises(ModelUnavailable):
        await Agent("X", model=model, tools=[ok], middleware=logged(text=True, cut=20)).run("a question " * 9)
    assert lines.of("turn", "begins")[0].text == "a question a questio…"
    assert lines.of("chat")[0].text == 'well ok({"what":"xxx…'
    assert lines.of("tool", "begins")[0].text == 'ok({"what":"xxxxxxxx…'
    assert lines.of("tool")[0].text == "ok"
    assert lines.of("chat", "begins")[1].text == "ok"
    assert lines.of("turn")[0].text == "busy busy busy busy …"


async def test_what_is_secret_is_not_logged_even_with_text(lines: Lines) -> None:
    said = [user(SECRET, sensitivity="secret"), user([Words(SECRET, sensitivity="secrte")])]
    model = ScriptedModel(call("pin", call_id="c1"), ["so", call("ok", call_id="c2", what=SECRET)], SECRET)
    agent = Agent("X", model=model, tools=[pin, ok], labels="inherit", middleware=logged(text=True))
    await agent.run(said)
    texts = [record.text for record in lines.records if hasattr(record, "text")]
    assert "[REDACTED:secret]" in texts
    assert SECRET not in str(lines)


async def test_an_error_of_an_agent_that_saw_what_is_secret_is_told_by_type_alone(lines: Lines) -> None:
    model = ScriptedModel(ModelUnavailable(f"it said {SECRET}"))
    agent = Agent("X", model=model, labels="inherit", middleware=logged(text=True))
    with pytest.raises(ModelUnavailable):
        await agent.run(user(SECRET, sensitivity="secret"))
    assert lines.of("chat")[0].text == "[REDACTED:secret]"
    assert SECRET not in str(lines)


async def test_what_a_redaction_left_behind_is_not_logged(lines: Lines) -> None:
    agent = Agent("X", model=ScriptedModel("fine"), middleware=logged(text=True))
    await agent.run("my key [REDACTED:secret:key] and where it hung")
    assert lines.of("turn", "begins")[0].text == "[REDACTED:secret]"


async def test_what_a_model_thinks_is_not_logged(lines: Lines) -> None:
    model = ScriptedModel(assistant([Reasoning("hmm"), Words("Yes.")]))
    await Agent("X", model=model, middleware=logged(text=True)).run("go")
    assert lines.of("chat")[0].text == "Yes."
    assert "hmm" not in str(lines)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "plain"),
        ({"a": SECRET}, "<dict>"),
        (5, "<int>"),
        (ToolResponse(SECRET, sensitivity="secret"), "[REDACTED:secret]"),
        (ToolResponse([Words("a"), Words("b", sensitivity="secret")]), "a [REDACTED:secret]"),
    ],
)
async def test_a_tools_value_is_logged_where_its_label_is_known(lines: Lines, value: Any, shown: str) -> None:
    async def give() -> Any:
        return value

    await Kernel(ScriptedModel(), [give], logged(text=True)).tool("give")
    assert lines.of("tool")[0].text == shown


async def test_foreign_errors_are_told_by_type_alone_even_with_text(lines: Lines) -> None:
    class Failing(Middleware):
        async def around_tool(self, request: Any, call_next: Any) -> Any:
            raise LookupError(SECRET)

    agent = Agent("X", model=ScriptedModel(call("ok")), tools=[ok], middleware=logged(Failing(), text=True))
    with pytest.raises(LookupError):
        await agent.run("go")
    assert [(record.error, hasattr(record, "text")) for record in lines.of("tool")] == [("LookupError", False)]
    assert SECRET not in str(lines)


async def test_no_text_ends_a_line_or_steers_a_terminal(lines: Lines) -> None:
    agent = Agent("X", model=ScriptedModel("ok"), middleware=logged(text=True))
    await agent.run("one\ntwo\x1b[2J\u202e")
    message = lines.of("turn", "begins")[0].getMessage()
    assert message.isprintable()
    assert r"one\ntwo\x1b[2J\u202e" in message


async def test_a_cancel_is_logged_and_travels(lines: Lines) -> None:
    begun = asyncio.Event()

    async def hang(request: Any) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    run = asyncio.ensure_future(Agent("X", model=FunctionModel(hang), middleware=logged()).run("go"))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert [(record.hook, record.status) for record in lines.records if record.event == "ends"] == [
        ("chat", "cancelled"),
        ("turn", "cancelled"),
    ]


async def test_what_is_raised_travels_as_it_was(lines: Lines) -> None:
    error = ModelUnavailable("busy")
    with pytest.raises(ModelUnavailable) as found:
        await Agent("X", model=ScriptedModel(error), middleware=logged()).run("go")
    assert found.value is error


async def test_calls_side_by_side_have_lines_of_their_own(lines: Lines) -> None:
    model = ScriptedModel([call("ok", call_id="c1"), call("ok", call_id="c2")], "done")
    await Agent("X", model=model, tools=[ok], middleware=logged()).run("go")
    assert sorted(record.call_id for record in lines.of("tool")) == ["c1", "c2"]


async def test_what_an_inner_layer_did_shows_outside_and_not_inside(lines: Lines) -> None:
    class Shouting(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            return response.replace(message=assistant(response.message.text.upper()))

    layers = logged(Shouting(), Logging("handrail.test", text=True, name="inner"), text=True)
    await Agent("X", model=ScriptedModel("done"), middleware=layers).run("go")
    assert [record.text for record in lines.of("chat")] == ["done", "DONE"]


async def test_where_the_level_is_off_nothing_is_worked_out(lines: Lines) -> None:
    class Unread(logging.Logger):
        def log(self, *args: Any, **options: Any) -> None:
            raise AssertionError("a line was written")

    logger = Unread("unread", logging.INFO)
    result = await Agent("X", model=ScriptedModel(call("ok"), "done"), tools=[ok], middleware=[Logging(logger)]).run(
        "go"
    )
    assert result.output == "done"


async def test_another_level_and_a_logger_of_ones_own_are_taken(lines: Lines) -> None:
    logger = logging.getLogger("handrail.test")
    logger.setLevel(logging.INFO)
    await Agent("X", model=ScriptedModel("done"), middleware=[Logging(logger, level=logging.INFO)]).run("go")
    assert {record.levelname for record in lines.records} == {"INFO"}
    assert len(lines.records) == 4


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"logger": 5}, "a logger or the name of one"),
        ({"level": "DEBUG"}, "level of Logging"),
        ({"level": True}, "level of Logging"),
        ({"cut": 0}, "cut of Logging"),
    ],
)
def test_what_cannot_work_is_refused_at_once(options: Any, found: str) -> None:
    with pytest.raises(BuildError, match=found):
        Logging(**options)


async def test_an_error_that_may_quote_what_is_secret_is_told_by_type_alone(lines: Lines) -> None:
    layers = [
        Logging("handrail.test", text=True),
        Validation(lambda result: f"not {result.messages[0].text}", retries=0),
    ]
    said = [user(SECRET, sensitivity="secret"), user([Words(SECRET, sensitivity="secret")])]
    agents = [Agent("X", model=ScriptedModel("x"), middleware=layers) for _ in said]
    for agent, message in zip(agents, said, strict=True):
        with pytest.raises(InvalidOutput):
            await agent.run(message)
    short = Agent("X", model=ScriptedModel(call("pin", call_id="c")), tools=[pin], middleware=layers[:1])
    with pytest.raises(ScriptError):
        await short.run("go")
    failed = [record for record in lines.of("turn", "ends") if record.status == "failed"]
    assert [(record.error, record.text) for record in failed] == [
        ("InvalidOutput", "[REDACTED:secret]"),
        ("InvalidOutput", "[REDACTED:secret]"),
        ("ScriptError", "[REDACTED:secret]"),
    ]
