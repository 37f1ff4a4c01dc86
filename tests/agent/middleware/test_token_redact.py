"""Secrets are redacted however the stream cuts them, and the answer as it was delivered where that is asked for."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.desks import Heard, hear
from agent.streaming import Streaming, joined
from handrail.agent import Agent, BuildError, ScriptedModel
from handrail.agent.events import Arguments, Discard, MessageDone, ReasoningText, Text, ToolStart
from handrail.agent.middleware import SchemaValidation, TokenRedact
from handrail.agent.models import ArgumentsDelta, ChatResponse, ReasoningDelta, TextDelta
from handrail.filters import Opaque, Reasoning, Refusal, ToolCall, assistant, redact
from handrail.filters import Text as Words
from handrail.filters.errors import FilterFailed
from handrail.filters.messages import Part

TEXT = "Write to client.b@example.org or charge 4111 1111 1111 1111 today."
CHUNKS = ["Write to client.", "b@exam", "ple.o", "rg or charge 4111 11", "11 1111 ", "1111 today."]
REDACTED = "Write to [REDACTED:internal:email] or charge [REDACTED:secret:card] today."
KEY = "sk-" + "test-abcdef1234567890"


def cut(text: str, places: Sequence[int]) -> list[str]:
    ends = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(ends) if end > start]


async def streamed(pieces: Sequence[str], layer: TokenRedact, kind: Any = TextDelta) -> Heard:
    """A run whose answer comes in these pieces."""
    text = "".join(pieces)
    message = assistant(text) if kind is TextDelta else assistant(Reasoning(text), "so")
    model: Any = Streaming([*map(kind, pieces), ChatResponse(message)])
    return await hear(Agent("X", model=model, middleware=[layer]), "go")


async def calling(pieces: Sequence[str], layer: TokenRedact) -> Heard:
    """A run whose model calls a tool with arguments that come in these pieces."""
    arguments = "".join(pieces)
    deltas = [ArgumentsDelta(0, "c1", "note", piece) for piece in pieces]
    model: Any = Streaming(
        [*deltas, ChatResponse(assistant(ToolCall("c1", "note", arguments)))], [ChatResponse(assistant("done"))]
    )

    async def note(cmd: str = "", note: str = "", t: float = 0) -> str:
        return cmd

    return await hear(Agent("X", model=model, tools=[note], middleware=[layer]), "go")


async def test_personal_data_over_several_chunks_does_not_come_out() -> None:
    heard = await streamed(CHUNKS, TokenRedact(["email", "card"]))
    assert joined(heard) == REDACTED
    assert not any([part in event.text for event in heard.of(Text) for part in ("client", "example.org", "4111")])
    assert heard.of(MessageDone)[0].message.text == TEXT


@pytest.mark.parametrize("place", range(len(TEXT) + 1))
async def test_wherever_it_is_cut_in_two(place: int) -> None:
    heard = await streamed(cut(TEXT, [place]), TokenRedact(["email", "card"]))
    assert joined(heard) == REDACTED
    assert not any([part in event.text for event in heard.of(Text) for part in ("client", "example.org", "4111")])


async def test_one_character_a_chunk() -> None:
    heard = await streamed([*TEXT], TokenRedact(["email", "card"]))
    assert joined(heard) == REDACTED
    assert [event.text for event in heard.of(Text)][:3] == ["Write ", "to ", "[REDACTED:internal:email] "]


bits = st.sampled_from(["ann@", "example.org", " ", "4111 1111 ", "1111 1111", "password=", "hunter22", "\n", "x", KEY])


@given(st.lists(bits, max_size=8).map("".join), st.lists(st.integers(0, 80), max_size=20), st.sampled_from([1, 512]))
async def test_however_it_is_cut_what_is_delivered_is_what_the_filter_makes_of_the_whole_and_what_is_kept(
    text: str, places: list[int], window: int
) -> None:
    sought = ["personal", "secrets", r"x{2,}"]
    heard = await streamed(cut(text, places), TokenRedact(sought, answer=True, window=window))
    (kept,) = redact(sought)([assistant(text)])
    assert joined(heard) == heard.of(MessageDone)[0].message.text
    if not text.startswith((" ", "\n")) and window > 1:
        assert joined(heard) == kept.text


async def test_the_answer_is_redacted_the_same_with_and_without_a_stream() -> None:
    agent = Agent("X", model=ScriptedModel(TEXT, TEXT), middleware=[TokenRedact(["email", "card"], answer=True)])
    heard = await hear(agent, "go")
    result = await agent.run("go")
    assert heard.result is not None
    assert joined(heard) == heard.result.output == result.output == result.messages[-1].text == REDACTED
    assert heard.of(Discard) == []


async def test_an_answer_without_secrets_stays_the_same_message() -> None:
    message = assistant(Reasoning("hm"), "Nothing.", Words("Really.", extra='{"a":1}'))
    result = await Agent("X", model=ScriptedModel(message), middleware=[TokenRedact("secrets", answer=True)]).run("go")
    assert result.message is not None
    assert result.message.content == message.content


async def test_a_secret_over_two_parts_of_an_answer_is_found() -> None:
    message = assistant("My key is sk-test-abcdef", Reasoning("hm"), Words("1234567890, yes", extra=f'{{"k":"{KEY}"}}'))
    result = await Agent("X", model=ScriptedModel(message), middleware=[TokenRedact("secrets", answer=True)]).run("go")
    assert result.output == "My key is [REDACTED:secret:openai_key], yes"
    assert result.message is not None
    assert KEY not in str(result.message.content)


async def test_thoughts_are_redacted_where_that_is_asked_for() -> None:
    both = TokenRedact("email", applies_to=("text", "reasoning"), answer=True)
    for layer, said in ((both, "[REDACTED:internal:email]"), (TokenRedact("email", answer=True), "ann@example.org")):
        heard = await streamed([*"ann@example.org"], layer, ReasoningDelta)
        assert "".join([event.text for event in heard.of(ReasoningText)]) == said
        assert heard.of(MessageDone)[0].message.content[0].text == said


async def test_the_other_parts_of_an_answer_are_redacted_with_their_kind() -> None:
    parts: list[Part] = [
        Refusal("Not ann@example.org"),
        Opaque("p", "search", '{"q":"ann@example.org"}', family="tool"),
        Opaque("p", "thought", '{"q":"ann@example.org"}'),
    ]
    kinds: Any
    for kinds, left in (("text", 2), ("arguments", 2), ("reasoning", 2), (("text", "arguments", "reasoning"), 0)):
        layer = TokenRedact("email", applies_to=kinds, answer=True)
        result = await Agent("X", model=ScriptedModel([*parts, "x"]), middleware=[layer]).run("go")
        assert result.message is not None
        assert str(result.message.content).count("ann@") == left


ARGUMENTS = json.dumps({"cmd": f"API_KEY={KEY}", "note": f'line1\nTOKEN="{KEY[:-5]}zzzzz"', "t": 1.5})


def test_the_example_of_arguments_has_what_would_be_eaten() -> None:
    assert redact("secrets")([assistant(ARGUMENTS)])[0].text != ARGUMENTS


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_arguments_stay_json_with_the_same_keys_and_types(size: int) -> None:
    raw = ARGUMENTS.replace("1.5", "1.50")
    pieces = [raw[start : start + size] for start in range(0, len(raw), size)]
    heard = await calling(pieces, TokenRedact("secrets", applies_to="arguments"))
    (told,) = heard.of(Arguments)
    read = json.loads(told.text)
    assert KEY[3:12] not in told.text
    assert (list(read), read["t"], read["cmd"][:8]) == (["cmd", "note", "t"], 1.5, "API_KEY=")
    assert read["note"].startswith('line1\nTOKEN="[REDACTED')
    assert (told.call_id, told.name) == ("c1", "note")
    assert '"t": 1.50' in told.text


async def test_arguments_are_as_they_were_where_only_text_is_asked_for() -> None:
    heard = await calling([ARGUMENTS], TokenRedact("secrets", answer=True))
    assert heard.of(Arguments)[0].text == ARGUMENTS
    assert heard.of(ToolStart)[0].call.arguments == ARGUMENTS


async def test_redacted_arguments_are_what_the_tool_gets_where_the_answer_is_redacted_too() -> None:
    heard = await calling([*ARGUMENTS], TokenRedact("secrets", applies_to="arguments", answer=True))
    assert heard.of(ToolStart)[0].call.arguments == heard.of(Arguments)[0].text
    assert KEY not in str(heard.of(MessageDone))


async def test_calls_that_come_side_by_side_are_each_held_until_they_are_whole() -> None:
    pieces = [
        ArgumentsDelta(0, "c1", "f", f'{{"a":"{KEY[:8]}'),
        ArgumentsDelta(1, "c2", "f", '{"b":'),
        ArgumentsDelta(0, "c1", "f", f'{KEY[8:]}"}}'),
        ArgumentsDelta(1, "c2", "f", "1}"),
        ArgumentsDelta(2, "c3", "f", '{"broken'),
        ChatResponse(assistant("x")),
    ]
    model: Any = Streaming(pieces)
    layer = TokenRedact("secrets", applies_to=("text", "arguments"))
    told = (await hear(Agent("X", model=model, middleware=[layer]), "go")).of(Arguments)
    assert [(event.call_id, event.text) for event in told] == [
        ("c1", '{"a":"[REDACTED:secret:openai_key]"}'),
        ("c2", '{"b":1}'),
        ("c3", '{"broken'),
    ]


async def test_text_before_a_call_comes_before_its_arguments() -> None:
    pieces = [TextDelta("To ann@example.org"), ArgumentsDelta(0, "c1", "f", "{}"), ChatResponse(assistant("x"))]
    model: Any = Streaming(pieces)
    heard = await hear(Agent("X", model=model, middleware=[TokenRedact("email")]), "go")
    told = [event.text for event in heard.events if isinstance(event, Text | Arguments)]
    assert told == ["To ", "[REDACTED:internal:email]", "{}"]


async def test_what_is_written_in_its_place() -> None:
    for layer, said in (
        (TokenRedact(r"\d{4}"), "PIN [REDACTED:secret]."),
        (TokenRedact(r"\d{4}", kind="pin", tier="internal"), "PIN [REDACTED:internal:pin]."),
        (TokenRedact(r"\d{4}", replacement="****"), "PIN ****."),
        (TokenRedact(r"\d{4}", replacement=""), "PIN ."),
    ):
        assert joined(await streamed([*"PIN 9041."], layer)) == said


async def test_several_layers_look_at_what_the_one_nearer_to_the_model_left() -> None:
    layers = [TokenRedact(r"\d+", replacement="ann@example.org", name="number"), TokenRedact("email")]
    model = ScriptedModel("To 7.")
    assert joined(await hear(Agent("X", model=model, middleware=layers), "go")) == "To [REDACTED:internal:email]."


async def test_a_pattern_that_takes_too_long_ends_the_run_and_lets_nothing_out() -> None:
    heard = await streamed(["ok ", *("a" * 60)], TokenRedact(r"(a|aa)+[bc]"))
    assert type(heard.error) is FilterFailed
    assert "aaa" not in joined(heard)
    assert len(heard.of(Discard)) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"patterns": "("}, "is no regular expression"),
        ({"patterns": ""}, "patterns"),
        ({"patterns": ()}, "told what to look for"),
        ({"patterns": "a*"}, "finds the empty text"),
        ({"patterns": 7}, "TokenRedact"),
        ({"patterns": "email", "applies_to": "txt"}, "text, reasoning, arguments, not 'txt'"),
        ({"patterns": "email", "applies_to": ()}, "not nothing"),
        ({"patterns": "email", "window": 0}, "from 1 to 1,000,000"),
        ({"patterns": "email", "window": True}, "from 1 to 1,000,000"),
        ({"patterns": "email", "replacement": 7}, "replacement is a text"),
        ({"patterns": "email", "kind": "my kind"}, "kind is a word"),
        ({"patterns": "email", "applies_to": 7}, "not 7"),
        ({"patterns": "email", "answer": "yes"}, "answer is True or False"),
        ({"patterns": b"email"}, "a text or a list of texts"),
        ({"patterns": "email", "tier": "top"}, "tier is one of"),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_made(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BuildError, match=words):
        TokenRedact(**options)


ESCAPED = '{"mail": "ann\\u0040example.org", "ann@example.org": [{"n": 1.50}]}'
SAID = '{"mail": "[REDACTED:internal:email]", "[REDACTED:internal:email]": [{"n": 1.50}]}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ESCAPED, SAID),
        (f" \n\ufeff{ESCAPED}\n", f" \n\ufeff{SAID}\n"),
        (
            f"So:\n```json\n{ESCAPED}\n```\nann@example.org",
            f"So:\n```json\n{SAID}\n```\n[REDACTED:internal:email]",
        ),
        (f"```py\n[x]\n``` ``` {ESCAPED} ```", f"```py\n[x]\n``` ``` {SAID} ```"),
        ('"ann\\u0040example.org"', '"[REDACTED:internal:email]"'),
        (f'"" ```{ESCAPED}```', f'"" ```{SAID}```'),
        (f'"see ```JSON\n{ESCAPED}\n```', f'"see ```JSON\n{SAID}\n```'),
        ('["ann@example.org" and more]', '["[REDACTED:internal:email]" and more]'),
        ('{"a": "ann@example.org', '{"a": "[REDACTED:internal:email]'),
        ('"password": "hunter22", yes', '"password": "[REDACTED:secret:password]", yes'),
        ("[REDACTED:secret] or [1] ann@example.org", "[REDACTED:secret] or [1] [REDACTED:internal:email]"),
    ],
)
@pytest.mark.parametrize("size", [1, 4, 1000])
async def test_json_is_redacted_as_what_it_says_and_delivered_the_same(text: str, said: str, size: int) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    heard = await streamed(pieces, TokenRedact(["email", "secrets"], answer=True))
    assert joined(heard) == heard.of(MessageDone)[0].message.text == said


@given(st.text('`json \n{}["]\\\\u0:a,x@', max_size=60), st.lists(st.integers(0, 60), max_size=12))
async def test_however_json_is_cut_what_is_delivered_is_what_is_kept(text: str, places: list[int]) -> None:
    heard = await streamed(cut(text, places), TokenRedact(["a+x", "@"], answer=True))
    assert joined(heard) == heard.of(MessageDone)[0].message.text


async def test_a_value_that_is_read_from_the_answer_holds_no_more_than_what_was_delivered() -> None:
    layers = [SchemaValidation({"type": "object"}), TokenRedact(["email"], answer=True)]
    agent = Agent("X", model=ScriptedModel(f"So:\n```\n{ESCAPED}\n```"), middleware=layers)
    assert (await agent.run("go")).output == json.loads(SAID)


async def test_keys_of_arguments_stay_whatever_they_say() -> None:
    arguments = '{"cmd": "x", "note": "{\\"ann@example.org\\":1}", "t": 1}'
    layer = TokenRedact(["cmd|note|t", "email"], applies_to="arguments", answer=True)
    heard = await calling([*arguments], layer)
    assert list(json.loads(heard.of(Arguments)[0].text)) == ["cmd", "note", "t"]
    assert "ann@" not in heard.of(Arguments)[0].text
    assert heard.of(ToolStart)[0].call.arguments == heard.of(Arguments)[0].text


@pytest.mark.parametrize(("written", "meant"), [("credit_card", "card"), ("emial", "email"), ("secret", "secrets")])
def test_what_is_nearly_a_detector_is_refused_naming_it_and_the_word_itself_can_be_written(
    written: str, meant: str
) -> None:
    with pytest.raises(BuildError, match=f"did you mean {meant}"):
        TokenRedact([written])
    TokenRedact([f"(?:{written})"])
    TokenRedact(["hunter"])
