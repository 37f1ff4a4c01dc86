"""What differs between what was recorded and what is now, as it is shown."""

from handrail.agent.replay.differences import SHOWN, Difference, of_notes, told
from handrail.filters import Note


def test_notes_differ_by_label_and_a_secret_one_is_shown_as_a_mark() -> None:
    then = (Note("reason", "money"), Note("input", "hunter2", "secret"))
    assert list(of_notes(then, then)) == []
    reason, input = of_notes(then, (Note("input", "swordfish", "secret"),))
    assert reason == Difference("note reason", "money", "")
    assert (input.where, input.then == input.now) == ("note input", True)
    assert "hunter2" not in str(input)
    assert "swordfish" not in str(input)


def test_of_many_differences_the_first_are_shown_and_the_others_counted() -> None:
    each = Difference("x", "1", "2")
    assert told([each] * SHOWN).count("x") == SHOWN
    assert told([each] * (SHOWN + 3)).endswith("and 3 more")
