"""What the laws are tried on: messages, histories both lawful and hostile, and filters of every registered kind."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from handrail.filters import (
    Filter,
    History,
    Message,
    Note,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    assistant,
    attribute_agents,
    by_agent,
    by_sensitivity,
    compose,
    custom,
    custom_filter,
    default_handoff_filter,
    drop,
    drop_tools,
    first_n,
    full,
    head_tail,
    keep,
    last_answer,
    last_n,
    last_turns,
    last_user,
    none,
    note_foreign_tools,
    only_tools,
    redact,
    repair,
    since_handoff,
    strip_media,
    strip_reasoning,
    strip_sensitive_outputs,
    strip_tool_calls,
    summary,
    system,
    token_budget,
    tool_result,
    user,
    when,
)
from handrail.filters.messages import Audio, File, Image, Messages

# Lone surrogates too: a message takes them in and holds none.
any_text = st.text(st.characters(codec=None), max_size=20)
words = st.sampled_from(
    [
        *("", "Hello", "北 🍸", "[REDACTED:internal:email]", "\ud83d", "<thi", "nk>"),
        *("<think>hm</think>yes", "<think>open", "shut</think>", "<Think>hm</THINK>yes", "shut</ThinkinG >"),
    ]
)
texts = words | any_text
ids = st.sampled_from(["", "c1", "c2", "c3"])
labels = st.none() | st.sampled_from(["public", "internal", "secret", "SECRET"])
extras = st.none() | st.sampled_from(['{"thought_signature":"c2ln"}', '{"detail":"low"}', "{broken", "[1]"])
arguments = st.sampled_from(
    ["", "{}", '{"b":1, "a":[2.0]}', '{"a":1,"a":2}', "{broken", '{"n":NaN}', '{"q":"\\udc97"}']
)

parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, texts, labels, extras),
    st.builds(Reasoning, texts, st.none() | st.just("anthropic"), extras, labels),
    st.builds(Refusal, texts, labels),
    st.builds(Image, url=st.none() | texts, data=st.just("iVBORw0="), sensitivity=labels, extra=extras),
    st.builds(Audio, url=texts),
    st.builds(File, name=texts, sensitivity=labels),
    st.builds(ToolCall, ids, st.just("track") | any_text, arguments, st.booleans(), labels, extras),
    st.builds(
        Opaque,
        st.just("openai"),
        texts,
        st.just('{"a":1}') | texts,
        st.sampled_from(["tool", "reasoning", "other"]),
        labels,
    ),
)
messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.lists(parts, max_size=3).map(tuple),
    agent=st.none() | st.sampled_from(["A", "B"]),
    created_at=st.none() | st.integers(0, 2**45),
    sensitivity=labels,
    pinned=st.booleans(),
    call_id=st.none() | ids,
    name=st.none() | any_text,
    is_error=st.booleans(),
)
"""Any message at all, in any role, without an id."""


def named(said: list[Message]) -> History:
    """The messages with an id each, as a run gives them."""
    return History([message.replace(id=f"m{place}") for place, message in enumerate(said)])


hostile = st.lists(messages, max_size=12).map(named)
"""Histories that break the laws: results without calls, calls twice, calls in any role, empty messages."""


@st.composite
def exchanges(draw: Callable[..., Any]) -> list[Message]:
    """One assistant message with calls, and their results in some order."""
    calls = [
        ToolCall(call_id, "track", draw(arguments), draw(st.booleans()))
        for call_id in draw(st.lists(st.sampled_from(["c1", "c2", "c3"]), min_size=1, max_size=3, unique=True))
    ]
    said = assistant(draw(texts), *calls, pinned=draw(st.booleans()))
    results = [
        tool_result(call, draw(texts), sensitivity=draw(labels), pinned=draw(st.booleans()))
        for call in draw(st.permutations(calls))
    ]
    return [said, *results]


spoken = texts.filter(bool)
lawful = st.lists(
    st.one_of(
        st.builds(user, spoken, pinned=st.booleans()).map(lambda message: [message]),
        st.builds(assistant, spoken, pinned=st.booleans()).map(lambda message: [message]),
        st.builds(system, texts).map(lambda message: [message]),
        exchanges(),
    ),
    max_size=8,
).map(lambda stretches: named([message for stretch in stretches for message in stretch]))
"""Histories as a run leaves them."""

histories = lawful | hostile


@custom_filter("tests/newest", version=3)
def newest(history: Messages, count: int = 1) -> Messages:
    """A custom filter that is registered."""
    return history[-count:]


@custom_filter("tests/invents")
def invents(history: Messages) -> Messages:
    """A custom filter that makes a message and forgets its id."""
    return (*history, user("By the way."))


one_of_each: list[Filter] = [
    full(),
    none(),
    last_n(),
    last_user(),
    last_answer(),
    strip_tool_calls(),
    strip_reasoning(),
    strip_sensitive_outputs(),
    summary("They greeted each other."),
    repair(),
    attribute_agents("B"),
    note_foreign_tools(["track"]),
    since_handoff("m2"),
    custom("tests/newest", version=3),
    first_n(),
    head_tail(),
    last_turns(),
    by_agent("A"),
    only_tools("track"),
    drop_tools("track"),
    keep("mentions", text="e"),
    drop("has_tool_calls"),
    when("has_tool_calls", last_n(2), strip_tool_calls()),
    strip_media(),
    by_sensitivity(),
    redact(["secrets", "l+o"]),
    token_budget(20, counter="estimate@1"),
]

simple: st.SearchStrategy[Filter] = st.one_of(
    st.sampled_from([*one_of_each, custom(invents), default_handoff_filter()]),
    st.builds(last_n, st.integers(1, 6), keep_user=st.booleans()),
    st.builds(strip_sensitive_outputs, on_drop=st.sampled_from(["remove", "placeholder"])),
    st.builds(summary, texts.filter(str.strip), role=st.sampled_from(["system", "user"]), keep_last=st.integers(0, 4)),
    st.builds(first_n, st.integers(1, 6)),
    st.builds(head_tail, st.integers(1, 4), st.integers(0, 4)),
    st.builds(last_turns, st.integers(1, 3)),
    st.builds(by_agent, st.sampled_from(["A", "B"]), texts.filter(bool)),
    st.builds(only_tools, st.just("track") | texts.filter(bool)),
    st.builds(drop_tools, st.just("track") | texts.filter(bool)),
    st.builds(lambda text: keep("mentions", text=text), texts),
    st.builds(lambda text: drop("mentions", text=text), st.just("北") | texts),
    st.builds(when, st.sampled_from(["has_tool_calls", "is_error"]), st.sampled_from(one_of_each[:6]), st.just(full())),
    st.builds(strip_media, st.integers(0, 4)),
    st.builds(
        by_sensitivity,
        st.sampled_from(["public", "internal", "secret"]),
        st.sampled_from(["remove", "placeholder"]),
        st.lists(st.sampled_from(["secrets", "personal", "email"]), max_size=2),
    ),
    st.builds(redact, st.just(["personal", "[aeiou]+"]), st.sampled_from(["", "vowel"])),
    st.builds(token_budget, st.integers(1, 60), st.sampled_from(["tail", "head"]), st.just("estimate@1")),
    st.builds(attribute_agents, texts.filter(bool)),
    st.builds(note_foreign_tools, st.lists(st.just("track") | texts, max_size=2)),
    st.builds(since_handoff, st.sampled_from(["m0", "m1", "m3", "m9"])),
    st.builds(repair, open_calls=st.sampled_from(["drop", "answer"])),
    st.builds(lambda count: custom("tests/newest", version=3, params={"count": count}), st.integers(1, 4)),
)
filters: st.SearchStrategy[Filter] = simple | st.lists(simple, max_size=3).map(lambda steps: compose(*steps))
"""Filters of every registered kind, but for the seal around them."""

notes = st.lists(
    st.builds(Note, st.sampled_from(["reason", "input"]), texts, labels), max_size=2, unique_by=lambda note: note.label
)


def raises(history: Messages) -> Messages:
    """A function that fails."""
    raise LookupError("no such key")


def repeats(history: Messages) -> Messages:
    """A function that gives everything twice."""
    return (*history, *history)


def turns_round(history: Messages) -> Messages:
    """A function that puts the last first."""
    return tuple(reversed(history))


def answers_all(history: Messages) -> Messages:
    """A function that invents an answer to every call."""
    return (*history, *[tool_result(call, "Yes.", id=f"y{call.id}") for said in history for call in said.tool_calls])


nonsense = st.sampled_from([None, 7, "text", ["text"], [None], {}, object()])
made_up = st.lists(messages | st.builds(Message.replace, messages, id=st.sampled_from(["m0", "m1", "x1"])), max_size=4)
hostile_functions: st.SearchStrategy[Callable[[Messages], Any]] = st.one_of(
    st.sampled_from([raises, repeats, turns_round, answers_all]),
    nonsense.map(lambda value: lambda history: value),
    made_up.map(lambda made: lambda history: made),
    made_up.map(lambda made: lambda history: [*made[:2], *history, *made[2:]]),
)
"""Functions that fail, give what is no messages, or give any messages at all."""

hostile_filters = st.builds(lambda fn, alone: custom(fn, per_message=alone), hostile_functions, st.booleans())
# Joined with `|`, each kind of filter would count as much as all that are hostile.
any_step = st.booleans().flatmap(lambda ours: simple if ours else hostile_filters)
any_filters: st.SearchStrategy[Filter] = st.lists(any_step, min_size=1, max_size=3).map(lambda steps: compose(*steps))
"""Filters of every kind, and those that do their worst."""
