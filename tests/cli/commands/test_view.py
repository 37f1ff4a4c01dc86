"""`handrail view`: a session, or a folder of them, as pages."""

import json
import sys
from pathlib import Path

import pytest

from cli.conftest import Run, one_line
from cli.viewer import books
from handrail.filters import user
from handrail.sessions import Passphrase, Session


def data_of(page: Path) -> dict[str, object]:
    """What a page was given."""
    text = page.read_text()
    start = text.index('id="data">') + len('id="data">')
    found: dict[str, object] = json.loads(text[start : text.index("</script>", start)])
    return found


def test_a_session_becomes_one_file_and_the_command_says_what_is_in_it(handrail_here: Run, desk_session: Path) -> None:
    outcome = handrail_here("view", desk_session)
    assert outcome.returncode == 0
    assert outcome.stdout == "desk.html: 22 messages, 2 handoffs; intact, not sealed, 3 boundaries run again\n"
    assert data_of(desk_session.with_name("desk.html"))["title"] == "desk"


def test_standard_input_is_taken_and_the_page_goes_where_it_is_said(
    handrail_here: Run, desk_session: Path, tmp_path: Path
) -> None:
    assert handrail_here("view", "-", "-o", "there.html", input=desk_session.read_text()).returncode == 0
    assert data_of(tmp_path / "there.html")["file"] == "standard input"


def test_no_page_is_overwritten(handrail_here: Run, desk_session: Path, tmp_path: Path) -> None:
    (tmp_path / "desk.html").write_text("mine")
    assert "desk.html" in one_line(handrail_here("view", desk_session), 2)
    assert (tmp_path / "desk.html").read_text() == "mine"


def test_as_json_it_says_what_the_page_holds(handrail_here: Run, desk_session: Path) -> None:
    said = json.loads(handrail_here("view", desk_session, "--json").stdout)
    assert (said["page"], said["state"], said["ok"], said["messages"]) == ("desk.html", "intact", True, 22)
    assert said["agents"] == ["triage", "billing", "research"]


def test_a_folder_becomes_a_list_with_a_page_for_each_session(handrail_here: Run, tmp_path: Path) -> None:
    (tmp_path / "past" / "old").mkdir(parents=True)
    books.shop(tmp_path / "past" / "shop.session.jsonl")
    books.priced(tmp_path / "past" / "old" / "index.jsonl")
    books.priced(tmp_path / "past" / "index.jsonl")
    (tmp_path / "past" / "other.jsonl").write_text("{}\n")
    outcome = handrail_here("view", "past")
    assert outcome.stdout == "past.view/index.html: 3 sessions, all intact\n"
    listed = data_of(tmp_path / "past.view" / "index.html")
    pages = [str(entry["page"]) for entry in listed["entries"]]  # type: ignore[attr-defined]  # it is a list
    assert pages == ["index.jsonl.html", "shop.session.html", "old/index.html"]
    assert all([(tmp_path / "past.view" / page).is_file() for page in pages])
    assert listed["passed_over"] == 1


def test_a_session_of_a_folder_that_lost_its_header_is_listed_with_the_reason(
    handrail_here: Run, tmp_path: Path
) -> None:
    (tmp_path / "past").mkdir()
    lines = books.shop(tmp_path / "past" / "a.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "past" / "b.jsonl").write_bytes(b"".join(lines[1:]))
    outcome = handrail_here("view", "past")
    assert outcome.stdout == "past.view/index.html: 2 sessions, 1 not intact\n"
    states = [entry["state"] for entry in data_of(tmp_path / "past.view" / "index.html")["entries"]]  # type: ignore[attr-defined]  # it is a list
    assert sorted(states) == ["intact", "unreadable"]


def test_a_session_of_a_folder_that_is_not_whole_is_listed_and_told(handrail_here: Run, tmp_path: Path) -> None:
    (tmp_path / "past").mkdir()
    bad = books.shop(tmp_path / "past" / "a.jsonl")
    bad.write_bytes(bad.read_bytes().replace(b"twice", b"never", 1))
    newer = books.priced(tmp_path / "past" / "b.jsonl")
    newer.write_bytes(newer.read_bytes().replace(b'"version":1', b'"version":9', 1))
    outcome = handrail_here("view", "past", "--json")
    said = [json.loads(line) for line in outcome.stdout.splitlines()]
    assert [(entry["state"], entry["ok"]) for entry in said] == [("tampered", False), ("unreadable", False)]
    assert "version 9" in said[1]["problem"]


def test_an_encrypted_session_is_shown_to_whoever_has_its_passphrase_and_the_page_says_that_it_is_not(
    handrail_here: Run, tmp_path: Path
) -> None:
    (tmp_path / "past").mkdir()
    (tmp_path / "key").write_text("open sesame\n")
    session = Session(tmp_path / "past" / "a.jsonl", passphrase=Passphrase("open sesame"))
    with session:
        session.append(books.said(user("A secret", id="m1")))
    assert "passphrase" in one_line(handrail_here("view", "past/a.jsonl"), 2)
    assert not (tmp_path / "a.html").exists()
    outcome = handrail_here("view", "past/a.jsonl", "--passphrase-file", "key")
    assert outcome.stdout == "a.html: 1 message, 0 handoffs; intact, not sealed, encrypted\n"
    assert "this page is not" in str(data_of(tmp_path / "a.html")["remarks"])
    assert "all intact" in handrail_here("view", "past", "--passphrase-file", "key").stdout


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_a_compressed_copy_is_shown_like_its_session(handrail_here: Run, desk_session: Path, suffix: str) -> None:
    handrail_here("export", desk_session, "-o", f"copy.jsonl.{suffix}")
    outcome = handrail_here("view", f"copy.jsonl.{suffix}", "-o", "copy.html")
    assert outcome.stdout == "copy.html: 22 messages, 2 handoffs; intact, sealed, 3 boundaries run again\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chat.json"], "`handrail import` reads other transcripts"),
        (["past", "-o", "past/pages"], "is within the folder that is looked at"),
        (["none"], "there is no such file or folder"),
        (["empty"], "holds no session"),
    ],
)
def test_what_cannot_be_shown_is_told_in_one_line(
    handrail_here: Run, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "Hello"}]')
    (tmp_path / "empty").mkdir()
    (tmp_path / "past").mkdir()
    books.priced(tmp_path / "past" / "a.jsonl")
    assert said in one_line(handrail_here("view", *arguments), 2)
    assert not (tmp_path / "empty.view").exists()


def test_the_page_is_opened_in_the_browser_that_is_set(
    handrail_here: Run, desk_session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "browse.py").write_text("import pathlib, sys; pathlib.Path('seen').write_text(sys.argv[1])")
    monkeypatch.setenv("BROWSER", f"{sys.executable} {tmp_path / 'browse.py'} %s")
    assert handrail_here("view", desk_session, "--open").returncode == 0
    assert (tmp_path / "seen").read_text() == (tmp_path / "desk.html").as_uri()
