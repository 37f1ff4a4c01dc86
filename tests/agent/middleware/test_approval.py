"""A tool that needs approval runs after a plain yes, and after nothing else."""

import asyncio
import datetime
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agent.desks import answers, hear, pause, result_of
from handrail.agent import Agent, BuildError, RunContext, ScriptedModel, Tool, tool
from handrail.agent.events import Told
from handrail.agent.kernel import Kernel, Middleware, ToolRequest, ToolResponse
from handrail.agent.middleware import Approval
from handrail.filters import call
from handrail.sessions import Session

SOON = 0.005


class Bank:
    """Tools that move money, and what they did."""

    def __init__(self, needs: bool | Callable[[Mapping[str, Any]], bool] = True) -> None:
        self.paid: list[int] = []

        async def pay(amount: int, on: datetime.date | None = None) -> str:
            self.paid.append(amount)
            return f"paid {amount}"

        self.pay = tool(needs_approval=needs)(pay)


def asking(bank: Bank, layer: Approval, *calls: Any, more: Any = ()) -> Agent:
    return Agent("X", model=ScriptedModel(list(calls), "done"), tools=[bank.pay, *more], middleware=[layer])


async def answered(ask: Any, *, needs: Any = True, **options: Any) -> tuple[list[int], str]:
    """What was paid after an answer, and what the model was told."""
    bank = Bank(needs)
    result = await asking(bank, Approval(ask, **options), call("pay", call_id="c1", amount=5)).run("go")
    assert result.output == "done"
    return bank.paid, result_of(result.messages, "c1").text


def yes(request: ToolRequest) -> bool:
    return True


async def later(request: ToolRequest) -> bool:
    await pause()
    return True


async def slow(request: ToolRequest) -> bool:
    await asyncio.Event().wait()
    return True


async def too_late(request: ToolRequest) -> bool:
    try:
        return await slow(request)
    except asyncio.CancelledError:
        return True


def number(request: ToolRequest) -> Any:
    return 1


def failing(request: Any) -> bool:
    raise LookupError("the password is 12345")


@pytest.mark.parametrize("ask", [yes, later, lambda request: later(request)])
async def test_after_a_yes_the_tool_runs(ask: Any) -> None:
    assert await answered(ask) == ([5], "paid 5")


async def test_after_a_no_it_does_not_and_the_loop_goes_on() -> None:
    assert await answered(lambda request: False) == ([], "pay was not approved.")


async def test_a_text_is_a_no_with_a_reason_for_the_model() -> None:
    assert await answered(lambda request: "over the limit") == ([], "pay was not approved: over the limit")
    assert await answered(lambda request: "") == ([], "pay was not approved.")


@pytest.mark.parametrize("answer", [None, 1, "yes", object(), [True]])
async def test_nothing_but_true_is_a_yes(answer: Any) -> None:
    paid, text = await answered(lambda request: answer)
    assert paid == []
    assert text.startswith("pay")


@pytest.mark.parametrize("ask", [failing, lambda: True])
async def test_who_cannot_be_asked_says_no_and_the_model_does_not_learn_why(ask: Any) -> None:
    assert await answered(ask) == ([], "pay did not run: it could not be approved.")


@pytest.mark.parametrize("ask", [slow, too_late])
async def test_who_does_not_answer_in_time_says_no(ask: Any) -> None:
    assert await answered(ask, timeout=SOON) == ([], "pay did not run: nobody approved it in time.")


@pytest.mark.parametrize("needs", [failing, lambda arguments: None, lambda arguments: 1])
async def test_a_tool_that_cannot_say_whether_it_needs_approval_does_not_run(needs: Any) -> None:
    assert await answered(yes, needs=needs) == ([], "pay did not run: it could not be approved.")


@pytest.mark.parametrize("chooses", [failing, lambda request: None, lambda request: "pay", slow])
async def test_a_function_that_cannot_say_whether_to_ask_means_no(chooses: Any) -> None:
    paid, text = await answered(yes, needs=False, tools=chooses, timeout=SOON)
    assert paid == []
    assert text.startswith("pay did not run")


async def test_the_result_is_an_error_of_class_denied_and_is_told_without_what_was_raised() -> None:
    heard = await hear(asking(Bank(), Approval(failing), call("pay", call_id="c1", amount=5)), "go")
    (told,) = heard.of(Told)
    assert (told.name, told.data) == ("denied", {"tool": "pay", "call_id": "c1", "why": "LookupError"})
    assert "12345" not in str(heard.events)
    response = await Kernel(ScriptedModel(), [Bank().pay], [Approval(failing)]).tool("pay", {"amount": 5})
    assert (response.is_error, response.error_class) == (True, "denied")


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (Approval(lambda _: False), "no"),
        (Approval(lambda _: "too much"), "no"),
        (Approval(number), "answered with int"),
        (Approval(failing), "LookupError"),
        (Approval(slow, timeout=SOON), "timeout"),
    ],
)
async def test_every_no_is_told(layer: Approval, why: str) -> None:
    heard = await hear(asking(Bank(), layer, call("pay", call_id="c1", amount=5)), "go")
    assert [told.data["why"] for told in heard.of(Told)] == [why]


async def test_a_yes_is_not_told() -> None:
    assert (await hear(asking(Bank(), Approval(yes), call("pay", amount=5)), "go")).of(Told) == []


async def test_a_tool_may_need_approval_for_some_arguments_only() -> None:
    asked: list[Any] = []

    def no(request: ToolRequest) -> bool:
        asked.append(request.arguments["amount"])
        return False

    bank = Bank(lambda arguments: bool(arguments["amount"] > 10))
    both = [call("pay", call_id="c1", amount=5), call("pay", call_id="c2", amount=50)]
    result = await asking(bank, Approval(no), *both).run("go")
    assert answers(result.messages) == [("c1", "paid 5"), ("c2", "pay was not approved.")]
    assert (bank.paid, asked) == ([5], [50])


async def look() -> str:
    return "looked"


def named(request: ToolRequest) -> bool:
    return request.tool.name == "look"


async def later_named(request: ToolRequest) -> bool:
    return named(request)


@pytest.mark.parametrize("tools", [["look"], {"look"}, named, later_named])
async def test_names_or_a_function_choose_further_tools(tools: Any) -> None:
    layer = Approval(lambda request: False, tools=tools)
    both = [call("pay", call_id="c1", amount=5), call("look", call_id="c2")]
    result = await asking(Bank(), layer, *both, more=[look]).run("go")
    assert answers(result.messages) == [("c1", "pay was not approved."), ("c2", "look was not approved.")]


async def test_a_tool_that_nobody_chose_runs_unasked() -> None:
    assert await answered(failing, needs=False) == ([5], "paid 5")
    assert await answered(failing, needs=False, tools=named) == ([5], "paid 5")


@pytest.mark.parametrize("arguments", [{"amount": "many"}, {}, {"amount": 5, "extra": 1}])
async def test_a_call_that_could_not_run_is_refused_without_asking(arguments: Any) -> None:
    bank = Bank(failing)
    result = await asking(bank, Approval(failing), call("pay", call_id="c1", **arguments)).run("go")
    assert result_of(result.messages, "c1").text.startswith("Invalid arguments: ")
    assert bank.paid == []


async def test_arguments_that_an_inner_layer_would_mend_are_not_let_past_the_question() -> None:
    class Mending(Middleware):
        async def around_tool(self, request: Any, call_next: Any) -> Any:
            return await call_next(request.replace(arguments={"amount": 5}))

    bank = Bank()
    agent = Agent(
        "X",
        model=ScriptedModel(call("pay", call_id="c1", amount="many"), "done"),
        tools=[bank.pay],
        middleware=[Approval(failing), Mending()],
    )
    await agent.run("go")
    assert bank.paid == []


async def test_who_is_asked_sees_what_the_tool_would_get() -> None:
    seen: list[Any] = []

    def ask(request: ToolRequest) -> bool:
        seen.append(dict(request.arguments))
        return True

    bank = Bank()
    await asking(bank, Approval(ask), call("pay", amount="7", on="2024-05-01")).run("go")
    assert (seen, bank.paid) == ([{"amount": 7, "on": datetime.date(2024, 5, 1)}], [7])


async def test_what_is_done_to_the_shown_arguments_changes_nothing() -> None:
    def ask(request: Any) -> bool:
        request.arguments["amount"] = 1000
        return True

    assert await answered(ask) == ([5], "paid 5")


async def test_what_an_outer_layer_changed_is_what_is_asked_about() -> None:
    class Capped(Middleware):
        async def around_tool(self, request: Any, call_next: Any) -> Any:
            return await call_next(request.replace(arguments={"amount": 1}))

    seen: list[int] = []

    def ask(request: ToolRequest) -> bool:
        seen.append(request.arguments["amount"])
        return True

    bank = Bank()
    model = ScriptedModel(call("pay", amount=99), "done")
    await Agent("X", model=model, tools=[bank.pay], middleware=[Capped(), Approval(ask)]).run("go")
    assert (seen, bank.paid) == ([1], [1])


async def test_a_sync_question_does_not_hold_the_loop_up() -> None:
    import threading

    asked = threading.Event()

    async def release() -> str:
        asked.set()
        return "released"

    def ask(request: ToolRequest) -> bool:
        return asked.wait(5)

    both = [call("pay", call_id="c1", amount=5), call("release", call_id="c2")]
    result = await asking(Bank(), Approval(ask), *both, more=[release]).run("go")
    assert answers(result.messages) == [("c1", "paid 5"), ("c2", "released")]


async def test_calls_side_by_side_are_asked_about_each_by_itself() -> None:
    def small(request: ToolRequest) -> bool:
        return bool(request.arguments["amount"] < 10)

    bank = Bank()
    calls = [call("pay", call_id=f"c{amount}", amount=amount) for amount in (5, 50, 6)]
    result = await asking(bank, Approval(small), *calls).run("go")
    assert answers(result.messages) == [("c5", "paid 5"), ("c50", "pay was not approved."), ("c6", "paid 6")]
    assert sorted(bank.paid) == [5, 6]


@pytest.mark.parametrize("where", ["ask", "chooses"])
async def test_a_cancel_while_it_is_asked_passes_and_nothing_runs(where: str) -> None:
    begun = asyncio.Event()

    async def hang(request: ToolRequest) -> bool:
        begun.set()
        await asyncio.Event().wait()
        return True

    bank = Bank()
    layer = Approval(hang) if where == "ask" else Approval(yes, tools=hang)
    if where == "chooses":
        bank.pay = tool(bank.pay.fn)
    run = asyncio.ensure_future(asking(bank, layer, call("pay", amount=5)).run("go"))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert bank.paid == []


async def test_what_the_tool_raises_is_the_tools_own_matter() -> None:
    @tool(needs_approval=True)
    async def breaks() -> str:
        raise LookupError("gone")

    model = ScriptedModel(call("breaks", call_id="c1"), "done")
    result = await Agent("X", model=model, tools=[breaks], middleware=[Approval(yes)]).run("go")
    assert answers(result.messages) == [("c1", "LookupError: gone")]


async def test_a_denied_call_is_recorded_with_its_answer(tmp_path: Any) -> None:
    with Session(tmp_path / "s.jsonl") as session:
        await asking(Bank(), Approval(lambda _: False), call("pay", call_id="c1", amount=5)).run("go", session=session)
    with Session(tmp_path / "s.jsonl") as session:
        (view,) = session.views.values()
        assert answers(view.history) == [("c1", "pay was not approved.")]


async def test_a_sub_agents_tool_is_asked_about_by_its_own_layer() -> None:
    bank = Bank()
    child = Agent(
        "Child",
        model=ScriptedModel(call("pay", amount=5), "no luck"),
        tools=[bank.pay],
        middleware=[Approval(lambda request: f"not for {request.run.path}")],
    )
    model = ScriptedModel(call("child", call_id="t1", input="x"), "done")
    result = await Agent("X", model=model, tools=[child.to_tool()]).run("go")
    assert (answers(result.messages), bank.paid) == ([("t1", "no luck")], [])


@pytest.mark.parametrize(
    ("ask", "options", "found"),
    [
        (True, {}, "asks a function"),
        (yes, {"tools": "pay"}, "a list of names, or a function"),
        (yes, {"tools": [look]}, "a list of names, or a function"),
        (yes, {"tools": 5}, "a list of names, or a function"),
        (yes, {"timeout": 0}, r"Approval\(timeout=\)"),
        (yes, {"timeout": True}, r"Approval\(timeout=\)"),
    ],
)
def test_what_cannot_work_is_refused_at_once(ask: Any, options: Any, found: str) -> None:
    with pytest.raises(BuildError, match=found):
        Approval(ask, **options)


@pytest.mark.parametrize("needs", [None, 1, "yes"])
def test_what_a_tool_needs_is_yes_no_or_a_function(needs: Any) -> None:
    with pytest.raises(BuildError, match="needs_approval of pay"):
        Bank(needs)


async def test_the_context_of_the_run_is_there_to_decide_by() -> None:
    async def ask(request: ToolRequest) -> bool:
        run: RunContext[Any] = request.run
        return bool(run.deps == "boss")

    bank = Bank()
    await asking(bank, Approval(ask), call("pay", amount=5)).run("go", deps="boss")
    await asking(bank, Approval(ask), call("pay", amount=6)).run("go", deps="guest")
    assert bank.paid == [5]


class Swapping(Middleware):
    """Has another tool do what was called."""

    def __init__(self, other: Tool, arguments: Any = None, name: str = "Swapping") -> None:
        self.name = name
        self.other = other
        self.arguments = arguments

    async def around_tool(self, request: Any, call_next: Any) -> Any:
        given = request.arguments if self.arguments is None else self.arguments
        return await call_next(request.replace(tool=self.other, arguments=given))


UNASKED = "pay did not run: nobody was asked about it."


async def swapped(bank: Bank, *layers: Middleware, called: str = "look") -> str:
    """What came of a call of a harmless tool, in whose place a layer has money paid."""
    model = ScriptedModel(call(called, call_id="c1", **({"amount": 5} if called == "pay" else {})), "done")
    agent = Agent("X", model=model, tools=[bank.pay, look], middleware=layers)
    return result_of((await agent.run("go")).messages, "c1").text


@pytest.mark.parametrize("needs", [True, lambda arguments: True, failing, lambda arguments: None])
@pytest.mark.parametrize("tools", [None, ["look"], named])
async def test_a_layer_inside_cannot_have_a_tool_run_that_nobody_was_asked_about(needs: Any, tools: Any) -> None:
    bank = Bank(needs)
    assert await swapped(bank, Approval(yes, tools=tools), Swapping(bank.pay, {"amount": 5})) == UNASKED
    assert bank.paid == []


async def test_a_layer_outside_can_and_then_that_tool_is_asked_about() -> None:
    for ask, text, paid in ((yes, "paid 5", [5]), (lambda request: False, "pay was not approved.", [])):
        bank = Bank()
        assert await swapped(bank, Swapping(bank.pay, {"amount": 5}), Approval(ask)) == text
        assert bank.paid == paid


async def test_a_tool_that_is_swapped_away_and_back_around_the_question_does_not_run() -> None:
    bank = Bank()
    there, back = Swapping(tool(look), {}, name="there"), Swapping(bank.pay, {"amount": 5}, name="back")
    assert await swapped(bank, there, Approval(failing), back, called="pay") == UNASKED
    assert bank.paid == []


async def test_another_tool_of_the_name_that_was_approved_does_not_run() -> None:
    bank, other = Bank(), Bank()
    assert await swapped(bank, Approval(yes), Swapping(other.pay), called="pay") == UNASKED
    assert (bank.paid, other.paid) == ([], [])


async def test_arguments_that_a_layer_inside_changes_are_looked_at_by_the_tools_own_function() -> None:
    bank = Bank(lambda arguments: bool(arguments["amount"] > 10))
    assert await swapped(bank, Approval(yes), Swapping(bank.pay, {"amount": 50}), called="pay") == UNASKED
    assert await swapped(bank, Approval(yes), Swapping(bank.pay, {"amount": 6}), called="pay") == "paid 6"
    assert bank.paid == [6]


async def test_a_tool_that_is_chosen_by_its_name_does_not_run_in_anothers_place_either() -> None:
    bank = Bank(needs=False)
    layers = [Approval(failing, tools=["pay"]), Swapping(bank.pay, {"amount": 5})]
    assert (await swapped(bank, *layers), bank.paid) == (UNASKED, [])


async def test_a_tool_that_needs_nobody_may_stand_in_for_one_that_was_asked_about() -> None:
    bank = Bank()
    assert await swapped(bank, Approval(yes), Swapping(tool(look), {}), called="pay") == "looked"


async def test_each_try_of_a_call_is_asked_about_anew() -> None:
    class Twice(Middleware):
        async def around_tool(self, request: Any, call_next: Any) -> Any:
            await call_next(request)
            return await call_next(request.replace(tool=tool(look), arguments={}))

    bank = Bank()
    back = Swapping(bank.pay, {"amount": 5})
    assert await swapped(bank, Twice(), Approval(yes), back, called="pay") == UNASKED
    assert bank.paid == [5]


async def test_a_tool_that_was_not_approved_is_an_error_of_class_denied_for_the_layers_inside() -> None:
    seen: list[ToolResponse] = []

    class Watching(Swapping):
        async def around_tool(self, request: Any, call_next: Any) -> Any:
            seen.append(await super().around_tool(request, call_next))
            return seen[-1]

    bank = Bank()
    await swapped(bank, Approval(yes), Watching(bank.pay, {"amount": 5}))
    assert [(response.is_error, response.error_class) for response in seen] == [(True, "denied")]


async def test_a_yes_that_comes_when_the_loop_was_busy_past_the_time_is_late() -> None:
    async def busy(request: Any) -> bool:
        end = asyncio.get_running_loop().time() + 0.03
        while asyncio.get_running_loop().time() < end:
            pass
        return True

    paid: list[int] = []
    assert "nobody approved it in time" in await asked(Approval(busy, timeout=0.01), paid)
    assert paid == []


async def test_who_was_asked_and_gave_up_has_not_said_yes_and_the_run_goes_on() -> None:
    async def gives_up(request: Any) -> bool:
        raise asyncio.CancelledError

    paid: list[int] = []
    assert "could not be approved" in await asked(Approval(gives_up), paid)
    assert paid == []


async def asked(layer: Approval, paid: list[int]) -> str:
    async def pay() -> str:
        paid.append(1)
        return "paid"

    model = ScriptedModel(call("pay", call_id="c1"), "done")
    result = await Agent("X", model=model, tools=[tool(needs_approval=True)(pay)], middleware=[layer]).run("go")
    return next(message.text for message in result.messages if message.role == "tool")
