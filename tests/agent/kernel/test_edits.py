"""A state hook may edit its agent's view: the view alone changes, the record says how, and the log stays."""

from pathlib import Path
from typing import Any

import pytest

from agent.desks import failure, ids, roles, texts
from handrail.agent import Agent, FunctionModel, InvalidAnswer, ScriptedModel, handoff
from handrail.agent.kernel import (
    Middleware,
    after_agent,
    after_model,
    append,
    around_turn,
    before_agent,
    before_model,
    overwrite,
    remove,
    replace,
)
from handrail.filters import Message, assistant, breaches, call, full, system, tool_result, user
from handrail.sessions import Session, ViewRecord, read, verify

PAST = [user("one", id="u1"), assistant("two", id="a1"), user("three", id="u2")]


def once(hook: Any, edit: Any) -> Middleware:
    """A layer whose hook makes this edit, once."""
    left = [edit]

    async def editing(state: Any, run: Any) -> Any:
        return {"messages": left.pop()} if left else None

    layer: Middleware = hook(name="editing")(editing)
    return layer


async def ok() -> str:
    return "ok"


EDITS = {
    "append": (append(user("more")), ["one", "two", "three", "more"]),
    "messages alone are appended": (user("more"), ["one", "two", "three", "more"]),
    "replace": (replace(assistant("2", id="a1")), ["one", "2", "three"]),
    "remove": (remove("u1", "a1"), ["three"]),
    "overwrite": (overwrite([system("Be brief."), user("three", id="u2")]), ["Be brief.", "three"]),
    "several in order": (
        [remove("u1"), replace(assistant("2", id="a1")), append(user("more"))],
        ["2", "three", "more"],
    ),
}


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("hook", [before_agent, before_model], ids=repr)
async def test_an_edit_changes_what_the_model_sees_and_the_file_gives_the_view_back(
    name: str, hook: Any, tmp_path: Path
) -> None:
    edit, seen = EDITS[name]
    model = ScriptedModel("done")
    agent = Agent("A", model=model, middleware=[once(hook, edit)])
    result = await agent.run(PAST, session=tmp_path / "s.jsonl")
    assert texts(model.requests[0].messages) == seen
    assert texts(result.messages) == [*seen, "done"]
    assert Session(tmp_path / "s.jsonl").history("A") == result.messages
    assert verify(tmp_path / "s.jsonl").state == "intact"


@pytest.mark.parametrize("name", EDITS)
async def test_an_edit_is_recorded_with_the_hook_that_made_it_and_the_log_is_what_was_said(
    name: str, tmp_path: Path
) -> None:
    edit, _ = EDITS[name]
    path = tmp_path / "s.jsonl"
    await Agent("A", model=ScriptedModel("done"), middleware=[once(before_model, edit)]).run(PAST, session=path)
    records = [record for record in read(path).records() if isinstance(record, ViewRecord)]
    assert {record.reason for record in records} == {"editing.before_model"}
    assert texts(Session(path).log) == ["one", "two", "three", "done"]


@pytest.mark.parametrize("hook", [after_model, after_agent], ids=repr)
async def test_an_edit_after_the_answer_holds_for_the_next_turn(hook: Any, tmp_path: Path) -> None:
    model = ScriptedModel("done", "again")
    agent = Agent("A", model=model, middleware=[once(hook, remove("u1", "a1"))])
    path = tmp_path / "s.jsonl"
    await agent.run(PAST, session=path)
    result = await agent.run("four", session=path)
    assert texts(model.requests[1].messages) == ["three", "done", "four"]
    assert Session(path).history("A") == result.messages


async def test_what_a_hook_appends_while_calls_are_open_stands_before_them() -> None:
    model = ScriptedModel(call("ok", call_id="c1"), "done")
    agent = Agent("A", model=model, tools=[ok], middleware=[once(after_model, append(user("more")))])
    result = await agent.run("go")
    assert (roles(result.messages), breaches(result.messages)) == ("uuata", [])


async def test_a_view_that_is_overwritten_while_calls_are_open_keeps_the_laws_and_the_calls_run() -> None:
    async def forget(state: Any, run: Any) -> Any:
        return {"messages": overwrite(state.messages[-1:])} if state.messages[-1].tool_calls else None

    model = ScriptedModel(call("ok", call_id="c1"), "done")
    agent = Agent("A", model=model, tools=[ok], middleware=[after_model(forget)])
    result = await agent.run("go")
    assert (roles(result.messages), breaches(result.messages)) == ("ata", [])


async def test_calls_whose_message_is_removed_do_not_run() -> None:
    async def drop(state: Any, run: Any) -> Any:
        last = state.messages[-1]
        return {"messages": remove(last.id)} if last.tool_calls else None

    model = ScriptedModel(call("ok", call_id="c1"))
    result = await Agent("A", model=model, tools=[ok], middleware=[after_model(drop)]).run("go")
    assert (roles(result.messages), result.output) == ("u", "")


async def test_a_call_that_a_hook_changed_runs_as_it_was_changed() -> None:
    ran: list[int] = []

    def count(n: int) -> int:
        ran.append(n)
        return n

    async def change(state: Any, run: Any) -> Any:
        last = state.messages[-1]
        return (
            {"messages": replace(last.replace(content=call("count", call_id="c1", n=2)))} if last.tool_calls else None
        )

    model = ScriptedModel(call("count", call_id="c1", n=1), "done")
    result = await Agent("A", model=model, tools=[count], middleware=[after_model(change)]).run("go")
    assert (ran, breaches(result.messages)) == ([2], [])


async def test_a_result_whose_call_is_edited_away_goes_too() -> None:
    past = [user("one", id="u1"), assistant(call("ok", call_id="c1"), id="a1"), tool_result("c1", "ok", id="t1")]
    model = ScriptedModel("done")
    agent = Agent("A", model=model, tools=[ok], middleware=[once(before_model, remove("a1"))])
    await agent.run([*past, user("two", id="u2")])
    assert texts(model.requests[0].messages) == ["one", "two"]


WRONG: dict[str, tuple[Any, str]] = {
    "an id that the view does not hold is replaced": (replace(user("x", id="nobody")), "'nobody', which the view"),
    "an id that the view does not hold is removed": (remove("nobody"), "'nobody', which the view does not hold"),
    "an id that the view holds is appended": (append(user("x", id="u1")), "'u1', which the view holds already"),
    "an id is given twice": (overwrite([user("x", id="x"), user("y", id="x")]), "'x' twice"),
    "what is no message": (["x"], "neither messages to append nor"),
    "what is no edit": (7, "neither messages to append nor"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_an_edit_that_cannot_be_names_the_hook_and_what_was_wrong(name: str) -> None:
    edit, found = WRONG[name]
    error = await failure(Agent("A", model=ScriptedModel(), middleware=[once(before_model, edit)]), PAST)
    assert type(error) is InvalidAnswer
    assert "editing.before_model" in str(error)
    assert found in str(error)
    assert ids(error.messages) == ["u1", "a1", "u2"]


async def test_layers_around_the_turn_see_the_messages_as_a_hook_before_the_agent_left_them() -> None:
    async def add(request: Any, call_next: Any) -> Any:
        assert texts(request.messages) == ["one", "two", "<hidden>"]
        return await call_next(request.replace(messages=(*request.messages, user("added"))))

    model = ScriptedModel("done")
    layers = [once(before_agent, replace(user("<hidden>", id="u2"))), around_turn(add)]
    await Agent("A", model=model, middleware=layers).run(PAST)
    assert texts(model.requests[0].messages) == ["one", "two", "<hidden>", "added"]


async def test_an_edit_that_changes_nothing_is_not_recorded(tmp_path: Path) -> None:
    async def same(state: Any, run: Any) -> Any:
        return {"messages": overwrite(state.messages)}

    path = tmp_path / "s.jsonl"
    await Agent("A", model=ScriptedModel("done"), middleware=[before_model(same)]).run("go", session=path)
    assert not any(isinstance(record, ViewRecord) for record in read(path).records())


async def test_what_was_edited_crosses_as_it_was_edited_and_what_was_removed_never_comes_back(tmp_path: Path) -> None:
    model = FunctionModel(
        lambda request: (
            f"heard {len(request.messages)}"
            if request.run.agent == "B"
            else call("transfer_to_b", call_id=f"h{len(request.messages)}")
        )
    )
    b: Agent = Agent("B", model=model, middleware=[once(after_agent, remove("u1"))])
    a = Agent(
        "A",
        model=model,
        handoffs=[handoff(b, filter=full(), next_turn="root")],
        middleware=[once(before_model, replace(assistant("2", id="a1")))],
    )
    path = tmp_path / "s.jsonl"
    first = await a.run(PAST, session=path)
    assert texts(first.handoffs[0].seed) == ["one", "2", "three"]
    second = await a.run("four", session=path)
    assert "one" not in texts(second.messages)
    assert verify(path).state == "intact"


async def test_an_edit_within_a_sub_agent_is_its_own(tmp_path: Path) -> None:
    async def shorten(state: Any, run: Any) -> Any:
        return {"messages": overwrite([Message("user", state.messages[-1].content, id="s1")])}

    helper = ScriptedModel("helped")
    child = Agent("Child", model=helper, middleware=[before_model(shorten)])
    boss = Agent(
        "Boss", model=ScriptedModel(call("child", call_id="k1", input="Help."), "done"), tools=[child.to_tool()]
    )
    path = tmp_path / "s.jsonl"
    result = await boss.run(PAST, session=path)
    assert texts(helper.requests[0].messages) == ["Help."]
    assert texts(result.messages)[:3] == ["one", "two", "three"]
    assert verify(path).state == "intact"


async def test_an_edit_that_puts_a_secret_in_raises_the_label_of_what_an_agent_that_inherits_says() -> None:
    async def mark(state: Any, run: Any) -> Any:
        first = state.messages[0]
        return {"messages": replace(first.replace(sensitivity="secret"))} if run.step == 2 else None

    model = ScriptedModel(call("ok", call_id="c1"), "done")
    agent = Agent("A", model=model, tools=[ok], middleware=[before_model(mark)], labels="inherit")
    result = await agent.run("go")
    assert [message.sensitivity for message in result.messages] == ["secret", None, None, "secret"]
