"""What a window keeps, held against the plainest way to say it."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.filters import History, Message, last_n, last_user, summary
from handrail.filters.messages import Messages
from laws.strategies import histories


def calls_of(history: Messages) -> dict[int, int]:
    """Each result's place and that of its call: the nearest earlier message with an open call of its id."""
    calls: dict[int, int] = {}
    for place, message in enumerate(history):
        if message.role == "tool":
            for caller in reversed(range(place)):
                taken = {history[result].call_id or "" for result, other in calls.items() if other == caller}
                waiting = {call.id for call in history[caller].tool_calls} - taken
                if history[caller].role == "assistant" and (message.call_id or "") in waiting:
                    calls[place] = caller
                    break
    return calls


def uncounted(history: Messages) -> set[int]:
    pinned = {place for place, message in enumerate(history) if message.pinned}
    halves = {caller for result, caller in calls_of(history).items() if result in pinned}
    halves |= {result for result, caller in calls_of(history).items() if caller in pinned}
    return {place for place, message in enumerate(history) if message.role == "system"} | pinned | halves


def without_orphans(history: Messages, places: set[int]) -> list[Message]:
    calls = calls_of(history)
    return [history[place] for place in sorted(places) if history[place].role != "tool" or calls.get(place) in places]


def last_others(history: Messages, n: int) -> set[int]:
    others = [place for place in range(len(history)) if place not in uncounted(history)]
    return set(others[len(others) - min(n, len(others)) :])


@given(histories, st.integers(1, 6), st.booleans())
def test_last_n_keeps_what_its_description_says(history: History, n: int, keep_user: bool) -> None:
    said = [place for place, message in enumerate(history) if message.role == "user"]
    places = uncounted(history) | last_others(history, n) | set(said[-1:] if keep_user else [])
    assert list(last_n(n, keep_user=keep_user)(history)) == without_orphans(history, places)


@given(histories)
def test_last_user_keeps_what_its_description_says(history: History) -> None:
    said = [place for place, message in enumerate(history) if message.role == "user"]
    assert list(last_user()(history)) == without_orphans(history, uncounted(history) | set(said[-1:]))


@given(histories, st.integers(0, 4))
def test_a_summary_stands_among_what_its_description_says(history: History, keep_last: int) -> None:
    made = list(summary("They talked.", keep_last=keep_last)(history))
    kept = without_orphans(history, uncounted(history) | last_others(history, keep_last))
    assert [message for message in made if message.id] == kept
    assert [message.text for message in made if not message.id] == ["They talked."]


@given(histories, st.integers(1, 6))
def test_at_most_n_others_are_kept(history: History, n: int) -> None:
    beside = {history[place].id for place in uncounted(history)}
    assert len([message for message in last_n(n)(history) if message.id not in beside]) <= n
