"""A handoff adds a transfer tool, and control passes when it is called."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.desks import answers, requests, result_of, roles, texts, unlawful
from handrail.agent import Agent, BuildError, FunctionModel, ScriptedModel, UnfitName, handoff
from handrail.agent.kernel import ChatRequest
from handrail.filters import FilterError, ToolCall, call, default_handoff_filter, full, last_n, none, seal
from handrail.sessions import verify

QUIET = FunctionModel(lambda request: "Hello.")


def desk(model: ScriptedModel, **options: Any) -> Agent:
    """A triage agent that may hand over to billing, and back."""
    billing = Agent("Billing", instructions="You are Billing.", model=model, handoffs=["Triage"])
    return Agent("Triage", instructions="You are Triage.", model=model, handoffs=[handoff(billing, **options)])


def test_without_a_filter_of_its_own_a_handoff_has_the_default_one_sealed() -> None:
    assert handoff("B").filter == seal(default_handoff_filter())
    assert handoff("B", filter=last_n(3)).filter == seal(last_n(3))


def test_what_is_no_filter_and_what_is_no_target_are_refused() -> None:
    with pytest.raises(FilterError, match="a filter is a value"):
        handoff("B", filter=7)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(BuildError, match="goes to an agent"):
        handoff(7)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(UnfitName):
        handoff("B", name="no good")


async def test_a_transfer_tool_takes_a_reason_or_nothing_and_says_where_it_leads() -> None:
    model = ScriptedModel("Hello.")
    billing = Agent("Billing Desk", model=model, description="Knows invoices.")
    await Agent("Triage", model=model, handoffs=[billing]).run("hi")
    (spec,) = model.requests[0].tools
    assert spec.name == "transfer_to_billing_desk"
    assert "Billing Desk" in spec.description
    assert "Knows invoices." in spec.description
    assert list(spec.parameters["properties"]) == ["reason"]
    assert "required" not in spec.parameters


async def test_control_passes_and_the_target_answers() -> None:
    model = ScriptedModel(call("transfer_to_billing", call_id="h1"), "Refunded.")
    result = await desk(model).run("I was charged twice.")
    assert (result.output, result.agent, result.status) == ("Refunded.", "Billing", "completed")
    assert texts(result.messages) == ["I was charged twice.", "Refunded."]
    assert roles(result.new_messages) == "uata"
    assert [str(each) for each in result.handoffs] == ["Triage -> Billing: 1 of 1 message crossed, 0 made"]


async def test_an_ordinary_call_beside_a_handoff_is_run_and_recorded_before_control_moves() -> None:
    for order in ([0, 1], [1, 0]):
        calls = [call("add", call_id="a1", a=3, b=4), call("transfer_to_pirate", call_id="h1")]
        added: list[int] = []

        def add(a: int, b: int, added: list[int] = added) -> int:
            added.append(a + b)
            return a + b

        adder, pirate = ScriptedModel([calls[place] for place in order]), ScriptedModel("Seven, matey.")
        other = Agent("Pirate", model=pirate)
        near = Agent("Adder", model=adder, tools=[plain(add)], handoffs=[handoff(other, filter=full())])
        result = await near.run("What is 3+4, and let me talk to the pirate.")
        assert (added, result.output, result.agent) == ([7], "Seven, matey.", "Pirate")
        assert [call_id for call_id, _ in answers(result.new_messages)] == [("a1", "h1")[place] for place in order]
        assert result_of(result.new_messages, "a1").text == "7"
        assert result_of(pirate.requests[0].messages, "a1").text == "7"
        assert unlawful(requests(adder, pirate)) == []


def plain(add: Any) -> Any:
    async def sum_of(a: int, b: int) -> int:
        return int(add(a, b))

    from handrail.agent import tool

    return tool(name="add")(sum_of)


async def test_of_several_transfers_the_first_valid_wins_and_the_others_are_told() -> None:
    model = ScriptedModel(
        [
            ToolCall("h0", "transfer_to_b", '{"reason": 7}'),
            call("transfer_to_c", call_id="h1"),
            call("transfer_to_b", call_id="h2"),
        ],
        "C here.",
    )
    b, c = Agent("B", model=QUIET), Agent("C", model=model)
    result = await Agent("A", model=model, handoffs=[b, handoff(c, filter=full())]).run("go")
    told = dict(answers(result.new_messages))
    assert (result.output, result.agent) == ("C here.", "C")
    assert list(told) == ["h0", "h1", "h2"]
    assert "reason" in told["h0"]
    assert "goes to C" in told["h1"]
    assert "Not run" in told["h2"]
    assert [result_of(result.new_messages, each).is_error for each in told] == [True, False, True]


async def test_nothing_of_a_transfer_crosses() -> None:
    model = ScriptedModel(
        [call("transfer_to_billing", call_id="h1", reason="money"), call("transfer_to_billing", call_id="h2")], "ok"
    )
    await desk(model, filter=full()).run("hi")
    crossed = model.requests[1].messages
    assert (roles(crossed), texts(crossed)) == ("u", ["hi"])


async def test_a_transfer_with_arguments_that_do_not_fit_is_an_error_for_the_model_which_goes_on() -> None:
    bad = ["{", "[]", '"x"', '{"reason": 7}', '{"why": "x"}', '{"reason": "x"}trailing']
    model = ScriptedModel([ToolCall(f"h{n}", "transfer_to_billing", text) for n, text in enumerate(bad)], "I stay.")
    result = await desk(model).run("hi")
    assert (result.output, result.agent, len(result.handoffs)) == ("I stay.", "Triage", 0)
    assert all(message.is_error for message in result.messages if message.role == "tool")
    assert unlawful(requests(model)) == []


@pytest.mark.parametrize("arguments", ["", "  ", "{}", "null", '{"reason": null}', '{"reason": "money"}'])
async def test_a_transfer_without_a_reason_is_as_good_as_one_with(arguments: str) -> None:
    model = ScriptedModel(ToolCall("h1", "transfer_to_billing", arguments), "Refunded.")
    assert (await desk(model).run("hi")).agent == "Billing"


async def test_each_request_carries_the_active_agents_own_instructions_and_no_others() -> None:
    model = ScriptedModel(call("transfer_to_billing"), call("transfer_to_triage"), call("transfer_to_billing"), "end")
    await desk(model, filter=full()).run("go")
    own = [list(request.instructions.values()) for request in model.requests]
    assert own == [["You are Triage."], ["You are Billing."], ["You are Triage."], ["You are Billing."]]
    assert all(message.role != "system" for request in model.requests for message in request.messages)
    assert all("You are" not in message.text for request in model.requests for message in request.messages)


async def test_after_a_hand_back_an_agent_sees_its_own_view_and_what_came_back() -> None:
    model = ScriptedModel(
        ["Let me pass you on.", call("transfer_to_billing", call_id="h1")],
        ["Refunded.", call("transfer_to_triage", call_id="h2")],
        "Anything else?",
    )
    result = await desk(model, filter=last_n(2)).run("I was charged twice.")
    seen = model.requests[2].messages
    assert roles(seen) == "uata"
    assert texts(seen)[0::3] == ["I was charged twice.", "Refunded."]
    assert unlawful(requests(model)) == []
    assert result.agent == "Triage"


async def test_a_message_that_came_over_before_does_not_come_twice() -> None:
    model = ScriptedModel(call("transfer_to_billing"), call("transfer_to_triage"), call("transfer_to_billing"), "end")
    await desk(model, filter=full()).run("go")
    assert [texts(request.messages).count("go") for request in model.requests] == [1, 1, 1, 1]
    assert unlawful(requests(model)) == []


async def test_a_reason_is_what_the_target_answers_where_nothing_of_the_user_crosses() -> None:
    model = ScriptedModel(call("transfer_to_billing", reason="disk is full"), "On it.")
    await desk(model, filter=none()).run("hi")
    assert [(message.role, message.text) for message in model.requests[1].messages] == [("user", "disk is full")]


async def test_the_target_keeps_its_tools_and_none_of_the_sources() -> None:
    model = ScriptedModel(call("transfer_to_billing"), "end")
    await desk(model).run("go")
    assert [[spec.name for spec in request.tools] for request in model.requests] == [
        ["transfer_to_billing"],
        ["transfer_to_triage"],
    ]


async def test_a_transfer_call_is_marked_in_the_view_and_a_tool_call_is_not() -> None:
    model = ScriptedModel(ToolCall("h1", "transfer_to_billing", json.dumps({})), "end")
    result = await desk(model).run("go")
    (transfer,) = [each for message in result.new_messages for each in message.tool_calls]
    assert transfer.transfer


async def test_a_model_cannot_mark_a_call_as_a_transfer() -> None:
    model = ScriptedModel(ToolCall("x1", "unknown", "{}", transfer=True), "end")
    result = await desk(model).run("go")
    assert (result.agent, result_of(result.messages, "x1").is_error) == ("Triage", True)


async def test_a_hand_over_within_a_childs_call_ends_with_that_call() -> None:
    def answer(request: ChatRequest) -> Any:
        agent = request.run.agent
        if agent == "Boss":
            return "done" if answers(request.messages) else call("child", call_id="t1", input="x")
        return call("transfer_to_helper", call_id="h1") if agent == "Child" else "helped"

    helper = Agent("Helper", model=FunctionModel(answer))
    child = Agent("Child", model=FunctionModel(answer), handoffs=[helper])
    result = await Agent("Boss", model=FunctionModel(answer), tools=[child.to_tool()]).run("go")
    assert (result.output, result.agent, answers(result.messages)) == ("done", "Boss", [("t1", "helped")])
    assert [(each.kind, each.source, each.path) for each in result.handoffs] == [
        ("subagent", "Boss", "Boss"),
        ("handoff", "Child", "Boss/Child@t1"),
    ]


async def test_half_a_surrogate_pair_in_a_reason_crosses_whole_and_is_recorded(tmp_path: Path) -> None:
    model = ScriptedModel(ToolCall("h1", "transfer_to_billing", '{"reason": "disk \\ud83d full"}'), "On it.")
    await desk(model, filter=none()).run("hi", session=str(tmp_path / "s.jsonl"))
    assert texts(model.requests[1].messages) == ["disk \ufffd full"]
    assert verify(tmp_path / "s.jsonl").state == "intact"
