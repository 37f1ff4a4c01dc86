"""Labels hold on every way: out, back, when something fails, and when code hands over."""

from pathlib import Path
from typing import Any

import pytest

from handrail.agent import Agent, HandoffRefused, RunContext, ScriptedModel, handoff, to_tool, tool
from handrail.agent.kernel import Middleware
from handrail.filters import Policy, Text, assistant, by_sensitivity, call, full, none, seal, summarize
from handrail.sessions import Session, verify

SECRET = "S3CR3T"
GATE = by_sensitivity("internal")


@tool(output_sensitivity="secret")
def vault() -> str:
    """Gives the secret."""
    return SECRET


def transfer(to: str, call_id: str, **arguments: Any) -> Any:
    return call(f"transfer_to_{to}", call_id=call_id, **arguments)


def knower(*answers: Any) -> Agent:
    """An agent that looks into the vault, and then answers so."""
    model = ScriptedModel(call("vault", call_id="v"), *answers)
    return Agent("Knower", model=model, tools=[vault], labels="inherit")


async def crossing_on(edge: Any, *, as_tool: bool) -> str:
    """What an agent behind a gate is sent after the first one heard of the secret over this edge."""
    last = ScriptedModel("bye")
    ask = call("knower", call_id="k", input="go") if as_tool else transfer("knower", "k")
    model = ScriptedModel(ask, transfer("last", "h2"))
    gated = handoff(Agent("Last", model=last), filter=GATE)
    edges = [gated] if as_tool else [edge, gated]
    await Agent("Desk", model=model, tools=[edge] if as_tool else [], handoffs=edges).run("which?")
    return str([message.content for message in last.requests[0].messages])


@pytest.mark.parametrize(
    "answer", [f"It is {SECRET}.", assistant(Text(SECRET, sensitivity="secret")), LookupError(SECRET)]
)
@pytest.mark.parametrize("as_tool", [True, False])
async def test_what_comes_back_keeps_its_label_however_it_comes(answer: Any, as_tool: bool) -> None:
    agent = knower(answer)
    edge = to_tool(agent) if as_tool else handoff(agent, returns=full())
    assert SECRET not in await crossing_on(edge, as_tool=as_tool)


@pytest.mark.parametrize("as_tool", [True, False])
async def test_the_text_of_a_failure_passes_the_gate_on_the_way_back(as_tool: bool) -> None:
    agent = knower(LookupError(SECRET))
    desk = ScriptedModel(call("knower", call_id="k", input="go") if as_tool else transfer("knower", "k"), "sorry")
    source = Agent(
        "Desk",
        model=desk,
        tools=[to_tool(agent, returns=GATE)] if as_tool else [],
        handoffs=[] if as_tool else [handoff(agent, returns=GATE)],
    )
    await source.run("which?")
    told = desk.requests[1].messages[-1].text
    assert ("LookupError" in told, SECRET in told) == (True, False)


@pytest.mark.parametrize("as_tool", [True, False])
async def test_a_policy_on_answers_is_asked_of_a_failure_too(as_tool: bool) -> None:
    policy = Policy.from_toml(f"[[rule]]\nname = 'no'\nkind = ['return']\nforbid_patterns = ['{SECRET}']")
    agent = Agent("Knower", model=ScriptedModel(LookupError(SECRET)))
    desk = ScriptedModel(call("knower", call_id="k", input="go") if as_tool else transfer("knower", "k"), "sorry")
    tools, edges = ([to_tool(agent)], []) if as_tool else ([], [handoff(agent, returns=full())])
    await Agent("Desk", model=desk, tools=tools, handoffs=edges).run("which?", policy=policy)
    assert desk.requests[1].messages[-1].text.endswith("failed: LookupError.")


async def test_a_fold_names_only_tools_that_there_are() -> None:
    child = Agent("Child", model=ScriptedModel(call(SECRET, call_id="1"), "fine"))
    desk = ScriptedModel(call("child", call_id="k", input="go"), "done")
    await Agent("Desk", model=desk, tools=[to_tool(child, fold=True)]).run("hi")
    assert desk.requests[1].messages[-1].text == "[Child completed in 2 steps; tools: none]\nfine"


async def test_a_handoff_by_code_to_an_agent_that_waits_is_refused(tmp_path: Path) -> None:
    refused: list[str] = []

    @tool
    def go_back(context: RunContext[Any]) -> str:
        with pytest.raises(HandoffRefused) as caught:
            context.handoff("Desk")
        refused.append(str(caught.value))
        return "stayed"

    clerk = Agent("Clerk", model=ScriptedModel(call("go_back", call_id="c"), "checked"), tools=[go_back])
    desk = Agent("Desk", model=ScriptedModel(transfer("clerk", "h"), "done"), handoffs=[handoff(clerk, returns=full())])
    await desk.run("go", session=tmp_path / "s.jsonl")
    assert (len(refused), verify(tmp_path / "s.jsonl").ok) == (1, True)


async def test_a_handoff_by_code_asks_the_gate_of_its_edge() -> None:
    @tool
    def route(context: RunContext[Any]) -> str:
        context.handoff("B")
        return "routed"

    target = ScriptedModel()
    edge = handoff(Agent("B", model=target), enabled=lambda context: False)
    a = Agent("A", model=ScriptedModel(call("route", call_id="1")), tools=[route], handoffs=[edge])
    with pytest.raises(HandoffRefused):
        await a.run("go")
    assert target.requests == []


async def test_the_reason_that_a_labelled_tool_gives_is_as_sensitive_as_the_tool() -> None:
    @tool(output_sensitivity="secret")
    def route(context: RunContext[Any]) -> str:
        context.handoff("B", reason=SECRET)
        return "routed"

    b = handoff(Agent("B", model=ScriptedModel("ok")), filter=GATE)
    result = await Agent("A", model=ScriptedModel(call("route", call_id="1")), tools=[route], handoffs=[b]).run("go")
    assert [(note.text, note.sensitivity) for note in result.handoffs[0].notes] == [(SECRET, "secret")]


async def test_the_same_words_handed_over_again_arrive_again(tmp_path: Path) -> None:
    def edge(target: Any) -> Any:
        return handoff(target, filter=none(), input_type=str)

    b_model = ScriptedModel(transfer("c", "h", input="go"), "done")
    c = Agent("C", model=ScriptedModel(transfer("b", "h", input="go")), handoffs=[edge("B")])
    b = Agent("B", model=b_model, handoffs=[edge(c)])
    a = Agent("A", model=ScriptedModel(transfer("b", "h", input="go")), handoffs=[edge(b)])
    await a.run("hi", session=tmp_path / "s.jsonl")
    assert (b_model.requests[1].messages[-1].text, verify(tmp_path / "s.jsonl").ok) == ("go", True)


async def test_the_next_turn_may_be_a_roots_that_has_no_view_yet(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    d = Agent("D", model=ScriptedModel("from D"))
    b = Agent("B", model=ScriptedModel("hello", transfer("d", "h2")), handoffs=[handoff(d, next_turn="root")])
    await Agent("A", model=ScriptedModel(transfer("b", "h1")), handoffs=[b]).run("one", session=path)
    await Agent("C", model=ScriptedModel(), handoffs=[b]).run("two", session=path)
    assert ([m.text for m in Session(path).history("C")], Session(path).active_agent) == (["from D"], "C")


async def test_an_ordinary_rule_speaks_of_the_answer_that_gives_the_next_turn_away() -> None:
    from handrail.filters import PolicyViolation

    policy = Policy.from_toml("[[rule]]\nname = 'no'\nsource = ['B']\nforbid_patterns = ['4111']")
    b = Agent("B", model=ScriptedModel("card 4111"))
    a = Agent("A", model=ScriptedModel(transfer("b", "h")), handoffs=[handoff(b, next_turn="caller")])
    with pytest.raises(PolicyViolation):
        await a.run("go", policy=policy)


async def test_what_a_summarising_model_thought_does_not_cross() -> None:
    async def ask(messages: Any) -> str:
        return f"<think>{SECRET}</think>They talked."

    last = ScriptedModel("bye")
    edge = handoff(Agent("Last", model=last), filter=summarize(ask))
    await Agent("Desk", model=ScriptedModel(transfer("last", "h")), handoffs=[edge]).run("hello")
    sent = str(last.requests[0].messages)
    assert ("They talked." in sent, SECRET in sent) == (True, False)


async def test_a_hook_may_give_a_plain_function_as_the_filter_and_no_nonsense_as_words() -> None:
    class Give(Middleware):
        def __init__(self, **changes: Any) -> None:
            self.changes = changes

        async def around_handoff(self, request: Any, call_next: Any) -> Any:
            return await call_next(request.replace(**self.changes))

    def desk(target: ScriptedModel, **changes: Any) -> Agent:
        b = Agent("B", model=target)
        return Agent("A", model=ScriptedModel(transfer("b", "h")), handoffs=[b], middleware=[Give(**changes)])

    target = ScriptedModel("ok")
    await desk(target, filter=lambda history: history[-1:]).run("go")
    assert len(target.requests[0].messages) == 1
    for wrong in ({"filter": None}, {"reason": None}, {"input": 7}):
        from handrail.filters import HandrailError

        with pytest.raises(HandrailError):
            await desk(ScriptedModel(), **wrong).run("go")


async def test_a_label_within_what_a_tool_gives_is_not_lost() -> None:
    for value in ([Text(SECRET, sensitivity="secret"), "x"], {"found": [Text(SECRET, sensitivity="secret")]}):

        @tool
        def find(value: Any = value) -> Any:
            return value

        last = ScriptedModel("bye")
        edge = handoff(Agent("Last", model=last), filter=GATE)
        desk = ScriptedModel(call("find", call_id="1"), transfer("last", "h"))
        await Agent("Desk", model=desk, tools=[find], handoffs=[edge]).run("go")
        assert SECRET not in str(last.requests[0].messages)


def test_a_descriptor_with_a_key_twice_is_refused() -> None:
    from handrail.filters import InvalidDescriptor, from_descriptor

    with pytest.raises(InvalidDescriptor, match="twice"):
        from_descriptor('{"kind":"last-n","kind":"full"}')
    assert from_descriptor(seal(full()).descriptor) == seal(full())
