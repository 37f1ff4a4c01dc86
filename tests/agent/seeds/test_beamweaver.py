"""The examples of BeamWeaver's middleware page, as somebody who uses Handrail writes them."""

import logging
import re
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest

from agent.desks import answers, failure, texts
from handrail.agent import (
    Agent,
    BuildError,
    FunctionModel,
    LimitExceeded,
    Limits,
    Middleware,
    Model,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    RunContext,
    ScriptedModel,
    handoff,
    tool,
)
from handrail.agent.errors import InvalidAnswer, InvalidJump, MissingDeps
from handrail.agent.kernel import (
    CallChat,
    ChatRequest,
    State,
    after_agent,
    after_model,
    around_chat,
    before_agent,
    before_model,
    jump,
    overwrite,
)
from handrail.agent.models import ChatResponse
from handrail.filters import assistant, breaches, call, user
from handrail.sessions import Session


@tool
def search_docs(query: str) -> str:
    """Searches the documentation."""
    return f"found {query}"


@tool
def internal_admin_tool() -> str:
    """Administers."""
    return "done"


# A support agent with a dynamic prompt, retries and a denied tool


@around_chat
async def dynamic_prompt(request: ChatRequest, call_next: CallChat) -> ChatResponse:
    """Says who the customer is."""
    tier = (request.run.deps or {}).get("user_tier", "standard")
    block = {"tier": f"You are a support agent for a {tier} customer."}
    return await call_next(request.replace(instructions={**request.instructions, **block}))


@dataclass(frozen=True)
class Retries(Middleware):
    """Asks again where the service failed by itself."""

    max_retries: int

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        for _ in range(self.max_retries):
            try:
                return await call_next(request)
            except ModelError as error:
                if not error.retryable:
                    raise
        return await call_next(request)


@dataclass(frozen=True)
class Denies(Middleware):
    """Leaves tools out of what the model is offered."""

    names: tuple[str, ...]

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        offered = tuple([spec for spec in request.tools if spec.name not in self.names])
        return await call_next(request.replace(tools=offered))


def support(*script: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(*script)
    layers = [dynamic_prompt, Retries(2), Denies(("internal_admin_tool",))]
    return Agent("support", model=model, tools=[search_docs, internal_admin_tool], middleware=layers), model


@pytest.mark.parametrize(("deps", "tier"), [({"user_tier": "premium"}, "premium"), (None, "standard")])
async def test_the_prompt_says_whom_the_agent_talks_to(deps: Any, tier: str) -> None:
    agent, model = support("Hello.")
    await agent.run("Hi", deps=deps)
    assert model.requests[0].instructions == {"tier": f"You are a support agent for a {tier} customer."}


async def test_a_model_that_fails_twice_is_asked_a_third_time_and_no_more_than_that() -> None:
    busy = ModelUnavailable("busy")
    agent, model = support(busy, busy, "Hello.")
    result = await agent.run("Hi")
    assert (result.output, result.steps, result.usage.requests) == ("Hello.", 1, 3)
    agent, model = support(busy, busy, busy)
    assert await failure(agent, "Hi") is busy
    assert len(model.requests) == 3


async def test_what_will_not_help_is_not_tried_again() -> None:
    agent, model = support(ModelRefused("no such model", status=404))
    assert isinstance(await failure(agent, "Hi"), ModelRefused)
    assert len(model.requests) == 1


async def test_a_denied_tool_is_not_offered() -> None:
    agent, model = support(call("search_docs", call_id="c1", query="refunds"), "See there.")
    result = await agent.run("Refunds?")
    assert [[spec.name for spec in request.tools] for request in model.requests] == [["search_docs"]] * 2
    assert answers(result.messages) == [("c1", "found refunds")]


# Fallback


@dataclass(frozen=True)
class Fallback(Middleware):
    """Asks other models, one after the other, where the agent's own fails."""

    models: tuple[Model, ...]

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        for model in (request.model, *self.models[:-1]):
            try:
                return await call_next(request.replace(model=model))
            except ModelError:
                continue
        return await call_next(request.replace(model=self.models[-1]))


async def test_another_model_answers_where_the_first_fails_and_both_are_accounted_for() -> None:
    first = ScriptedModel(ModelUnavailable("down"), name="first")
    second = ScriptedModel("Here I am.", name="second")
    result = await Agent("support", model=first, middleware=[Fallback((second,))]).run("Hi")
    assert (result.output, {name: each.requests for name, each in result.usage_by_model.items()}) == (
        "Here I am.",
        {"first": 1, "second": 1},
    )


async def test_where_every_model_fails_the_last_failure_ends_the_run() -> None:
    models = [ScriptedModel(ModelUnavailable(name), name=name) for name in ("first", "second")]
    error = await failure(Agent("support", model=models[0], middleware=[Fallback((models[1],))]), "Hi")
    assert str(error) == "second"


# The loop and its hooks


async def test_the_hooks_stand_around_the_loop_where_the_page_draws_them() -> None:
    order: list[str] = []

    class Draws(Middleware):
        async def before_agent(self, state: State, run: Any) -> None:
            order.append("before_agent")

        async def before_model(self, state: State, run: Any) -> None:
            order.append("before_model")

        async def around_chat(self, request: Any, call_next: Any) -> Any:
            order.append("wrap_model_call")
            return await call_next(request)

        async def after_model(self, state: State, run: Any) -> None:
            order.append("after_model")

        async def around_tool(self, request: Any, call_next: Any) -> Any:
            order.append("wrap_tool_call")
            return await call_next(request)

        async def after_agent(self, state: State, run: Any) -> None:
            order.append("after_agent")

    model = ScriptedModel(call("search_docs", call_id="c1", query="x"), "done")
    await Agent("support", model=model, tools=[search_docs], middleware=[Draws()]).run("Hi")
    step = ["before_model", "wrap_model_call", "after_model"]
    assert order == ["before_agent", *step, "wrap_tool_call", *step, "after_agent"]


class Labelled(Middleware):
    """Logs each model call under a label."""

    def __init__(self, label: str = "agent") -> None:
        self.name, self.label = "logging", label
        self.log = logging.getLogger("desk")

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        self.log.info("%s: model call with %d messages", self.label, len(request.messages))
        try:
            response = await call_next(request)
        except ModelError as error:
            self.log.warning("%s: model error %s", self.label, type(error).__name__)
            raise
        self.log.info("%s: model response accepted", self.label)
        return response


async def test_a_layer_with_settings_of_its_own_logs_what_goes_well_and_what_does_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    agent = Agent("support", model=ScriptedModel("Hello.", ModelUnavailable("busy")), middleware=[Labelled("support")])
    await agent.run("Hi")
    await failure(agent, [user("one"), assistant("two"), user("three")])
    assert caplog.messages == [
        "support: model call with 1 messages",
        "support: model response accepted",
        "support: model call with 3 messages",
        "support: model error ModelUnavailable",
    ]


@before_model
async def trim_messages(state: State, run: Any) -> Any:
    """Keeps the last twelve messages."""
    return {"messages": overwrite(state.messages[-12:])} if len(state.messages) > 12 else None


async def test_the_view_is_trimmed_to_its_last_twelve_messages_and_the_log_keeps_all(tmp_path: Any) -> None:
    path = tmp_path / "s.jsonl"
    past = [user(f"u{n}") if n % 2 else assistant(f"a{n}") for n in range(1, 16)]
    model = ScriptedModel("done")
    result = await Agent("support", model=model, middleware=[trim_messages]).run(past, session=path)
    assert texts(model.requests[0].messages) == [message.text for message in past[-12:]]
    assert len(result.messages) == 13
    assert texts(Session(path).history()) == texts(result.messages)
    assert len(Session(path).log) == 16


async def test_trimming_never_leaves_a_result_without_its_call() -> None:
    model = ScriptedModel(call("search_docs", call_id="c1", query="x"), *["done"] * 9)
    agent = Agent("support", model=model, tools=[search_docs], middleware=[trim_messages])
    messages: Any = ()
    for number in range(9):
        messages = (await agent.run([*messages, user(f"u{number}")])).messages
    assert [breach for request in model.requests for breach in breaches(request.messages)] == []
    assert max(len(request.messages) for request in model.requests) == 12


# What a state hook may return


@pytest.mark.parametrize("nothing", [None, {}])
async def test_nothing_and_an_empty_update_change_nothing(nothing: Any) -> None:
    async def quiet(state: State, run: Any) -> Any:
        return nothing

    result = await Agent("support", model=ScriptedModel("Hello."), middleware=[before_model(quiet)]).run("Hi")
    assert texts(result.messages) == ["Hi", "Hello."]


async def test_an_error_ends_the_run_as_an_error_does_and_what_is_no_update_is_named() -> None:
    async def fails(state: State, run: Any) -> Any:
        raise PermissionError("not today")

    async def tells(state: State, run: Any) -> Any:
        return ("error", "not today")

    with pytest.raises(PermissionError, match="not today"):
        await Agent("support", model=ScriptedModel(), middleware=[before_model(fails)]).run("Hi")
    error = await failure(Agent("support", model=ScriptedModel(), middleware=[before_model(tells)]), "Hi")
    assert isinstance(error, InvalidAnswer)
    assert "tells.before_model" in str(error)


async def test_a_jump_to_the_end_carries_an_update_and_passes_after_agent_also_from_a_before_hook() -> None:
    passed: list[str] = []

    @before_model(jumps=["end"])
    async def closed(state: State, run: Any) -> Any:
        return jump("end", {"messages": assistant("We are closed.")})

    @after_agent
    async def cleans_up(state: State, run: Any) -> None:
        passed.append(state.messages[-1].text)

    result = await Agent("support", model=ScriptedModel(), middleware=[cleans_up, closed]).run("Hi")
    assert (result.output, passed) == ("We are closed.", ["We are closed."])


async def test_a_jump_that_was_not_declared_is_refused() -> None:
    async def sneaks(state: State, run: Any) -> Any:
        return jump("end")

    error = await failure(Agent("support", model=ScriptedModel("x"), middleware=[after_model(sneaks)]), "Hi")
    assert isinstance(error, InvalidJump)


async def test_a_run_that_is_told_to_go_back_to_the_model_for_ever_ends_at_its_limit_counted_in_model_calls() -> None:
    @after_model(jumps=["model"])
    async def again(state: State, run: Any) -> Any:
        return jump("model")

    agent = Agent("support", model=FunctionModel(lambda request: "x"), middleware=[again, trim_messages])
    error = await failure(agent, "Hi", limits=Limits(max_steps=4))
    assert isinstance(error, LimitExceeded)
    assert error.usage.requests == 4


# Another model for some


@around_chat
async def switch_model(request: ChatRequest, call_next: CallChat) -> ChatResponse:
    """Premium customers have the better model."""
    deps = request.run.deps
    return await call_next(request.replace(model=deps["better"]) if deps.get("premium") else request)


async def test_premium_customers_are_answered_by_the_better_model() -> None:
    plain, better = ScriptedModel("plain", name="plain"), ScriptedModel("better", name="better")
    agent = Agent("support", model=plain, middleware=[switch_model])
    assert (await agent.run("Hi", deps={"premium": True, "better": better})).output == "better"
    assert (await agent.run("Hi", deps={})).output == "plain"


async def test_a_request_with_a_field_that_is_none_is_an_error_where_there_it_passes_in_silence() -> None:
    @around_chat
    async def typo(request: ChatRequest, call_next: CallChat) -> ChatResponse:
        return await call_next(request.replace(modle=None))

    with pytest.raises(TypeError, match="modle"):
        await Agent("support", model=ScriptedModel(), middleware=[typo]).run("Hi")


# State and context


class Preferences(TypedDict):
    """What is known of the customer."""

    preferences: dict[str, str]


@before_model(channels=Preferences, requires={"user_id": str}, name="preferences")
async def keep_preferences(state: State, run: RunContext[Any]) -> Any:
    """Notes whose preferences these are."""
    return {"preferences": {"user_id": run.deps["user_id"], **state.get("preferences", {})}}


async def test_preferences_are_kept_in_a_channel_of_their_own_and_a_user_id_is_only_put_where_there_is_none() -> None:
    agent = Agent("support", model=ScriptedModel("a", "b"), middleware=[keep_preferences])
    result = await agent.run("Hi", deps={"user_id": "u1"})
    assert result.state == {"preferences": {"user_id": "u1"}}
    known = {"preferences": {"user_id": "u0", "colour": "blue"}}
    assert (await agent.run("Hi", deps={"user_id": "u1"}, state=known)).state == known


async def test_a_run_without_the_context_that_a_layer_requires_does_not_begin() -> None:
    for deps, found in ((None, "is not there"), ({"user_id": 7}, "is int, not str")):
        error = await failure(Agent("support", model=ScriptedModel(), middleware=[keep_preferences]), "Hi", deps=deps)
        assert isinstance(error, MissingDeps)
        assert (error.owner, error.name) == ("preferences", "user_id")
        assert found in str(error)


def test_two_layers_that_mean_different_things_by_one_channel_are_refused() -> None:
    class Others(TypedDict):
        preferences: list[str]

    other = type("Other", (Middleware,), {"channels": Others})()
    with pytest.raises(BuildError, match="'preferences' is declared by both preferences and Other"):
        Agent("support", model=ScriptedModel(), middleware=[keep_preferences, other])


# The tool node and the final response


async def test_valid_calls_run_and_bad_ones_are_answered_in_the_same_step() -> None:
    calls = [
        call("search_docs", call_id="c1", query="refunds"),
        call("search_docs", call_id="c2", quarry="refunds"),
        call("serch_docs", call_id="c3", query="refunds"),
    ]
    model = ScriptedModel(calls, "done")
    result = await Agent("support", model=model, tools=[search_docs]).run("Refunds?")
    told = dict(answers(result.messages))
    assert told["c1"] == "found refunds"
    assert "query: " in told["c2"]
    assert "Did you mean search_docs?" in told["c3"]
    assert len(model.requests) == 2


async def test_a_result_holds_the_answer_its_message_the_whole_view_and_what_was_new() -> None:
    model = ScriptedModel("Hello.", "Fine.")
    agent = Agent("support", model=model)
    first = await agent.run("Hi")
    result = await agent.run([*first.messages, user("And you?")])
    assert (result.output, result.message) == ("Fine.", result.messages[-1])
    assert texts(result.messages) == ["Hi", "Hello.", "And you?", "Fine."]
    assert texts(result.new_messages)[-2:] == ["And you?", "Fine."]


# Middleware travels with its agent


EMAIL = re.compile(r"\S+@\S+")


@before_agent
async def hide_addresses(state: State, run: Any) -> Any:
    """The agent sees no address."""
    hidden = [message.replace(content=EMAIL.sub("[address]", message.text)) for message in state.messages]
    return {"messages": overwrite(hidden)}


def workflow() -> tuple[Agent, ScriptedModel]:
    """Mail is classified; what is urgent goes to an agent that has middleware of its own."""
    model = ScriptedModel("I will answer at once.")
    mail = Agent("mail", model=model, middleware=[hide_addresses])

    @before_agent(jumps=["end"])
    async def classify(state: State, run: RunContext[Any]) -> Any:
        if "urgent" in state.messages[-1].text.lower():
            run.handoff("mail")
        return jump("end")

    return Agent("desk", model=ScriptedModel(), handoffs=[handoff(mail)], middleware=[classify]), model


async def test_an_agents_layers_go_with_it_into_a_larger_flow() -> None:
    agent, model = workflow()
    result = await agent.run("URGENT: write to ada@example.com")
    assert (result.agent, texts(model.requests[0].messages)) == ("mail", ["URGENT: write to [address]"])
    agent, model = workflow()
    result = await agent.run("For later.")
    assert (result.agent, result.output, model.requests) == ("desk", "", [])


async def test_an_agent_with_layers_is_a_tool_of_another_with_all_of_them() -> None:
    model = ScriptedModel("Written.")
    mail = Agent("mail", model=model, middleware=[hide_addresses])
    boss = Agent(
        "boss",
        model=ScriptedModel(call("mail", call_id="k1", input="To ada@example.com"), "done"),
        tools=[mail.to_tool()],
    )
    await boss.run("Write.")
    assert texts(model.requests[0].messages)[-1] == "To [address]"
