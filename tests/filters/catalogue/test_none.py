"""Nothing crosses."""

from handrail.filters import none, system, user


def test_none_keeps_nothing_pinned_or_not() -> None:
    assert none()((system("s"), user("a", pinned=True))) == ()
