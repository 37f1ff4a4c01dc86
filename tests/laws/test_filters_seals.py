"""What every boundary guarantees, whatever the filter and whatever the history."""

import contextlib
import re

from hypothesis import assume, given

from handrail.filters import (
    Filter,
    FilterError,
    History,
    Message,
    Note,
    NothingToHandOver,
    Opaque,
    Reasoning,
    Refusal,
    Repaired,
    Text,
    View,
    breaches,
    digest,
    edge_history,
    full,
    repair,
    seal,
)
from handrail.filters.messages import Messages
from laws.strategies import any_filters, filters, histories, lawful, notes

TAG = re.compile(r"<\s*/?\s*(\w+:)?think(ing)?\s*>", re.IGNORECASE)


def thoughts(messages: Messages) -> list[object]:
    """What a model thought, in what is left: parts, data of a provider, and tags, which may stand across parts."""
    spoken = [
        "".join([part.text for part in message.content if isinstance(part, Text | Refusal)]) for message in messages
    ]
    tags: list[object] = [
        text for message, text in zip(messages, spoken, strict=True) if message.role == "assistant" and TAG.search(text)
    ]
    return tags + [
        part
        for message in messages
        for part in message.content
        if isinstance(part, Reasoning)
        or (isinstance(part, Opaque) and part.family == "reasoning")
        or "signature" in (getattr(part, "extra", None) or "")
    ]


def sealed(filter: Filter, history: History, given_notes: list[Note]) -> Messages | None:
    try:
        return seal(filter).hand_over(history, given_notes)
    except FilterError:
        return None


@given(any_filters, histories, notes)
def test_a_seal_raises_or_gives_what_every_provider_accepts(
    filter: Filter, history: History, given_notes: list[Note]
) -> None:
    seed = sealed(filter, history, given_notes)
    if seed is not None:
        assert breaches(seed) == []
        assert thoughts(seed) == []
        assert any(message.role == "user" for message in seed)
        assert seal(full())(seed) == seed
        assert all(message.id for message in seed)


@given(filters, lawful, notes)
def test_our_own_filters_fail_only_for_want_of_something_to_answer(
    filter: Filter, history: History, given_notes: list[Note]
) -> None:
    with contextlib.suppress(NothingToHandOver):
        assert seal(filter).hand_over(history, given_notes)


@given(any_filters, histories)
def test_what_crosses_back_obeys_the_laws_and_holds_no_thoughts(filter: Filter, history: History) -> None:
    back: Messages = ()
    with contextlib.suppress(FilterError):
        back = seal(filter).back(history)
    assert breaches(back) == []
    assert thoughts(back) == []


@given(histories)
def test_a_repaired_history_is_lawful_and_repaired_again_the_same(history: History) -> None:
    for repaired in (repair(history).messages, repair(history, open_calls="answer").messages):
        assert breaches(repaired) == []
        assert repair(repaired) == Repaired(repaired)


@given(histories)
def test_a_repair_has_nothing_to_report_where_there_is_no_breach(history: History) -> None:
    repaired = repair(history)
    assert (repaired.messages is history) == (breaches(history) == [])
    assert bool(repaired.changes) == bool(breaches(history))


@given(filters, histories, notes)
def test_what_crossed_is_rebuilt_from_ranges_of_the_view(
    filter: Filter, view: History, given_notes: list[Note]
) -> None:
    edge = edge_history(view, kind="handoff")
    seed = sealed(filter, History(edge.messages), given_notes)
    assume(seed is not None)
    assert seed is not None
    assert edge.seed(edge.crossed(seed)) == tuple(seed)


@given(filters, lawful)
def test_what_crossed_to_a_sub_agent_is_rebuilt_from_ranges_of_the_view(filter: Filter, view: History) -> None:
    asked = [call.id for message in view for call in message.tool_calls][-1:]
    edge = edge_history(view, *asked, kind="subagent")
    seed = seal(filter).back(edge.messages)
    assert edge.seed(edge.crossed(seed)) == tuple(seed)


@given(histories)
def test_the_edge_of_a_growing_view_is_that_of_the_whole_view(view: History) -> None:
    grown = History()
    for message in view:
        grown = grown.append(message)
        edge = edge_history(grown, kind="handoff")
        fresh = edge_history(History(tuple(grown)), kind="handoff")
        assert tuple(edge.messages) == tuple(fresh.messages)
        assert History(edge.messages).digest == digest(fresh.messages)
    for length in range(len(view)):
        assert edge_history(grown.prefix(length), kind="handoff").messages == tuple(
            edge_history(History(tuple(view[:length])), kind="handoff").messages
        )


@given(filters, lawful, lawful)
def test_a_seed_enters_a_view_once_and_lawfully(filter: Filter, view: History, held: History) -> None:
    seed = seal(filter).back(view)
    target = View(History([message.replace(id=f"t{message.id}") for message in repair(held).messages]))
    entered = target.enter(seed)
    assert breaches(entered.history) == []
    assert tuple(entered.history[: len(target.history)]) == tuple(target.history)
    assert entered.enter(seed) == entered


@given(histories)
def test_a_seal_gives_the_same_ids_for_the_same_history(history: History) -> None:
    given_notes = [Note("input", "Please look at this.")]

    def made() -> list[Message]:
        return [message for message in seal(full()).hand_over(history, given_notes) if message.id.startswith("f")]

    assert [message.id for message in made()] == [message.id for message in made()]
    assert made()[-1].text == "Please look at this."
