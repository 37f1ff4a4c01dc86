"""Text goes out when it was judged, whole or piece by piece, and no more of it after a piece that was not let out."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.desks import Heard, hear
from agent.middleware.test_token_redact import cut
from agent.streaming import Streaming, joined, words
from handrail.agent import Agent, BuildError, ScriptedModel, StreamBroken
from handrail.agent.events import Arguments, Discard, MessageDone, Text, Told, ToolStart
from handrail.agent.kernel import Middleware
from handrail.agent.middleware import HoldRelease
from handrail.agent.models import ArgumentsDelta, ChatResponse, TextDelta
from handrail.filters import Reasoning, assistant, call
from handrail.filters import Text as Words


class Check:
    """Lets out what does not hold a word, and notes what it was asked."""

    def __init__(self, bad: str = "bad", instead: bool | str = False) -> None:
        self.asked: list[str] = []
        self.bad = bad
        self.instead = instead

    def __call__(self, text: str) -> bool | str:
        self.asked.append(text)
        return self.instead if self.bad in text else True


async def streamed(pieces: Sequence[str], layer: HoldRelease) -> Heard:
    return await hear(Agent("X", model=Streaming(words(*pieces)), middleware=[layer]), "go")


def told(heard: Heard) -> list[str]:
    return [event.text for event in heard.of(Text)]


async def test_what_is_let_out_comes_at_the_end_in_the_tokens_it_came_in() -> None:
    check = Check()
    heard = await streamed(["All ", "is ", "well."], HoldRelease(check))
    assert told(heard) == ["All ", "is ", "well."]
    assert check.asked == ["All is well."]


async def test_what_is_not_comes_as_one_token_with_other_words() -> None:
    assert told(await streamed(["All ", "is ", "bad."], HoldRelease(Check()))) == ["[withheld]"]
    assert told(await streamed(["All ", "is ", "bad."], HoldRelease(Check(), replacement="No."))) == ["No."]
    assert told(await streamed(["All ", "is ", "bad."], HoldRelease(Check(instead="Hm.")))) == ["Hm."]


async def test_the_answer_stays_where_only_the_stream_is_held() -> None:
    heard = await streamed(["It is bad."], HoldRelease(Check()))
    assert heard.of(MessageDone)[0].message.text == "It is bad."
    assert heard.of(Discard) == []


async def test_sentence_by_sentence_until_one_is_not_let_out() -> None:
    check = Check()
    heard = await streamed(["One. T", "wo is fine! It", " is bad. ", "Four."], HoldRelease(check, by="sentence"))
    assert told(heard) == ["One.", " T", "wo is fine!", "[withheld]"]
    assert check.asked == ["One.", " Two is fine!", " It is bad."]


async def test_a_sentence_goes_out_when_the_next_one_begins() -> None:
    heard_first = asyncio.Event()
    model: Any = Streaming([TextDelta("One. T"), heard_first, *words("wo.")])
    agent = Agent("X", model=model, middleware=[HoldRelease(Check(), by="sentence")])
    async with asyncio.timeout(1), agent.stream("go") as run:
        async for event in run:
            if isinstance(event, Text):
                heard_first.set()
    assert heard_first.is_set()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Is it 3.14? Yes.", ["Is it 3.14?", " Yes."]),
        ('He said "No." Then he went.', ['He said "No."', " Then he went."]),
        ("# Title\n\n- one\n- two", ["# Title", "\n\n- one", "\n- two"]),
        ("你好。再见。", ["你好。", "再见。"]),
        ("Wait... what?! Oh", ["Wait...", " what?!", " Oh"]),
        ("no end", ["no end"]),
        ("\n\n", ["\n\n"]),
    ],
)
async def test_what_a_sentence_is(text: str, sentences: list[str]) -> None:
    check = Check()
    assert joined(await streamed([*text], HoldRelease(check, by="sentence"))) == text
    assert check.asked == sentences


async def test_window_by_window_cut_between_words() -> None:
    check = Check()
    await streamed([*"one two three fourteenletters"], HoldRelease(check, by="window", window=10))
    assert check.asked == ["one two ", "three ", "fourteenle", "tters"]


texts = st.text('ab. \n!"bad', max_size=60)


@given(texts, st.lists(st.integers(0, 60), max_size=20), st.sampled_from(["whole", "sentence", "window"]))
async def test_however_it_is_cut_the_same_is_asked_and_the_same_comes_out(
    text: str, places: list[int], by: Any
) -> None:
    outcomes = []
    for pieces in ([text] if text else [], cut(text, places), [*text]):
        check = Check()
        heard = await streamed(pieces, HoldRelease(check, by=by, window=7, answer=True))
        assert heard.of(MessageDone)[0].message.text == joined(heard)
        outcomes.append((check.asked, joined(heard)))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@pytest.mark.parametrize("by", ["whole", "sentence", "window"])
async def test_nothing_that_is_held_comes_out_after_an_error(by: Any) -> None:
    model: Any = Streaming([TextDelta("Some"), StreamBroken("cut")])
    check = Check()
    heard = await hear(Agent("X", model=model, middleware=[HoldRelease(check, by=by)]), "go")
    assert (heard.of(Text), check.asked) == ([], [])


def failing(text: str) -> bool:
    raise LookupError("the list of words is gone")


def nothing(text: str) -> Any:
    return None


def number(text: str) -> Any:
    return 1


@pytest.mark.parametrize(
    ("check", "problem"), [(failing, "LookupError"), (nothing, "it gave NoneType"), (number, "it gave int")]
)
async def test_a_check_that_fails_counts_as_no_and_is_told(check: Callable[[str], bool], problem: str) -> None:
    heard = await streamed(["fine"], HoldRelease(check))
    assert told(heard) == ["[withheld]"]
    assert [(event.name, event.data) for event in heard.of(Told)] == [
        ("check_failed", {"by": "HoldRelease", "problem": problem}),
        ("blocked", {"by": "HoldRelease", "where": "output"}),
    ]


async def test_the_answer_is_replaced_with_what_was_delivered_and_judged_once() -> None:
    for by, said in (("whole", "[withheld]"), ("sentence", "One.[withheld]")):
        check = Check()
        heard = await streamed(["One. It is bad. Three."], HoldRelease(check, by=by, answer=True))  # type: ignore[arg-type]
        assert heard.result is not None
        assert joined(heard) == heard.result.output == said
        assert len(check.asked) == len(set(check.asked))
        assert heard.of(Discard) == []


async def test_the_same_without_a_stream_and_the_reason_is_said() -> None:
    reasons: list[str] = []

    class Reason(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            reasons.append(response.finish_reason)
            return response

    check = Check()
    message = assistant(Reasoning("hm"), Words("It is bad.", sensitivity="secret"), call("ok"))
    agent = Agent("X", model=ScriptedModel(message, "fine"), middleware=[Reason(), HoldRelease(check, answer=True)])
    result = await agent.run("go")
    assert result.message is not None
    assert result.message.content == (Words("[withheld]", sensitivity="secret"),)
    assert (await agent.run("go")).output == "fine"
    assert reasons == ["content_filtered", "stop"]


async def ok() -> str:
    return "ok"


async def test_a_blocked_answer_that_is_replaced_keeps_no_calls() -> None:
    pieces = [TextDelta("bad"), ArgumentsDelta(0, "c1", "ok", "{}"), ChatResponse(assistant("bad", call("ok")))]
    heard = await hear(
        Agent("X", model=Streaming(pieces), tools=[ok], middleware=[HoldRelease(Check(), answer=True)]), "go"
    )
    assert (told(heard), heard.of(Arguments), heard.of(ToolStart)) == (["[withheld]"], [], [])


async def test_where_only_the_stream_is_held_the_calls_run_and_are_heard() -> None:
    pieces = [TextDelta("bad"), ArgumentsDelta(0, "c1", "ok", "{}"), ChatResponse(assistant("bad", call("ok")))]
    agent = Agent("X", model=Streaming(pieces, words("fine")), tools=[ok], middleware=[HoldRelease(Check())])
    heard = await hear(agent, "go")
    assert told(heard) == ["[withheld]", "fine"]
    assert len(heard.of(Arguments)) == len(heard.of(ToolStart)) == 1


async def test_text_before_a_call_is_judged_before_it_and_with_what_follows_it() -> None:
    check = Check("ab")
    pieces = [TextDelta("a"), ArgumentsDelta(0, "c1", "ok", "{}"), TextDelta("b"), ChatResponse(assistant("ab"))]
    heard = await hear(Agent("X", model=Streaming(pieces), middleware=[HoldRelease(check)]), "go")
    assert [event.text for event in heard.events if isinstance(event, Text | Arguments)] == ["a", "{}", "[withheld]"]
    assert check.asked == ["a", "ab"]


async def asynchronous(text: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"check": "no function"}, "plain function"),
        ({"check": asynchronous}, "plain function"),
        ({"check": Check(), "by": "word"}, "whole, sentence, window, not 'word'"),
        ({"check": Check(), "window": 0}, "from 1"),
        ({"check": Check(), "replacement": None}, "is a text"),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_made(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BuildError, match=words):
        HoldRelease(**options)
