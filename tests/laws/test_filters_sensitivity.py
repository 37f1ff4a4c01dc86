"""What is labelled above the tier of a boundary never crosses it, whatever else the filter does."""

import contextlib
import json
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.filters import (
    File,
    Filter,
    FilterError,
    History,
    Image,
    Message,
    Note,
    Opaque,
    Part,
    Refusal,
    Text,
    ToolCall,
    by_sensitivity,
    compose,
    digest,
    redact,
    seal,
    summary,
)
from handrail.filters.sensitivity import rank
from laws.strategies import labels, named, simple

MARKS = {"public": "zpz", "internal": "ziz", "secret": "zsz"}
"""What a text says about how sensitive it is, so that it can be looked for in what crossed."""


KINDS: tuple[Literal["reason", "input"], ...] = ("reason", "input")


def higher(*given: str | None) -> str:
    known = [label for label in given if label is not None]
    return max(known, key=rank) if known else "internal"


@st.composite
def marked_parts(draw: Callable[..., Any], message_label: str | None) -> Part:
    label = draw(labels)
    mark = MARKS.get(higher(label, message_label), MARKS["secret"])
    nested = json.dumps({"a": [{"b": mark, mark: 1}, json.dumps({"deep": mark})]})
    call_id = draw(st.sampled_from(["c1", "c2"]))
    made: list[Part] = [
        Text(f"word {mark}", label, json.dumps({"detail": mark})),
        Refusal(mark, label),
        Image(url=f"loopback:{mark}", name=mark, sensitivity=label, extra=nested),
        File(name=f"{mark}.txt", data="enp6", media_type="text/plain", sensitivity=label),
        ToolCall(call_id, "track", nested, False, label, nested),
        Opaque("openai", "web_search_call", nested, draw(st.sampled_from(["tool", "other", "reasoning"])), label),
    ]
    return draw(st.sampled_from(made))


@st.composite
def marked_messages(draw: Callable[..., Any]) -> Message:
    label = draw(labels)
    role = draw(st.sampled_from(["system", "user", "assistant", "assistant", "tool", "tool"]))
    content = tuple(draw(st.lists(marked_parts(label), max_size=3)))
    if role == "tool":
        content = tuple([part for part in content if not isinstance(part, ToolCall)])
    call_id = draw(st.sampled_from(["c1", "c2"])) if role == "tool" else None
    pinned = draw(st.booleans())
    return Message(
        role, content, agent=draw(st.sampled_from(["A", "B"])), sensitivity=label, pinned=pinned, call_id=call_id
    )


marked = st.lists(marked_messages(), max_size=10).map(named)
marked_notes = st.lists(labels, max_size=2).map(
    lambda given: [
        Note(kind, MARKS.get(higher(label), MARKS["secret"]), label) for kind, label in zip(KINDS, given, strict=False)
    ]
)
steps = st.lists(simple, max_size=3)
gates = st.builds(by_sensitivity, st.sampled_from(["public", "internal"]), st.sampled_from(["remove", "placeholder"]))


@settings(max_examples=300)
@given(steps, gates, steps, marked, marked_notes)
def test_no_text_labelled_above_the_tier_crosses(
    before: list[Filter], gate: Any, after: list[Filter], history: History, notes: list[Note]
) -> None:
    filter = seal(compose(*before, gate, *after))
    with contextlib.suppress(FilterError):
        crossed = msgspec.json.encode(list(filter.hand_over(history, notes))).decode()
        above = [mark for tier, mark in MARKS.items() if rank(tier) > rank(gate.max_tier)]
        assert [mark for mark in above if mark in crossed] == []


@given(gates, marked, marked_notes)
def test_what_crossed_a_gate_crosses_it_again_unchanged(gate: Any, history: History, notes: list[Note]) -> None:
    with contextlib.suppress(FilterError):
        crossed = seal(gate).hand_over(history, notes)
        again = seal(gate)(crossed)
        assert digest(again) == digest(crossed)


@given(marked, marked_notes, st.sampled_from(["zsz", "z[ps]z", "(?i)ZIZ"]))
def test_no_text_that_a_pattern_finds_crosses_and_json_still_parses(
    history: History, notes: list[Note], pattern: str
) -> None:
    import re

    with contextlib.suppress(FilterError):
        crossed = seal(redact(pattern)).hand_over(history, notes)
        text = msgspec.json.encode(list(crossed)).decode()
        assert re.search(pattern, text.replace("enp6", "")) is None
        for message in crossed:
            for call in message.tool_calls:
                assert set(call.parse()) == {"a"}


@given(marked)
def test_a_summary_lets_nothing_through_that_it_does_not_say(history: History) -> None:
    with contextlib.suppress(FilterError):
        crossed = seal(compose(by_sensitivity("public"), summary("They talked.", role="user")))(history)
        assert "zsz" not in msgspec.json.encode(list(crossed)).decode()
