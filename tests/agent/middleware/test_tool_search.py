"""Of many tools the model is shown one that finds the others, and then those that it found."""

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.desks import hear
from handrail.agent import (
    Agent,
    BuildError,
    FunctionModel,
    Middleware,
    NameClash,
    ScriptedModel,
    Tool,
    handoff,
    to_tool,
)
from handrail.agent.events import Told
from handrail.agent.kernel import ChatRequest, Kernel, before_model, overwrite
from handrail.agent.middleware import ToolSearch
from handrail.agent.models import ToolSpec
from handrail.agent.tool_indexes import Hit, KeywordIndex, RegexIndex
from handrail.filters import Message, call, user

QUIET = FunctionModel(lambda request: "Hello.")


def made(name: str, about: str, ran: list[str] | None = None) -> Tool:
    async def run() -> str:
        if ran is not None:
            ran.append(name)
        return f"{name} ran"

    return Tool(name=name, description=about, fn=run)


def shop(ran: list[str] | None = None) -> list[Tool]:
    return [
        made("get_order", "Looks an order up.", ran),
        made("refund", "Pays the price of an order back.", ran),
        made("send_mail", "Sends a letter to a customer.", ran),
        made("weather", "Tells what the weather is like.", ran),
    ]


def search(query: Any, call_id: str = "s1", name: str = "tool_search") -> Any:
    return call(name, call_id=call_id, query=query)


def asked(model: ScriptedModel) -> list[list[str]]:
    return [[spec.name for spec in request.tools] for request in model.requests]


def results(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if message.role == "tool"]


def desk(layer: ToolSearch, *answers: Any, tools: Sequence[Tool] | None = None, **options: Any) -> tuple[Agent, Any]:
    model = ScriptedModel(*answers)
    own = shop() if tools is None else tools
    return Agent("desk", model=model, tools=own, middleware=[layer], **options), model


async def test_only_what_was_found_is_shown_and_it_stays() -> None:
    agent, model = desk(ToolSearch(), search("weather"), search("send a letter", "s2"), "Done.")
    await agent.run("go")
    assert asked(model) == [
        ["tool_search"],
        ["tool_search", "weather"],
        ["tool_search", "weather", "send_mail"],
    ]


async def test_a_hit_comes_with_all_that_is_needed_to_call_it_and_why_it_was_found() -> None:
    agent, _ = desk(ToolSearch(), search("weather today"), "Done.")
    found = json.loads(results((await agent.run("go")).new_messages)[0])
    parameters = {"type": "object", "properties": {}, "additionalProperties": False}
    assert [hit.pop("score") > 0 for hit in found] == [True]
    about = "Tells what the weather is like."
    assert found == [{"name": "weather", "description": about, "parameters": parameters, "matched": ["weather"]}]


async def test_what_was_found_can_be_called() -> None:
    agent, _ = desk(ToolSearch(strict=True), search("weather"), call("weather", call_id="w"), "Done.")
    assert results((await agent.run("go")).new_messages)[1] == "weather ran"


async def test_a_tool_that_is_not_among_those_to_be_found_is_called_without_a_search_where_that_is_strict() -> None:
    layer = ToolSearch(strict=True, always=["weather"])
    agent, _ = desk(layer, call("weather", call_id="w"), call("refund", call_id="r"), "Done.")
    told = results((await agent.run("go")).new_messages)
    assert told == ["weather ran", "refund cannot be called before tool_search has found it."]


async def test_at_most_so_many_come_of_one_search() -> None:
    agent, model = desk(ToolSearch(max_results=1), search("order"), "Done.")
    await agent.run("go")
    assert asked(model)[1] == ["tool_search", "get_order"]


async def test_only_the_latest_search_counts_where_nothing_accumulates() -> None:
    layer = ToolSearch(accumulate=False)
    agent, model = desk(layer, search("weather"), search("letter", "s2"), search("nothing fits", "s3"), "Done.")
    await agent.run("go")
    assert asked(model)[1:] == [["tool_search", "weather"], ["tool_search", "send_mail"], ["tool_search"]]


async def test_searches_side_by_side_all_count_in_the_order_of_the_calls() -> None:
    agent, model = desk(ToolSearch(), [search("letter"), search("weather", "s2"), search("letter", "s3")], "Done.")
    await agent.run("go")
    assert asked(model)[1] == ["tool_search", "send_mail", "weather"]


@pytest.mark.parametrize("query", ["", "  \n"])
async def test_a_blank_query_finds_nothing_and_never_reaches_the_index(query: str) -> None:
    index = Fixed("weather")
    agent, model = desk(ToolSearch(index=index), search(query), "Done.")
    assert results((await agent.run("go")).new_messages) == ["[]"]
    assert (index.queries, asked(model)[1]) == ([], ["tool_search"])


@pytest.mark.parametrize("query", [7, None, "x" * 1025])
async def test_a_query_that_is_none_is_an_error_result(query: Any) -> None:
    agent, _ = desk(ToolSearch(), search(query), "Done.")
    message = (await agent.run("go")).new_messages[2]
    assert (message.is_error, message.text) == (True, "query is a text of at most 1024 characters.")


async def test_a_query_of_the_greatest_length_is_one() -> None:
    index = Fixed("weather")
    await desk(ToolSearch(index=index), search("x" * 1024), "Done.")[0].run("go")
    assert index.queries == ["x" * 1024]


async def test_what_is_not_the_agents_own_ordinary_tool_is_shown_as_ever() -> None:
    layer, other = ToolSearch(), Bringing()
    model = ScriptedModel("Done.")
    agent = Agent(
        "desk",
        model=model,
        tools=shop(),
        handoffs=[handoff(Agent("billing", model=QUIET))],
        middleware=[other, layer],
    )
    await agent.run("go")
    assert asked(model) == [["note", "tool_search", "transfer_to_billing"]]


async def test_only_the_tools_that_were_named_are_kept_back() -> None:
    tools = shop()
    agent, model = desk(ToolSearch([tools[0], "refund"]), search("order weather"), "Done.", tools=tools)
    await agent.run("go")
    shown = ["send_mail", "weather", "tool_search"]
    assert asked(model) == [shown, [*shown, "get_order", "refund"]]


async def test_a_tool_may_always_be_shown() -> None:
    agent, model = desk(ToolSearch(always=["weather"]), search("weather letter"), "Done.")
    await agent.run("go")
    assert asked(model) == [["weather", "tool_search"], ["weather", "tool_search", "send_mail"]]


async def test_the_list_keeps_its_order_so_that_only_its_end_grows() -> None:
    agent, model = desk(
        ToolSearch(always=["weather"]), search("refund"), search("get", "s2"), search("letter", "s3"), "Done."
    )
    await agent.run("go")
    lists = asked(model)
    assert all(longer[: len(shorter)] == shorter for shorter, longer in pairwise(lists))


async def test_a_list_that_did_not_change_is_the_same_one() -> None:
    agent, model = desk(ToolSearch(), search("weather"), search("weather", "s2"), "Done.")
    await agent.run("go")
    assert model.requests[1].tools is model.requests[2].tools


async def test_a_sub_agent_is_found_like_any_tool() -> None:
    child = Agent("poet", description="Writes poems.", model=QUIET)
    agent, model = desk(ToolSearch(), search("poem"), "Done.", tools=[*shop(), to_tool(child)])
    await agent.run("go")
    assert asked(model)[1] == ["tool_search", "poet"]


async def test_there_is_no_search_where_there_is_nothing_to_find() -> None:
    agent, model = desk(ToolSearch(always=["weather"]), "Done.", tools=shop()[3:])
    await agent.run("go")
    assert asked(model) == [["weather"]]


async def test_a_call_to_a_tool_that_was_not_found_is_refused_where_that_is_strict() -> None:
    ran: list[str] = []
    agent, _ = desk(ToolSearch(strict=True), call("refund", call_id="r"), "Done.", tools=shop(ran))
    message = (await agent.run("go")).new_messages[2]
    assert (message.is_error, message.text) == (True, "refund cannot be called before tool_search has found it.")
    assert ran == []


async def test_a_call_to_a_tool_that_was_not_found_runs_where_nothing_is_strict() -> None:
    agent, model = desk(ToolSearch(), call("refund", call_id="r"), "Done.")
    assert results((await agent.run("go")).new_messages) == ["refund ran"]
    assert asked(model)[1] == ["tool_search"]


async def test_a_call_beside_the_search_that_finds_it_comes_too_early_where_that_is_strict() -> None:
    ran: list[str] = []
    agent, _ = desk(ToolSearch(strict=True), [search("refund"), call("refund", call_id="r")], "Done.", tools=shop(ran))
    await agent.run("go")
    assert ran == []


async def test_a_tool_that_is_denied_is_neither_found_nor_shown_nor_run() -> None:
    ran: list[str] = []
    agent, model = desk(
        ToolSearch(deny=["refund"]), search("refund"), call("refund", call_id="r"), "Done.", tools=shop(ran)
    )
    told = results((await agent.run("go")).new_messages)
    assert (told, ran) == (["[]", "refund is not available."], [])
    assert asked(model) == [["tool_search"]] * 3


async def test_a_denied_tool_of_another_layer_is_not_shown_either() -> None:
    layer, other = ToolSearch(deny=["note"]), Bringing()
    model = ScriptedModel(call("note", call_id="n"), "Done.")
    agent = Agent("desk", model=model, tools=shop(), middleware=[other, layer])
    assert results((await agent.run("go")).new_messages) == ["note is not available."]
    assert asked(model)[0] == ["tool_search"]


async def test_a_tool_that_an_outer_layer_took_away_is_not_found() -> None:
    layer = ToolSearch()
    model = ScriptedModel(search("refund"), "Done.")
    agent = Agent("desk", model=model, tools=shop(), middleware=[Without("refund"), layer])
    assert results((await agent.run("go")).new_messages) == ["[]"]


async def test_a_call_for_anything_but_an_answer_goes_on_as_it_is() -> None:
    layer = ToolSearch()
    model = ScriptedModel("Chosen.", "Done.")
    agent = Agent("desk", model=model, tools=shop(), middleware=[Selecting(), layer])
    await agent.run("go")
    assert [len(names) for names in asked(model)] == [5, 1]


async def test_what_was_found_belongs_to_one_agent_of_several_with_the_layer() -> None:
    layer = ToolSearch()
    second = ScriptedModel("Done.")
    billing = Agent("billing", model=second, tools=shop(), middleware=[layer])
    first = ScriptedModel(search("weather"), call("transfer_to_billing", call_id="h"))
    agent = Agent("desk", model=first, tools=shop(), middleware=[layer], handoffs=[billing])
    await agent.run("go")
    assert asked(first)[1] == ["tool_search", "transfer_to_billing", "weather"]
    assert asked(second) == [["tool_search"]]


async def test_two_layers_with_names_of_their_own_keep_back_two_sets() -> None:
    tools = shop()
    one = ToolSearch(tools[:2], tool_name="find_orders", name="Orders")
    two = ToolSearch(tools[2:], tool_name="find_rest", name="Rest")
    model = ScriptedModel(
        search("refund weather", name="find_orders"), search("refund weather", "s2", "find_rest"), "Done."
    )
    agent = Agent("desk", model=model, tools=tools, middleware=[one, two])
    await agent.run("go")
    assert asked(model) == [
        ["find_orders", "find_rest"],
        ["find_orders", "find_rest", "refund"],
        ["find_orders", "find_rest", "refund", "weather"],
    ]


async def test_a_regular_expression_may_do_the_finding() -> None:
    agent, model = desk(ToolSearch(index="regex"), search("^(get|send)_"), "Done.")
    await agent.run("go")
    assert asked(model)[1] == ["tool_search", "get_order", "send_mail"]
    assert "regular expression" in model.requests[0].tools[0].parameters["properties"]["query"]["description"]


async def test_an_expression_that_does_not_end_is_an_error_result() -> None:
    tools = [made("a", "a" * 400), made("b", "a" * 400)]
    agent, model = desk(ToolSearch(index=RegexIndex(timeout=0.005)), search("(a|aa)+[b-d]"), "Done.", tools=tools)
    message = (await agent.run("go")).new_messages[2]
    assert message.is_error
    assert "longer than 0.005 s" in message.text
    assert asked(model)[1] == ["tool_search"]


async def test_an_index_with_settings_of_its_own_is_used() -> None:
    index = KeywordIndex(synonyms={"reimburse": ["refund"]})
    agent, model = desk(ToolSearch(index=index), search("reimburse"), "Done.")
    await agent.run("go")
    assert asked(model)[1] == ["tool_search", "refund"]


class Fixed:
    """An index that finds the same tools for every query."""

    hint = "Anything."

    def __init__(self, *names: str) -> None:
        self.names = names
        self.queries: list[str] = []
        self.sets: list[list[str]] = []

    def build(self, tools: Sequence[ToolSpec]) -> None:
        self.sets.append([tool.name for tool in tools])

    async def search(self, built: None, query: str, limit: int) -> list[Hit]:
        self.queries.append(query)
        return [Hit(name, 1.0) for name in self.names]


class Failing(Fixed):
    async def search(self, built: None, query: str, limit: int) -> list[Hit]:
        raise ConnectionError("the vectors are elsewhere")


class Wrong(Fixed):
    async def search(self, built: None, query: str, limit: int) -> list[Hit]:
        return [Hit("refund", "best")]  # type: ignore[arg-type]  # what is tested


class Bringing(Middleware):
    """Brings a tool."""

    tools = (made("note", "Notes something down."),)


class Without(Middleware):
    """Takes a tool away."""

    def __init__(self, name: str) -> None:
        self.left_out = name

    async def around_chat(self, request: ChatRequest, call_next: Any) -> Any:
        return await call_next(request.replace(tools=[tool for tool in request.tools if tool.name != self.left_out]))


class Selecting(Middleware):
    """Asks the model for something else before it asks for an answer."""

    async def around_chat(self, request: ChatRequest, call_next: Any) -> Any:
        await call_next(request.replace(purpose="selection"))
        return await call_next(request)


async def test_an_index_of_ones_own_may_take_its_time_and_cannot_show_what_is_not_there() -> None:
    index = Fixed("transfer_to_x", "refund", "refund", "weather", "get_order")
    agent, model = desk(ToolSearch(index=index, max_results=2), search(" pay "), "Done.")
    await agent.run("go")
    assert index.queries == ["pay"]
    assert asked(model)[1] == ["tool_search", "refund", "weather"]


async def test_an_index_is_built_once_for_a_set_of_tools() -> None:
    index, tools = Fixed("refund"), shop()
    layer = ToolSearch(index=index)
    for names in (tools, tools, tools[::-1]):
        await desk(layer, search("a"), search("b", "s2"), "Done.", tools=names)[0].run("go")
    await desk(layer, search("a"), "Done.", tools=tools[:2])[0].run("go")
    assert [len(names) for names in index.sets] == [4, 2]


@pytest.mark.parametrize(("index", "problem"), [(Failing(), "the vectors are elsewhere"), (Wrong(), "type str")])
async def test_an_index_that_fails_is_an_error_result_and_shows_nothing(index: Fixed, problem: str) -> None:
    agent, model = desk(ToolSearch(index=index), search("a"), "Done.")
    message = (await agent.run("go")).new_messages[2]
    assert message.is_error
    assert message.text.startswith("The search failed: ")
    assert problem in message.text
    assert asked(model)[1] == ["tool_search"]


async def test_the_search_tool_without_its_layer_says_so() -> None:
    model = ScriptedModel(search("a"), "Done.")
    result = await Agent("desk", model=model, tools=ToolSearch().tools).run("go")
    assert "answered by the layer ToolSearch, which this agent does not have" in results(result.new_messages)[0]


@pytest.mark.parametrize("where", ["tools", "always", "deny"])
async def test_a_name_that_no_agent_has_as_a_tool_is_refused_and_says_which_there_are(where: str) -> None:
    options: dict[str, Any] = {where: ["refnd"]}
    agent, _ = desk(ToolSearch(**options), "Done.")
    with pytest.raises(BuildError, match="'refnd', but there is none; there are: get_order, refund"):
        await agent.run("go")


async def test_a_name_that_another_agent_has_as_a_tool_is_right() -> None:
    layer = ToolSearch(deny=["note"])
    note = made("note", "Notes.")
    other = Agent("other", model=QUIET, tools=[note], middleware=[layer])
    agent, model = desk(layer, "Done.", handoffs=[other])
    await agent.run("go")
    assert asked(model) == [["tool_search", "transfer_to_other"]]


async def test_a_tool_that_only_has_the_name_of_the_agents_is_refused() -> None:
    agent, _ = desk(ToolSearch([made("refund", "Another.")]), "Done.")
    with pytest.raises(BuildError, match="'refund', but another tool has that name"):
        await agent.run("go")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"max_results": 0}, "max_results of ToolSearch"),
        ({"index": "vectors"}, "one of keyword, regex, or has hint, build and search, not 'vectors'"),
        ({"index": object()}, "the index of ToolSearch"),
        ({"tools": "refund"}, "ToolSearch.tools is a list"),
        ({"tools": [print]}, "ToolSearch.tools is a list"),
        ({"always": "refund"}, "ToolSearch.always is a list of names"),
        ({"deny": [made("refund", "")]}, "ToolSearch.deny is a list of names"),
        ({"deny": ["refund"], "always": ["refund"]}, "both show and deny refund"),
        ({"deny": ["refund"], "tools": ["refund"]}, "both show and deny refund"),
        ({"tool_name": "find it"}, "find it"),
    ],
)
def test_settings_that_cannot_work_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        ToolSearch(**options)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"tools": ["refund", "refund"]}, "'refund'"),
        ({"tools": [made("refund", "One."), made("refund", "Two.")]}, "'refund'"),
        ({"tools": ["tool_search"]}, "'tool_search'"),
        ({"deny": ["look"], "tool_name": "look"}, "'look'"),
    ],
)
def test_one_name_for_two_tools_is_refused(options: dict[str, Any], found: str) -> None:
    with pytest.raises(NameClash, match=found):
        ToolSearch(**options)


async def test_what_was_found_is_kept_with_the_session(tmp_path: Path) -> None:
    first, _ = desk(ToolSearch(), search("weather"), "Done.")
    await first.run("go", session=tmp_path / "s.jsonl")
    again, model = desk(ToolSearch(), search("letter"), "Done.")
    await again.run("go on", session=tmp_path / "s.jsonl")
    assert asked(model) == [["tool_search", "weather"], ["tool_search", "weather", "send_mail"]]


async def test_what_a_session_found_and_no_agent_has_any_more_is_left_out(tmp_path: Path) -> None:
    first, _ = desk(ToolSearch(), search("weather"), "Done.")
    await first.run("go", session=tmp_path / "s.jsonl")
    again, model = desk(ToolSearch(), "Done.", tools=shop()[:2])
    await again.run("go on", session=tmp_path / "s.jsonl")
    assert asked(model) == [["tool_search"]]


async def test_another_run_without_a_session_begins_anew() -> None:
    agent, model = desk(ToolSearch(), search("weather"), "Done.", "Done.")
    await agent.run("go")
    await agent.run("go")
    assert asked(model)[2] == ["tool_search"]


async def test_a_child_that_may_only_read_finds_only_what_reads() -> None:
    model = ScriptedModel(search("order"), "Done.")
    look = Tool(name="look", description="Looks an order up.", fn=shop()[0].fn, side_effects="read_only")
    child = Agent("child", model=model, tools=[look, *shop()], middleware=[ToolSearch()])
    asking = ScriptedModel(call("child", call_id="c", input="go"), "Done.")
    await Agent("desk", model=asking, tools=[to_tool(child, capability="read_only")]).run("go")
    assert asked(model) == [["tool_search"], ["tool_search", "look"]]


async def test_a_layer_of_a_run_keeps_back_the_tools_of_every_agent_in_it() -> None:
    second = ScriptedModel("Done.")
    billing = Agent("billing", model=second, tools=shop()[:1])
    first = ScriptedModel(call("transfer_to_billing", call_id="h"))
    agent = Agent("desk", model=first, tools=shop()[1:], handoffs=[billing])
    await agent.run("go", middleware=[ToolSearch(deny=["get_order", "refund"])])
    assert (asked(first), asked(second)) == ([["tool_search", "transfer_to_billing"]], [[]])


async def test_the_chains_without_a_loop_search_too() -> None:
    model = ScriptedModel("Done.", "Done.")
    kernel = Kernel(model, shop(), [ToolSearch()])
    await kernel.chat("go")
    await kernel.tool("tool_search", {"query": "weather"})
    await kernel.chat("go on")
    assert asked(model) == [["tool_search"], ["tool_search", "weather"]]


async def test_who_listens_hears_what_was_found() -> None:
    agent, _ = desk(ToolSearch(), search(" weather "), "Done.")
    told = (await hear(agent, "go")).of(Told)
    assert [(each.name, each.data) for each in told] == [("tools_found", {"query": "weather", "names": ["weather"]})]


async def test_instructions_reach_the_model_as_a_block_of_the_layers_name() -> None:
    agent, model = desk(ToolSearch(suffix="Search first."), "Done.", instructions="Be kind.")
    await agent.run("go")
    assert model.requests[0].instructions == {"agent": "Be kind.", "ToolSearch": "Search first."}


def test_a_search_tool_of_the_name_of_another_tool_is_refused() -> None:
    with pytest.raises(NameClash, match="'refund'"):
        desk(ToolSearch(tool_name="refund"))


def test_instructions_come_only_where_they_are_asked_for() -> None:
    assert ToolSearch().instructions == ""
    assert "with find." in ToolSearch(suffix=True, tool_name="find").instructions
    assert ToolSearch(suffix="Search first.").instructions == "Search first."


async def test_a_name_that_no_tool_has_is_answered_with_the_tools_that_were_shown_and_no_others() -> None:
    agent, _ = desk(ToolSearch(), call("wether", call_id="c1"), "Done.")
    [said] = results((await agent.run("go")).messages)
    assert said.endswith("The tools are: tool_search.")


FINDS = """
import asyncio, sys
from agent.middleware.test_tool_search import ToolSearch, desk, search
agent, _ = desk(ToolSearch(strict=True), search("weather"), "Done.")
asyncio.run(agent.run("go", session=sys.argv[1]))
"""


async def test_what_another_process_found_no_window_hides_and_no_summary(tmp_path: Path, root: Path) -> None:
    async def forgets(state: Any, run: Any) -> Any:
        return {"messages": overwrite([user("Before: they talked.")])} if run.step == 1 else None

    path = tmp_path / "s.jsonl"
    subprocess.run([sys.executable, "-c", FINDS, str(path)], check=True, cwd=root / "tests")
    model = ScriptedModel(call("weather", call_id="w"), "Done.")
    layers = [before_model(forgets), ToolSearch(strict=True)]
    result = await Agent("desk", model=model, tools=shop(), middleware=layers).run("go on", session=path)
    assert asked(model)[0] == ["tool_search", "weather"]
    assert [message.text for message in model.requests[0].messages] == ["Before: they talked."]
    assert results(result.new_messages) == ["weather ran"]


@pytest.mark.parametrize(
    "option", ["tools", "always", "deny", "accumulate", "strict", "suffix", "index", "max_results"]
)
def test_what_an_option_cannot_be_is_refused(option: str) -> None:
    given: dict[str, Any] = {option: 3.5}
    with pytest.raises(BuildError, match=f"{option}.* not 3.5"):
        ToolSearch(**given)
