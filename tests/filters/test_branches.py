"""Long histories that go on another way: they share what came before, and neither sees what the other says."""

import random
import tracemalloc
from itertools import count

import pytest

from handrail.filters import History, Message, user
from handrail.filters.branches import Branch, branched


def chat(length: int) -> list[Message]:
    return [user(f"{place}", id=f"m{place}") for place in range(length)]


def test_a_long_history_that_goes_another_way_is_not_copied() -> None:
    history = History(chat(20_000))
    history.append(user("one way", id="one"))
    tracemalloc.start()
    other = history.append(user("another way", id="another"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (other[-1].text, len(other)) == ("another way", 20_001)
    assert peak < 20_000


@pytest.mark.parametrize("seed", range(8))
def test_histories_that_part_and_part_again_each_hold_what_they_were_given(seed: int) -> None:
    pick, numbers = random.Random(seed), count()
    histories = [(History(first := chat(pick.choice([500, 1_023, 1_500]))), tuple(first))]
    for _ in range(60):
        history, held = pick.choice(histories)
        new = [user("more", id=f"n{next(numbers)}") for _ in range(pick.choice([1, 1, 3, 900]))]
        length = pick.choice([len(held), len(held), max(0, len(held) - pick.randrange(1_200))])
        going = history.prefix(length)
        gone = going.append(new[0]) if len(new) == 1 else going.extend(new)
        histories.append((gone, (*held[:length], *new)))
    for history, held in histories:
        assert history == held
        assert [history[0], history[-1], history[len(held) // 2]] == [held[0], held[-1], held[len(held) // 2]]
        assert history[-1_050:] == held[-1_050:]
        assert list(reversed(history)) == list(reversed(held))


@pytest.mark.parametrize("seed", range(4))
def test_what_is_known_of_a_branch_is_what_a_walk_finds(seed: int) -> None:
    pick = random.Random(seed)
    stem = History(chat(1_500))
    stem.append(user("", id="in the way"))
    branch = stem.append(user("", id="empty" * (seed % 2)))
    if seed < 2:
        branch = branch.extend(chat(1_600)[1_500:]).prefix(1_550).append(user("a third way", id="third"))
    fresh = History(list(branch))
    assert (branch.digest, branch.survey().lawful) == (fresh.digest, fresh.survey().lawful)
    assert branch.survey().unnamed_at == fresh.survey().unnamed_at
    assert branch.total("words", lambda message: len(message.text)) == fresh.total("words", lambda m: len(m.text))
    for message_id in ["m0", "m1499", "empty", "third", "in the way", f"m{pick.randrange(1_500)}"]:
        assert branch.position(message_id) == fresh.position(message_id)


def test_a_branch_reads_like_the_list_it_stands_for() -> None:
    messages = chat(1_600)
    branch = branched(messages[:1_500], 1_200)
    assert isinstance(branch, Branch)
    branch.extend(messages[1_200:])
    assert list(branch) == messages
    pick = random.Random(0)
    for _ in range(300):
        start, stop = pick.randrange(-1_700, 1_700), pick.choice([None, pick.randrange(-1_700, 1_700)])
        step = pick.choice([None, None, 1, 2, -1])
        assert branch[start:stop:step] == messages[start:stop:step]
    assert [branch[place] for place in (0, 1_199, 1_200, -1, -1_600)] == [
        messages[place] for place in (0, 1_199, 1_200, -1, -1_600)
    ]
    for outside in (1_600, -1_601):
        with pytest.raises(IndexError):
            branch[outside]
