"""The examples of beamai's filter document, as somebody who uses Handrail writes them."""

import logging
from typing import Any

import pytest

from agent.desks import Heard, answers, hear, result_of, texts
from handrail.agent import Agent, BuildError, ChatResponse, FunctionModel, ModelUnavailable, ScriptedModel, tool
from handrail.agent.events import Text
from handrail.agent.kernel import (
    Kernel,
    Middleware,
    Token,
    TokenTransform,
    ToolResponse,
    around_chat,
    around_tool,
    around_turn,
    chain,
    token_transform,
)
from handrail.agent.middleware import (
    Approval,
    HoldRelease,
    Memory,
    Safeguard,
    SchemaValidation,
    Timeout,
    TokenRedact,
    ToolSearch,
    Validation,
)
from handrail.agent.models import TextDelta
from handrail.filters import assistant, call, system, user

ECHO = FunctionModel(lambda request: f"You said: {request.messages[-1].text}")


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


# Onion execution order


def marking(name: str, seen: list[str]) -> Any:
    """A layer that marks its before and its after."""

    async def around(request: Any, call_next: Any) -> Any:
        seen.append(f"{name} before")
        response = await call_next(request)
        seen.append(f"{name} after")
        return response

    return around


async def test_two_layers_and_a_terminal_run_before_from_the_outside_and_after_from_the_inside() -> None:
    seen: list[str] = []

    async def terminal(request: Any) -> Any:
        seen.append("terminal")

    await chain([marking("A", seen), marking("B", seen)], terminal)("request")
    assert seen == ["A before", "B before", "terminal", "B after", "A after"]


async def test_the_chain_of_an_agent_has_that_same_order_for_chats_and_for_tools() -> None:
    chains: list[tuple[Any, Any]] = [
        (around_chat, lambda kernel: kernel.chat("Hi")),
        (around_tool, lambda kernel: kernel.tool("add", {"a": 1, "b": 2})),
    ]
    for hook, ask in chains:
        seen: list[str] = []
        layers = [hook(name=name)(marking(name, seen)) for name in "AB"]
        await ask(Kernel(ECHO, [add], layers))
        assert seen == ["A before", "B before", "B after", "A after"]


async def test_a_layer_that_lacks_the_hook_of_a_chain_is_left_out_of_it() -> None:
    seen: list[str] = []
    kernel = Kernel(ECHO, [add], [around_chat(name="chats")(marking("chats", seen))])
    await kernel.tool("add", {"a": 1, "b": 1})
    assert seen == []


# Usage


async def test_layers_are_given_when_the_kernel_is_built(capsys: pytest.CaptureFixture[str]) -> None:
    @around_tool
    async def logger(request: Any, call_next: Any) -> Any:
        print(f"calling {request.tool.name} with {dict(request.arguments)}")
        return await call_next(request)

    assert (await Kernel(ECHO, [add], [logger]).tool("add", {"a": 1, "b": 2})).value == 3
    assert capsys.readouterr().out == "calling add with {'a': 1, 'b': 2}\n"


async def test_of_validator_logger_and_transformer_the_validator_is_outermost() -> None:
    seen: list[str] = []
    names = ["validator", "logger", "transformer"]
    kernel = Kernel(ECHO, [add], [around_tool(name=name)(marking(name, seen)) for name in names])
    await kernel.tool("add", {"a": 1, "b": 2})
    assert seen == [*[f"{name} before" for name in names], *[f"{name} after" for name in reversed(names)]]
    assert "tool: validator > logger > transformer > tool" in kernel.describe()


# Complete examples


async def test_example_1_three_and_five_logged_and_doubled_are_sixteen(caplog: pytest.LogCaptureFixture) -> None:
    @around_tool
    async def log_and_double(request: Any, call_next: Any) -> Any:
        logging.getLogger("desk").info("%s(%s)", request.tool.name, dict(request.arguments))
        response = await call_next(request)
        return response.replace(value=response.value * 2)

    caplog.set_level(logging.INFO)
    model = ScriptedModel(call("add", call_id="c1", a=3, b=5), "It is 16.")
    result = await Agent("sums", model=model, tools=[add], middleware=[log_and_double]).run("3 + 5, please.")
    assert answers(result.messages) == [("c1", "16")]
    assert caplog.messages == ["add({'a': 3, 'b': 5})"]


async def test_example_2_a_system_message_is_put_in_front_once_and_the_answer_is_measured() -> None:
    lengths: list[int] = []

    @around_chat
    async def system_and_audit(request: Any, call_next: Any) -> Any:
        if not any(message.role == "system" for message in request.messages):
            request = request.replace(messages=(system("Answer concisely."), *request.messages))
        response = await call_next(request)
        lengths.append(len(response.message.text.encode()))
        return response

    model = ScriptedModel("Short.", "Brief.")
    agent = Agent("desk", model=model, middleware=[system_and_audit])
    result = await agent.run("Who are you?")
    await agent.run([system("Answer at length."), user("Who are you?")])
    assert [texts(request.messages)[0] for request in model.requests] == ["Answer concisely.", "Answer at length."]
    assert lengths == [6, 6]
    assert texts(result.messages) == ["Who are you?", "Short."]


async def test_example_3_a_call_over_the_limit_does_not_run_and_the_layer_outside_still_cleans_up() -> None:
    ran: list[int] = []
    cleaned: list[str] = []

    @tool
    def spend(a: int) -> int:
        """Spends so much."""
        ran.append(a)
        return a

    @around_tool
    async def guard(request: Any, call_next: Any) -> Any:
        if request.arguments["a"] > 1000:
            return ToolResponse(content="a exceeds limit", is_error=True)
        return await call_next(request)

    model = ScriptedModel([call("spend", call_id="c1", a=1001), call("spend", call_id="c2", a=1000)], "done")
    layers = [around_tool(name="cleanup")(marking("cleanup", cleaned)), guard]
    result = await Agent("purse", model=model, tools=[spend], middleware=layers).run("Spend it.")
    assert (result_of(result.messages, "c1").text, result_of(result.messages, "c1").is_error) == (
        "a exceeds limit",
        True,
    )
    assert (ran, cleaned.count("cleanup after")) == ([1000], 2)


async def test_example_4_a_counter_of_its_own_adds_up_over_the_steps_of_one_run_and_begins_anew_in_the_next() -> None:
    counts: list[int] = []

    @around_chat(init_state={"calls": 0})
    async def counter(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        request.state["calls"] += 1
        counts.append(request.state["calls"])
        return response

    model = ScriptedModel(call("add", call_id="c1", a=1, b=2), call("add", call_id="c2", a=3, b=4), "7", "Hello.")
    agent = Agent("sums", model=model, tools=[add], middleware=[counter])
    await agent.run("Add.")
    await agent.run("Hi.")
    assert counts == [1, 2, 3, 1]


async def test_private_state_is_shared_by_the_hooks_of_a_layer_and_by_nobody_else() -> None:
    class Budget(Middleware):
        def init_state(self) -> dict[str, Any]:
            return {"chats": 0, "refused": False}

        async def around_chat(self, request: Any, call_next: Any) -> Any:
            request.state["chats"] += 1
            return await call_next(request)

        async def around_tool(self, request: Any, call_next: Any) -> Any:
            if request.state["chats"] > 1:
                return ToolResponse(content="no more", is_error=True)
            return await call_next(request)

    model = ScriptedModel(call("add", call_id="c1", a=1, b=2), call("add", call_id="c2", a=1, b=2), "done")
    layers = [Budget(), type("Other", (Budget,), {"name": "other"})()]
    result = await Agent("sums", model=model, tools=[add], middleware=layers).run("Add.")
    assert [text for _, text in answers(result.messages)] == ["3", "no more"]


# Re-entry


@pytest.mark.parametrize("memory", [True, False])
async def test_a_layer_that_has_the_turn_tried_again_gives_the_whole_context_with_a_memory_and_without(
    memory: bool,
) -> None:
    @around_turn
    async def validate(request: Any, call_next: Any) -> Any:
        result = await call_next(request)
        while result.status == "completed" and "kg" not in result.output:
            result = await call_next(request.again(result, "Your last answer has no unit."))
        return result

    model = ScriptedModel("12", "12 kg")
    layers = [*([Memory()] if memory else []), validate]
    agent = Agent("scales", model=model, middleware=layers)
    result = await agent.run("How heavy is it?", deps={"conversation_id": "c1"})
    assert texts(model.requests[1].messages) == ["How heavy is it?", "12", "Your last answer has no unit."]
    assert texts(result.messages) == ["How heavy is it?", "12 kg"]


async def test_the_whole_sequence_may_be_given_by_hand_with_load_history_off() -> None:
    @around_turn
    async def validate(request: Any, call_next: Any) -> Any:
        result = await call_next(request)
        if "kg" in result.output:
            return result
        more = (*result.messages, user("Your last answer has no unit."))
        return await call_next(request.replace(messages=more, load_history=False))

    model = ScriptedModel("12", "12 kg")
    result = await Agent("scales", model=model, middleware=[validate]).run("How heavy is it?")
    assert texts(model.requests[1].messages) == ["How heavy is it?", "12", "Your last answer has no unit."]
    assert result.output == "12 kg"


# The token stream


class Hides(TokenTransform):
    """Rewrites what is a key, and holds each word back until the next one comes."""

    def __init__(self) -> None:
        self.held: list[Token] = []

    def step(self, token: Token) -> list[Token]:
        out, self.held = self.held, [token.replace("[KEY] ") if token.text.startswith("sk-") else token]
        return out

    def flush(self) -> list[Token]:
        out, self.held = self.held, []
        return out


@token_transform
def hide_keys(request: Any) -> TokenTransform:
    """Nobody who listens sees a key."""
    return Hides()


def said(heard: Heard) -> str:
    """All text that was heard."""
    return "".join([event.text for event in heard.of(Text)])


async def test_a_transform_rewrites_and_buffers_what_is_heard_and_the_answer_stays_the_original() -> None:
    heard = await hear(Agent("desk", model=ScriptedModel("Use sk-abc123 today."), middleware=[hide_keys]), "Which?")
    assert said(heard) == "Use [KEY] today."
    assert heard.result is not None
    assert heard.result.output == "Use sk-abc123 today."
    unheard = await Agent("desk", model=ScriptedModel("Use sk-abc123."), middleware=[hide_keys]).run("Which?")
    assert unheard.output == "Use sk-abc123."


async def test_a_buffered_rest_passes_the_later_transforms_and_nothing_of_it_comes_out_on_an_error() -> None:
    order: list[str] = []

    @token_transform(name="last")
    def last(request: Any) -> TokenTransform:
        class Notes(TokenTransform):
            def step(self, token: Token) -> tuple[Token, ...]:
                order.append(token.text)
                return (token,)

        return Notes()

    await hear(Agent("desk", model=ScriptedModel("one two"), middleware=[hide_keys, last]), "Count.")
    assert order == ["one ", "two"]

    class Breaks(FunctionModel):
        async def stream(self, request: Any) -> Any:
            yield TextDelta("half ")
            raise ModelUnavailable("gone")

    heard = await hear(Agent("desk", model=Breaks(lambda request: ""), middleware=[hide_keys]), "Count.")
    assert (said(heard), type(heard.error)) == ("", ModelUnavailable)


async def test_each_round_of_the_loop_has_a_transform_of_its_own() -> None:
    made: list[int] = []

    @token_transform
    def counts(request: Any) -> TokenTransform:
        made.append(request.run.step)
        return TokenTransform()

    model = ScriptedModel(call("add", call_id="c1", a=1, b=2), "3")
    heard = await hear(Agent("sums", model=model, tools=[add], middleware=[counts]), "Add.")
    assert (made, said(heard)) == ([1, 2], "3")


async def test_keys_are_redacted_as_they_stream_wherever_a_chunk_ends_and_the_answer_is_untouched() -> None:
    class Chunks(FunctionModel):
        async def stream(self, request: Any) -> Any:
            for letter in "Use sk-abc123 today.":
                yield TextDelta(letter)
            yield ChatResponse(assistant("Use sk-abc123 today."))

    layer = TokenRedact(r"sk-\w+", replacement="[KEY]")
    heard = await hear(Agent("desk", model=Chunks(lambda request: ""), middleware=[layer]), "Which?")
    assert said(heard) == "Use [KEY] today."
    assert heard.result is not None
    assert heard.result.output == "Use sk-abc123 today."


async def test_the_whole_stream_is_held_until_it_was_reviewed_and_then_released_or_replaced_by_one_token() -> None:
    for text, released in (("All is well.", "All is well."), ("The code is 1234.", "[withheld]")):
        layer = HoldRelease(lambda whole: "1234" not in whole)
        heard = await hear(Agent("desk", model=ScriptedModel(text), middleware=[layer]), "Tell me.")
        assert said(heard) == released


# Built-in filters


async def test_a_forbidden_word_never_reaches_the_model_also_not_in_the_result_of_a_tool() -> None:
    @tool
    def look() -> str:
        """Looks."""
        return "there it says FORBIDDEN-WORD"

    asked = ScriptedModel()
    result = await Agent("desk", model=asked, middleware=[Safeguard(["forbidden-word"])]).run("Forbidden-Word?")
    assert (asked.requests, result.finish_reason) == ([], "content_filtered")
    looked = ScriptedModel(call("look", call_id="c1"))
    result = await Agent("desk", model=looked, tools=[look], middleware=[Safeguard(["forbidden-word"])]).run("Look.")
    assert (len(looked.requests), result.finish_reason) == (1, "content_filtered")


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
}


async def test_an_answer_that_does_not_fit_the_schema_is_corrected_within_two_retries() -> None:
    model = ScriptedModel("Ada, 36", '{"name": "Ada", "age": -1}', '```json\n{"name": "Ada", "age": 36}\n```')
    result = await Agent("desk", model=model, middleware=[SchemaValidation(PERSON, retries=2)]).run("Who?")
    assert result.output == {"name": "Ada", "age": 36}
    assert "age" in model.requests[2].messages[-1].text
    assert result.verdict is not None
    assert (result.verdict.valid, result.verdict.attempts) == (True, 3)


async def test_retries_that_are_exhausted_may_return_the_last_answer_which_then_says_that_it_is_not_valid() -> None:
    model = ScriptedModel("no", "still no")
    check = Validation(lambda output: "yes" in output, retries=1, on_exhausted="return")
    result = await Agent("desk", model=model, middleware=[check]).run("Is it?")
    assert (result.output, result.verdict and result.verdict.valid) == ("still no", False)


async def test_a_tool_that_takes_too_long_is_an_error_that_may_be_tried_again() -> None:
    import asyncio

    @tool
    async def sleep() -> str:
        """Sleeps for ever."""
        await asyncio.Event().wait()
        return ""

    model = ScriptedModel(call("sleep", call_id="c1"), "It took too long.")
    result = await Agent("desk", model=model, tools=[sleep], middleware=[Timeout(tool=0.001)]).run("Sleep.")
    assert result_of(result.messages, "c1").is_error
    assert "did not end within" in result_of(result.messages, "c1").text


async def test_a_call_that_is_not_approved_is_told_to_the_model_and_the_loop_goes_on() -> None:
    @tool(needs_approval=True)
    def drop() -> str:
        """Drops the table."""
        raise AssertionError("it must not run")

    model = ScriptedModel(call("drop", call_id="c1"), "I may not.")
    result = await Agent("desk", model=model, tools=[drop], middleware=[Approval(lambda request: False)]).run(
        "Drop it."
    )
    assert (result_of(result.messages, "c1").is_error, result.output) == (True, "I may not.")


async def test_of_many_tools_only_the_search_is_advertised_until_the_model_has_searched() -> None:
    @tool
    def refund_order(number: int) -> str:
        """Gives the money for an order back."""
        return f"refunded {number}"

    model = ScriptedModel(
        call("tool_search", call_id="c1", query="refund an order"),
        call("refund_order", call_id="c2", number=7),
        "Done.",
    )
    agent = Agent("desk", model=model, tools=[add, refund_order], middleware=[ToolSearch()])
    result = await agent.run("Refund order 7.")
    shown = [[spec.name for spec in request.tools] for request in model.requests]
    assert (shown[0], set(shown[1])) == (["tool_search"], {"tool_search", "refund_order"})
    assert result_of(result.messages, "c2").text == "refunded 7"


async def test_a_conversation_is_remembered_by_its_id_and_without_one_nothing_is() -> None:
    model = ScriptedModel("Hello Ada.", "You are Ada.", "I do not know.")
    agent = Agent("desk", model=model, middleware=[Memory()])
    await agent.run("I am Ada.", deps={"conversation_id": "c1"})
    await agent.run("Who am I?", deps={"conversation_id": "c1"})
    await agent.run("Who am I?", deps={})
    assert texts(model.requests[1].messages) == ["I am Ada.", "Hello Ada.", "Who am I?"]
    assert texts(model.requests[2].messages) == ["Who am I?"]


async def test_instructions_are_joined_innermost_and_no_layer_or_memory_has_them_among_the_messages() -> None:
    seen: list[list[str]] = []

    @around_chat
    async def look(request: Any, call_next: Any) -> Any:
        seen.append(texts(request.messages))
        return await call_next(request)

    model = ScriptedModel("Hello.")
    result = await Agent("desk", model=model, instructions="Be kind.", middleware=[look]).run("Hi")
    assert (seen, texts(result.messages)) == ([["Hi"]], ["Hi", "Hello."])
    assert model.requests[0].instructions == {"agent": "Be kind."}


# The filter as a value


def test_a_hook_that_is_misspelt_is_refused_where_there_it_would_never_be_called() -> None:
    async def around(request: Any, call_next: Any) -> Any:
        return ToolResponse(assistant("x"))

    with pytest.raises(BuildError, match="around_chats, which is no hook"):
        Kernel(ECHO, middleware=[type("Misspelt", (Middleware,), {"around_chats": staticmethod(around)})()])
