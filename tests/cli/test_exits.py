"""Exit codes and lines for errors."""

import pytest

from handrail.agent import BuildError, RunError
from handrail.cli.errors import NoSuchAgent, NoSuchTranscript
from handrail.cli.exits import exit_code, one_line, printable
from handrail.filters import FilterFailed, InvalidExpression
from handrail.sessions import FormatError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (NoSuchAgent("a:b", "there is none"), 2),
        (BuildError("two names"), 2),
        (InvalidExpression("last_n(", 8, "a value is expected"), 2),
        (FormatError("a.json", "a chat", "a poem"), 2),
        (FileNotFoundError(2, "No such file", "a"), 2),
        (RunError("no answer"), 1),
        (FilterFailed("1, f,", "raised"), 1),
        (ZeroDivisionError(), 1),
    ],
)
def test_another_input_would_help_is_two_and_a_failure_is_one(error: BaseException, code: int) -> None:
    assert exit_code(error) == code


def test_an_error_of_nobody_here_says_how_to_see_more() -> None:
    assert one_line(ZeroDivisionError("by zero")) == "ZeroDivisionError: by zero; --debug shows where"


def test_a_choice_among_transcripts_says_how_many_there_are() -> None:
    assert one_line(NoSuchTranscript("a.json", 9, 3)).endswith("there is no number 9; pass --pick 1 to 3")


def test_a_line_holds_nothing_that_a_terminal_obeys() -> None:
    assert printable("a\nb\x1b[2Jc\u202ed") == "a b [2Jc d"
