"""The latest question alone."""

from handrail.filters import assistant, last_user, system, user


def test_the_latest_user_message_and_system_messages_are_kept() -> None:
    history = (system("s"), user("a"), user("b"), assistant("c"), system("t"))
    assert last_user()(history) == (system("s"), user("b"), system("t"))


def test_pinned_messages_stay() -> None:
    history = (assistant("a", pinned=True), user("b"), assistant("c"))
    assert last_user()(history) == history[:2]


def test_without_a_user_message_only_the_others_are_kept() -> None:
    assert last_user()((system("s"), assistant("a"))) == (system("s"),)
