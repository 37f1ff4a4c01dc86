"""`handrail diff` on sessions, on transcripts, and on what is neither."""

import json
from pathlib import Path

import pytest

from cli.conftest import Run, one_line
from handrail.cli.desk import support_desk
from handrail.filters import user
from handrail.sessions import MessageRecord, Session


def talked(path: Path, *lines: str) -> Path:
    desk = support_desk()
    for line in lines:
        desk.run_sync(line, session=str(path))
    return path


@pytest.fixture
def sessions(tmp_path: Path) -> tuple[Path, Path]:
    """The same question of two parcels."""
    first = talked(tmp_path / "a.jsonl", "Where is parcel 8841?")
    return first, talked(tmp_path / "b.jsonl", "Where is parcel 8842?")


def test_two_runs_of_the_same_mean_the_same(tmp_path: Path, handrail_here: Run) -> None:
    paths = [talked(tmp_path / name, "Was I charged twice on invoice 1042?") for name in ("a.jsonl", "b.jsonl")]
    outcome = handrail_here("diff", *paths)
    assert outcome.returncode == 0
    assert outcome.stdout.splitlines()[-1] == "the same meaning"


def test_what_differs_is_told_by_agent_message_and_field(sessions: tuple[Path, Path], handrail_here: Run) -> None:
    outcome = handrail_here("diff", *sessions)
    assert outcome.returncode == 1
    assert "triage\n" in outcome.stdout
    assert '      content[0].arguments.number: "8841" → "8842"\n' in outcome.stdout


def test_json_holds_what_differs_and_nothing_else(sessions: tuple[Path, Path], handrail_here: Run) -> None:
    outcome = handrail_here("diff", *sessions, "--json")
    told = json.loads(outcome.stdout)
    assert (outcome.returncode, told["same"], told["a"]) == (1, False, str(sessions[0]))
    assert {row["what"] for lane in told["lanes"] for row in lane["rows"]} == {"changed"}


def test_a_session_is_compared_with_a_transcript(tmp_path: Path, root: Path, handrail_here: Run) -> None:
    chat = root / "examples" / "support_chat.json"
    handrail_here("import", chat, "-o", "chat.jsonl")
    assert handrail_here("diff", "chat.jsonl", chat).returncode == 0


def test_one_side_may_be_standard_input(sessions: tuple[Path, Path], handrail_here: Run) -> None:
    first, second = sessions
    outcome = handrail_here("diff", "-", second, input=first.read_text())
    assert (outcome.returncode, outcome.stdout.splitlines()[0]) == (1, "- -")
    assert "read once" in one_line(handrail_here("diff", "-", "-"), 2)


@pytest.mark.parametrize("name", ["nowhere.jsonl", "words.txt"])
def test_what_cannot_be_compared_is_named_in_one_line(name: str, tmp_path: Path, handrail_here: Run) -> None:
    first = talked(tmp_path / "a.jsonl", "Where is parcel 8841?")
    (tmp_path / "words.txt").write_text("no transcript")
    assert name in one_line(handrail_here("diff", first, name), 2)


def test_the_text_obeys_nothing_that_a_session_says(tmp_path: Path, handrail_here: Run) -> None:
    for name, words in (("a.jsonl", "one"), ("b.jsonl", "two")):
        with Session(tmp_path / name) as session:
            hostile = user(f"\x1b]0;{words}\x07\u202e", id="m1\x9b2J")
            session.append(MessageRecord(path="desk", message=hostile))
    said = handrail_here("diff", "a.jsonl", "b.jsonl").stdout
    assert not set(said) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert "one" in said


def test_a_page_is_made_of_a_difference_and_none_is_overwritten(
    handrail_here: Run, desk_session: Path, tmp_path: Path
) -> None:
    handrail_here("export", desk_session, "-o", "sealed.jsonl")
    outcome = handrail_here("diff", desk_session, "sealed.jsonl", "--html", "page.html")
    assert (outcome.returncode, outcome.stdout) == (0, "page.html: the two mean the same\n")
    assert b"Content-Security-Policy" in (tmp_path / "page.html").read_bytes()
    assert "page.html" in one_line(handrail_here("diff", desk_session, "sealed.jsonl", "--html", "page.html"), 2)
