"""Histories that grow."""

import gc
import tracemalloc

import pytest

from handrail.filters import History, Message, ToolCall, assistant, call, tool_result, user


class Counting(list[Message]):
    """A list that counts how often its messages are asked for."""

    looks = 0

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        self.looks += len(range(*index.indices(len(self)))) if isinstance(index, slice) else 1
        return super().__getitem__(index)


def chat(length: int) -> list[Message]:
    return [user(f"{place}", id=f"m{place}") for place in range(length)]


def test_appending_leaves_the_history_as_it_was() -> None:
    first = History(chat(2))
    second = first.append(user("c", id="m2"))
    third = first.append(user("d", id="m3"))
    assert [len(first), second[-1].text, third[-1].text] == [2, "c", "d"]


def test_a_history_and_messages_added_are_a_history() -> None:
    assert isinstance(History(chat(1)) + chat(2), History)
    before = (user("first"),)
    assert isinstance(before + History(chat(1)), History)
    assert isinstance(History(chat(3))[1:], History)


def test_a_place_outside_is_an_index_error() -> None:
    with pytest.raises(IndexError, match="a history of 2 messages has no message 2"):
        History(chat(2))[2]
    with pytest.raises(IndexError):
        History()[-1]


def test_what_was_looked_at_is_not_looked_at_again() -> None:
    items = Counting(chat(1_000))
    history = History.over(items)
    assert (len(history.survey().users), len(history.digest)) == (1_000, 64)
    items.looks = 0
    for place in range(100):
        history = history.append(user("more", id=f"n{place}"))
        assert history.survey().lawful
        assert history.digest
        assert history.without_transfers()[0] is history
    assert items.looks <= 300


def test_a_boundary_looks_only_at_what_is_new() -> None:
    asked = ToolCall("h1", "transfer_to_billing", transfer=True)
    items = Counting([*chat(1_000), assistant(asked, id="a"), tool_result(asked, "ok", id="b")])
    history = History.over(items)
    assert len(history.without_transfers()[0]) == 1_000
    items.looks = 0
    grown = history.append(user("more", id="c"))
    assert len(grown.without_transfers()[0]) == 1_001
    assert items.looks <= 3


def test_an_id_is_looked_for_from_the_end() -> None:
    items = Counting(chat(10_000))
    history = History.over(items)
    assert history.position("m9990") == 9_990
    assert items.looks < 100
    assert history.position("m0") == 0
    assert items.looks < 20_000


def test_an_id_beyond_the_end_of_a_prefix_is_not_found() -> None:
    prefix = History(chat(10)).prefix(4)
    assert (prefix.position("m3"), prefix.position("m4")) == (3, None)


def test_a_survey_knows_calls_that_wait() -> None:
    first, second = call("a", call_id="c1"), call("b", call_id="c2")
    history = History((user("go"), assistant(first, second), tool_result(first, "1")))
    assert list(history.survey().open_calls) == ["c2"]
    assert history.survey().lawful
    assert list(history.prefix(2).survey().open_calls) == ["c1", "c2"]
    assert not history.append(user("well?")).survey().lawful


def test_one_message_may_hold_very_many_calls() -> None:
    calls = [call("a", call_id=f"c{number}") for number in range(50_000)]
    results = [tool_result(asked, "ok", id=asked.id) for asked in calls]
    history = History((user("go"), assistant(*calls), *results))
    assert history.survey().lawful
    assert not history.survey().open_calls


def test_messages_without_an_id_are_noticed() -> None:
    assert History([user("a")]).survey().unnamed
    assert not History(chat(2)).survey().unnamed


def test_the_last_message_is_that_of_each_view_and_none_of_an_empty_one() -> None:
    history = History([user("a")])
    longer = history.append(user("b"))
    assert (History().last, history.last, longer.last) == (None, history[0], longer[1])


def test_a_history_that_nobody_has_looked_at_goes_on_two_ways() -> None:
    history = History([user("a")])
    ways = history.append(user("b")), history.append(user("c"))
    assert [[message.text for message in way] for way in ways] == [["a", "b"], ["a", "c"]]
    assert [way.digest for way in ways] == [History(list(way)).digest for way in ways]
    assert [way.survey().users[1] for way in ways] == [1, 1]


def test_digests_asked_for_at_many_lengths_are_not_all_kept() -> None:
    history = History([user("a")])
    for message in [user("b")] * 2_000:
        history = history.append(message)
    gc.collect()
    tracemalloc.start()
    try:
        digests = {history.prefix(length).digest for length in range(2_000)}
        assert len(digests) == 2_000
        del digests
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
