"""Tokens pass the transforms on their way out, first to last; what is held comes out at a clean end, or not at all."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agent.desks import hear
from agent.streaming import Streaming, joined, words
from handrail.agent import Agent, FunctionModel, InvalidAnswer, ScriptedModel, StreamBroken, handoff
from handrail.agent.events import Arguments, Discard, MessageDone, ReasoningText, StepEnd, Text, ToolStart
from handrail.agent.kernel import ChatRequest, Kernel, Middleware, Token, TokenTransform
from handrail.agent.kernel.tokens import KINDS, Pipeline, TokenKind
from handrail.agent.models import ArgumentsDelta, ChatResponse, Profile, ReasoningDelta, TextDelta
from handrail.filters import Reasoning, Refusal, assistant, call


class Upper(TokenTransform):
    def step(self, token: Token) -> Sequence[Token]:
        return (token.replace(token.text.upper()),)


class Twice(TokenTransform):
    def step(self, token: Token) -> Sequence[Token]:
        return (token, token)


class Hold(TokenTransform):
    """Holds everything, and gives it between brackets."""

    def __init__(self, kinds: Sequence[TokenKind] = ("text",)) -> None:
        self.kinds = kinds
        self.held: list[Token] = []

    def step(self, token: Token) -> Sequence[Token]:
        self.held.append(token)
        return ()

    def flush(self) -> Sequence[Token]:
        held, self.held = self.held, []
        return (held[0].replace(f"[{''.join([token.text for token in held])}]"),) if held else ()


class See(TokenTransform):
    """Notes what it sees."""

    kinds = KINDS

    def __init__(self, seen: list[Token]) -> None:
        self.seen = seen

    def step(self, token: Token) -> Sequence[Token]:
        self.seen.append(token)
        return (token,)


class Layer(Middleware):
    def __init__(self, make: Callable[[], TokenTransform], name: str = "layer") -> None:
        self.name = name
        self.make = make

    def token_transform(self, request: ChatRequest) -> TokenTransform:
        return self.make()


def agent(model: Any, *made: Callable[[], TokenTransform], tools: Sequence[Any] = (), around: Any = ()) -> Agent:
    layers = [Layer(make, f"layer {number}") for number, make in enumerate(made, 1)]
    return Agent("X", model=model, tools=tools, middleware=[*around, *layers])


async def ok(a: int = 0) -> str:
    return "ok"


def test_tokens_pass_from_first_to_last() -> None:
    pipeline = Pipeline([("twice", Twice()), ("upper", Upper()), ("hold", Hold())])
    assert list(pipeline.step(Token("a"))) == []
    assert [token.text for token in pipeline.flush()] == ["[AA]"]


def test_what_is_held_passes_the_later_ones_before_they_give_theirs() -> None:
    pipeline = Pipeline([("1", Hold()), ("2", Hold()), ("3", Upper())])
    for text in ("a", "b"):
        assert list(pipeline.step(Token(text))) == []
    assert [token.text for token in pipeline.flush()] == ["[[AB]]"]
    assert list(pipeline.flush()) == []


def test_a_transform_is_asked_for_its_kinds_alone_also_where_another_made_them() -> None:
    class Aloud(TokenTransform):
        kinds = ("reasoning",)

        def step(self, token: Token) -> Sequence[Token]:
            return (Token(token.text), Token("!", "arguments"))

    pipeline = Pipeline([("upper", Upper()), ("aloud", Aloud()), ("hold", Hold()), ("upper too", Upper())])
    assert list(pipeline.step(Token("a"))) == []
    assert [(token.kind, token.text) for token in pipeline.step(Token("b", "reasoning"))] == [("arguments", "!")]
    assert [token.text for token in pipeline.flush()] == ["[AB]"]


async def test_the_first_layer_is_nearest_the_model() -> None:
    heard = await hear(agent(ScriptedModel("so it is"), Upper, Hold), "go")
    assert joined(heard) == "[SO IT IS]"
    assert heard.of(MessageDone)[0].message.text == "so it is"
    assert heard.result is not None
    assert heard.result.output == "so it is"


async def test_a_token_says_what_it_is_a_piece_of() -> None:
    seen: list[Token] = []
    model = ScriptedModel([Reasoning("hm"), "I look", call("ok", call_id="c1", a=1)], "done")
    heard = await hear(agent(model, lambda: See(seen), tools=[ok]), "go")
    first, last = [event.message.id for event in heard.of(MessageDone)]
    assert seen == [
        Token("hm", "reasoning", first, "X", 1),
        Token("I ", "text", first, "X", 1),
        Token("look", "text", first, "X", 1),
        Token('{"a":1}', "arguments", first, "X", 1, "c1", "ok"),
        Token("done", "text", last, "X", 2),
    ]


async def test_what_a_transform_makes_is_delivered_as_the_kind_it_says_and_as_a_piece_of_its_answer() -> None:
    class Other(TokenTransform):
        def step(self, token: Token) -> Sequence[Token]:
            return [Token("a", "reasoning", "forged"), Token("b", "arguments", call_id="c1", name="f"), Token("c")]

    heard = await hear(agent(ScriptedModel("x"), Other), "go")
    told: list[Any] = [event for event in heard.events if isinstance(event, Text | ReasoningText | Arguments)]
    assert [(type(event), event.text) for event in told] == [(ReasoningText, "a"), (Arguments, "b"), (Text, "c")]
    assert {event.message_id for event in told} == {heard.of(MessageDone)[0].message.id}
    assert (told[1].call_id, told[1].name) == ("c1", "f")


async def test_what_is_held_comes_before_each_calls_arguments_and_before_the_message() -> None:
    pieces = [
        TextDelta("one"),
        ArgumentsDelta(0, "c1", "ok", '{"a"'),
        ArgumentsDelta(0, "c1", "ok", ":1}"),
        TextDelta("two"),
        ArgumentsDelta(1, "c2", "ok", "{}"),
        TextDelta("three"),
        ChatResponse(assistant("x", call("ok", call_id="c1", a=1), call("ok", call_id="c2"))),
    ]
    heard = await hear(agent(Streaming(pieces, words("end")), Hold, tools=[ok]), "go")
    told = [event for event in heard.events if isinstance(event, Text | Arguments | MessageDone | ToolStart)]
    assert [getattr(event, "text", type(event).__name__) for event in told] == [
        *("[one]", '{"a"', ":1}", "[two]", "{}", "[three]", "MessageDone", "ToolStart", "ToolStart"),
        *("[end]", "MessageDone"),
    ]


async def test_a_pause_gives_only_what_a_transform_wants_it_to() -> None:
    class Late(Hold):
        def pause(self) -> Sequence[Token]:
            return ()

    model = ScriptedModel(["one", call("ok", call_id="c1")], "two")
    heard = await hear(agent(model, Late, tools=[ok]), "go")
    told = [event for event in heard.events if isinstance(event, Text | Arguments)]
    assert [type(event) for event in told] == [Arguments, Text, Text]


BROKEN = StreamBroken("cut")


@pytest.mark.parametrize("pieces", [[TextDelta("secret"), BROKEN], [TextDelta("secret")], [TextDelta("secret"), "?"]])
async def test_nothing_that_is_held_comes_out_after_an_error(pieces: list[Any]) -> None:
    heard = await hear(agent(Streaming(pieces), Hold), "go")
    assert heard.error is not None
    assert (heard.of(Text), heard.of(Discard)) == ([], [])


@pytest.mark.parametrize(
    "answer",
    [
        ChatResponse(assistant("sec"), finish_reason="content_filtered"),
        ChatResponse(assistant("sec", Refusal("I cannot say that."))),
    ],
)
async def test_nor_of_an_answer_that_the_service_cut_off_or_the_model_refused(answer: ChatResponse) -> None:
    assert (await hear(agent(Streaming([TextDelta("sec"), answer]), Hold), "go")).of(Text) == []


async def test_nor_of_an_answer_that_is_none() -> None:
    wrong: Any = Streaming([TextDelta("sec"), ChatResponse("no message")])  # type: ignore[arg-type]
    heard = await hear(agent(wrong, Hold), "go")
    assert type(heard.error) is InvalidAnswer
    assert heard.of(Text) == []


async def test_nor_after_a_cancel() -> None:
    begun = asyncio.Event()

    class Told(TokenTransform):
        def step(self, token: Token) -> Sequence[Token]:
            begun.set()
            return (token,)

    stuck = asyncio.Event()
    model: Any = Streaming([TextDelta("secret"), stuck, *words("secret")])
    heard: list[Any] = []
    async with agent(model, Told, Hold).stream("go") as run:
        listening = asyncio.create_task(_listen(run, heard))
        await begun.wait()
    await asyncio.wait([listening])
    assert [event for event in heard if isinstance(event, Text)] == []


async def _listen(run: Any, heard: list[Any]) -> None:
    async for event in run:
        heard.append(event)


async def test_each_attempt_starts_afresh_and_what_came_of_the_failed_one_is_withdrawn() -> None:
    class Again(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            try:
                return await call_next(request)
            except StreamBroken:
                return await call_next(request)

    class Second(Hold):
        """Lets the first token out and holds the rest."""

        begun = False

        def step(self, token: Token) -> Sequence[Token]:
            if self.begun:
                return super().step(token)
            self.begun = True
            return (token,)

    model: Any = Streaming([TextDelta("a"), TextDelta("b"), BROKEN], words("c", "d"))
    heard = await hear(agent(model, Second, around=[Again()]), "go")
    (gone,), texts = heard.of(Discard), heard.of(Text)
    assert [event.text for event in texts] == ["a", "c", "[d]"]
    assert gone.message_id == texts[0].message_id != texts[1].message_id
    assert texts[1].message_id == heard.of(MessageDone)[0].message.id


async def test_an_attempt_of_which_nothing_was_delivered_is_not_withdrawn() -> None:
    class Again(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            await call_next(request)
            return await call_next(request)

    heard = await hear(agent(Streaming(words("a"), words("b")), Silence, around=[Again()]), "go")
    assert (heard.of(Text), heard.of(Discard)) == ([], [])
    assert heard.result is not None
    assert heard.result.output == "b"


class Silence(TokenTransform):
    def step(self, token: Token) -> Sequence[Token]:
        return ()


async def test_run_and_models_that_do_not_stream_know_nothing_of_transforms() -> None:
    def never() -> TokenTransform:
        raise AssertionError("nobody listens")

    assert (await agent(ScriptedModel("a"), never).run("go")).output == "a"

    class Whole(FunctionModel):
        @property
        def profile(self) -> Profile:
            return Profile(streaming=False)

    heard = await hear(agent(Whole(lambda request: "a"), never), "go")
    assert heard.result is not None


async def test_a_layers_own_model_call_is_not_heard_and_not_transformed() -> None:
    seen: list[Token] = []

    class Aside(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            await request.run.ask_model(self, "aside?", purpose="moderation")
            return await call_next(request)

    await hear(agent(ScriptedModel("aside", "answer"), lambda: See(seen), around=[Aside()]), "go")
    assert [token.text for token in seen] == ["answer"]


async def test_an_own_call_that_fails_withdraws_nothing_of_the_answer() -> None:
    class Aside(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            with pytest.raises(StreamBroken):
                await request.run.ask_model(self, "aside?", purpose="moderation")
            return response

    heard = await hear(Agent("X", model=ScriptedModel("answer", BROKEN), middleware=[Aside()]), "go")
    assert (joined(heard), heard.of(Discard)) == ("answer", [])


async def test_what_was_delivered_is_withdrawn_where_a_layer_refuses_it() -> None:
    class Refuse(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            await call_next(request)
            raise ValueError("not that")

    heard = await hear(agent(ScriptedModel("rude"), Upper, around=[Refuse()]), "go")
    assert type(heard.error) is ValueError
    assert [event.message_id for event in heard.of(Discard)] == [heard.of(Text)[0].message_id]


SONG: Any = "song"


@pytest.mark.parametrize("made", ["text", None, [Token("a"), "b"], iter(()), Token("a"), [Token("a", SONG)]])
@pytest.mark.parametrize("method", ["step", "flush"])
async def test_what_are_no_tokens_is_refused_naming_the_layer(made: Any, method: str) -> None:
    wrong = type("Wrong", (TokenTransform,), {method: lambda self, *given: made})
    heard = await hear(agent(ScriptedModel("one two"), wrong), "go")
    assert type(heard.error) is InvalidAnswer
    assert f"the {method}() of layer 1.token_transform gives" in str(heard.error)
    assert {event.message_id for event in heard.of(Text)} == {event.message_id for event in heard.of(Discard)}


async def test_what_is_no_transform_is_refused_naming_the_layer() -> None:
    made: Any = object
    heard = await hear(agent(ScriptedModel("x"), made), "go")
    assert str(heard.error) == "layer 1.token_transform gives a TokenTransform, not object"


@pytest.mark.parametrize("method", ["step", "pause", "flush"])
async def test_what_a_transform_raises_comes_out_as_it_is_with_a_note_of_the_layer(method: str) -> None:
    def fail(self: Any, *given: Any) -> Any:
        raise LookupError("gone")

    failing = type("Failing", (TokenTransform,), {method: fail})
    answer: Any = [Reasoning("hm"), "one", call("ok")] if method == "pause" else [Reasoning("hm"), "one"]
    heard = await hear(agent(ScriptedModel(answer), failing, tools=[ok]), "go")
    assert type(heard.error) is LookupError
    assert f"raised by layer 1.token_transform, in {method}()" in heard.error.__notes__
    assert len(heard.of(Discard)) == 1


async def test_a_transform_sees_the_private_state_of_its_layer_and_no_others() -> None:
    class Counting(Middleware):
        def __init__(self, name: str, seen: list[Any]) -> None:
            self.name = name
            self.seen = seen

        def init_state(self) -> dict[str, Any]:
            return {"name": self.name, "calls": 0}

        async def around_chat(self, request: Any, call_next: Any) -> Any:
            request.state["calls"] += 1
            return await call_next(request)

        def token_transform(self, request: ChatRequest) -> TokenTransform:
            self.seen.append(dict(request.state))
            return TokenTransform()

    class Without(Middleware):
        def token_transform(self, request: ChatRequest) -> TokenTransform:
            with pytest.raises(TypeError, match="no private state"):
                request.state["name"]
            return TokenTransform()

    seen: list[Any] = []
    model = ScriptedModel(call("ok"), "two")
    layers = [Counting("1", seen), Without(), Counting("2", seen)]
    heard = await hear(Agent("X", model=model, tools=[ok], middleware=layers), "go")
    assert heard.error is None
    assert seen == [{"name": name, "calls": calls} for calls in (1, 2) for name in "12"]


async def test_each_agent_and_each_step_has_its_own() -> None:
    made: list[str] = []

    class Named(Middleware):
        def token_transform(self, request: ChatRequest) -> TokenTransform:
            made.append(f"{request.run.path} {request.run.step}")
            return Hold()

    model = ScriptedModel("hello", call("transfer_to_b", call_id="h1"), "done")
    b = Agent("b", model=model, middleware=[Named()])
    a = Agent("a", model=model, handoffs=[handoff(b)], middleware=[Named()])
    assert joined(await hear(a, "go")) == "[hello]"
    assert joined(await hear(a, "go")) == "[done]"
    assert made == ["a 1", "a 1", "b 1"]


async def test_reasoning_and_arguments_are_held_by_what_asks_for_them() -> None:
    pieces = [
        ReasoningDelta("h"),
        ReasoningDelta("m"),
        TextDelta("x"),
        ArgumentsDelta(0, "c1", "ok", "{"),
        ArgumentsDelta(0, "c1", "ok", "}"),
        ChatResponse(assistant(Reasoning("hm"), "x", call("ok", call_id="c1"))),
    ]
    heard = await hear(agent(Streaming(pieces, words("y")), lambda: Hold(("reasoning", "arguments")), tools=[ok]), "go")
    told = [event for event in heard.events if isinstance(event, Text | ReasoningText | Arguments | StepEnd)]
    assert [getattr(event, "text", "|") for event in told] == ["x", "[hm]", "[{}]", "|", "y", "|"]


async def test_a_chat_without_the_loop_is_transformed_too() -> None:
    kernel = Kernel(ScriptedModel("so it is"), middleware=[Layer(Hold)])
    async with kernel.chat_stream("go") as stream:
        told = [event.text async for event in stream if isinstance(event, Text)]
    assert told == ["[so it is]"]
