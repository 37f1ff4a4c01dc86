"""`handrail sessions`: what there is in a store, found, named, forked, copied and taken away."""

import asyncio
import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from cli.conftest import COMMAND, Run, one_line, quiet_environment
from handrail.filters import ToolCall, assistant, tool_result, user
from handrail.sessions import MessageRecord, Session, Store, ToolResultRecord, open_store
from servers.forks import Outcome
from sessions.conversations import secret

CALL = ToolCall("c1", "find_invoice", '{"number":"1042"}')


def words_of(*texts: str) -> list[MessageRecord]:
    return [MessageRecord(path="desk", message=user(text, id=text.split()[0].lower())) for text in texts]


def fill(store: Store) -> None:
    with store.create("customer-17", title="Charged twice", tags=["refund"]) as session:
        session.append(*words_of("Hello there", "Invoice 1042, twice!"))
        session.append(MessageRecord(path="desk", message=assistant(CALL, id="asked", agent="desk")))
        session.append(ToolResultRecord(path="desk", message=tool_result(CALL, "paid twice", id="paid")))
    with store.open("customer-18") as session:
        session.append(*words_of("Where is parcel 8841?"))


@pytest.fixture(params=["chats.db", "chats/"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of two sessions, as it is called in its folder."""
    with open_store(f"{tmp_path}/{request.param}") as made:
        fill(made)
    return str(request.param)


@pytest.fixture
def sessions(handrail_here: Run, store: str) -> Run:
    def run(command: str, *arguments: str | Path, input: str = "") -> Outcome:
        return handrail_here("sessions", command, *arguments, "--store", store, input=input)

    return run


def ids(outcome: Outcome) -> list[str]:
    assert outcome.returncode == 0, outcome.stderr
    return [json.loads(line)["id"] for line in outcome.stdout.splitlines()]


def test_the_list_begins_with_the_session_last_written_to(sessions: Run) -> None:
    assert ids(sessions("list", "--json")) == ["customer-18", "customer-17"]
    table = sessions("list").stdout
    assert "Charged twice" in table
    assert "refund" in table
    assert "│ desk " in table


def test_the_list_holds_what_is_asked_for(sessions: Run) -> None:
    assert ids(sessions("list", "--tag", "refund", "--json")) == ["customer-17"]
    assert ids(sessions("list", "--text", "parcel", "--json")) == ["customer-18"]
    assert ids(sessions("list", "--limit", "1", "--json")) == ["customer-18"]
    nothing = sessions("list", "--agent", "nobody")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "there is no such session here" in nothing.stderr


def test_a_session_is_shown_with_its_agents_and_messages(sessions: Run) -> None:
    shown = sessions("show", "customer-17").stdout
    assert shown.startswith("customer-17: Charged twice\n  tags       refund\n")
    assert "  agent      desk: sees 4 messages and goes on\n" in shown
    assert "user [invoice]: Invoice 1042, twice!" in shown
    assert "-> find_invoice(number='1042')" in shown


def test_the_end_of_a_session_is_shown_alone(sessions: Run) -> None:
    for more in ((), ("--agent", "desk")):
        shown = json.loads(sessions("show", "customer-17", "--tail", "1", "--json", *more).stdout)
        assert [message["id"] for message in shown["messages"]] == ["paid"]
        assert (shown["active_agent"], shown["views"]) == ("desk", {"desk": 4})
    assert json.loads(sessions("show", "customer-17", "--tail", "0", "--json").stdout)["messages"] == []


def test_words_are_found_with_what_stands_around_them(sessions: Run) -> None:
    (found,) = sessions("search", "INVOICE twice", "--json").stdout.splitlines()
    assert json.loads(found) == {
        "session": "customer-17",
        "message": "invoice",
        "agent": "desk",
        "snippet": "Invoice 1042, twice!",
    }
    assert "Invoice 1042, twice!" in sessions("search", "invoice").stdout
    assert "and more than 1 message; --limit shows more" in sessions("search", "twice", "--limit", "1").stderr
    assert "no message holds 'nowhere'" in sessions("search", "nowhere").stderr


def test_a_fork_begins_as_the_other_did(sessions: Run) -> None:
    outcome = sessions("fork", "customer-17", "--at", "invoice")
    assert outcome.stdout == "customer-17-fork: begins with 2 messages of customer-17\n"
    assert json.loads(sessions("fork", "customer-17", "--json").stdout)["id"] == "customer-17-fork2"
    assert json.loads(sessions("show", "customer-17-fork", "--json").stdout)["parent"] == "customer-17"
    assert json.loads(sessions("fork", "customer-18", "--as", "other", "--json").stdout)["messages"] == 1


def test_a_fork_between_a_call_and_its_result_is_refused_with_the_nearest_places(sessions: Run) -> None:
    said = one_line(sessions("fork", "customer-17", "--at", "asked"), 2)
    assert "the call 'c1' has no result there; possible near it: 'invoice', 'paid'" in said


def test_titles_and_tags_are_given_and_taken(sessions: Run) -> None:
    assert sessions("rename", "customer-18", "A parcel").stdout == "customer-18: A parcel; tags: none\n"
    assert sessions("tag", "customer-18", "open", "vip").stdout == "customer-18: A parcel; tags: open, vip\n"
    entry = json.loads(sessions("untag", "customer-18", "open", "--json").stdout)
    assert (entry["title"], entry["tags"]) == ("A parcel", ["vip"])


def test_a_copy_goes_out_and_comes_back_byte_for_byte(sessions: Run, handrail_here: Run, tmp_path: Path) -> None:
    sessions("export", "customer-17", "a.jsonl")
    assert handrail_here("sessions", "import", "a.jsonl", "--store", "new/").stdout == "a: a copy of a.jsonl\n"
    assert (tmp_path / "new" / "a.jsonl").read_bytes() == (tmp_path / "a.jsonl").read_bytes()
    assert "a.jsonl: there is a file already" in one_line(sessions("export", "customer-17", "a.jsonl"), 2)


def test_a_folder_of_copies_keeps_their_ids(sessions: Run, handrail_here: Run, tmp_path: Path) -> None:
    sessions("fork", "customer-17", "--as", "a/b c")
    (tmp_path / "out").mkdir()
    for id in ("a/b c", "customer-18"):
        sessions("export", id, "out")
    (tmp_path / "out" / "other.jsonl").write_text('{"role": "user"}\n')
    outcome = handrail_here("sessions", "import", "out", "--store", "new.db", "--json")
    assert ids(outcome) == ["a/b c", "customer-18"]
    assert "1 other file passed over" in outcome.stderr


def test_a_copy_that_lost_its_header_is_told_and_not_passed_over(
    sessions: Run, handrail_here: Run, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    sessions("export", "customer-17", "out")
    (copy,) = (tmp_path / "out").iterdir()
    (tmp_path / "out" / "headless.jsonl").write_bytes(b"".join(copy.read_bytes().splitlines(keepends=True)[1:]))
    outcome = handrail_here("sessions", "import", "out", "--store", "new.db")
    assert outcome.returncode == 2
    assert "headless.jsonl: not a Handrail session" in outcome.stderr
    assert "passed over" not in outcome.stderr


def test_of_several_files_those_that_can_be_are_taken_in(sessions: Run) -> None:
    sessions("export", "customer-17", "a.jsonl")
    outcome = sessions("import", "a.jsonl", "nowhere.jsonl", "a.jsonl")
    assert (outcome.returncode, outcome.stdout) == (2, "a: a copy of a.jsonl\n")
    assert [line.partition(":")[0] for line in outcome.stderr.splitlines()] == ["handrail", "handrail"]


def test_a_compressed_copy_is_kept_as_its_lines(sessions: Run, handrail_here: Run, store: str) -> None:
    handrail_here("export", f"{store}#customer-17", "-o", "a.jsonl.gz")
    assert sessions("import", "a.jsonl.gz").stdout == "a: a copy of a.jsonl.gz\n"
    assert handrail_here("verify", f"{store}#a", "--require-sealed").returncode == 0


def test_an_encrypted_session_is_copied_as_it_is_and_shown_with_its_passphrase(sessions: Run, tmp_path: Path) -> None:
    with Session(tmp_path / "hidden.jsonl", passphrase=secret("one two")) as session:
        session.append(*words_of("Hidden words"))
    (tmp_path / "key").write_text("one two\n")
    assert sessions("import", "hidden.jsonl").returncode == 0
    assert "--passphrase-file" in one_line(sessions("show", "hidden"), 2)
    assert "Hidden words" in sessions("show", "hidden", "--passphrase-file", "key").stdout
    assert "--passphrase-file" in one_line(sessions("fork", "hidden"), 2)
    assert (
        sessions("fork", "hidden", "--passphrase-file", "key").stdout
        == "hidden-fork: begins with 1 message of hidden\n"
    )
    assert "Hidden words" in sessions("show", "hidden-fork", "--passphrase-file", "key").stdout
    sessions("export", "hidden", "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "hidden.jsonl").read_bytes()


def test_what_a_search_could_not_look_into_is_told_and_a_passphrase_opens_it(sessions: Run, tmp_path: Path) -> None:
    with Session(tmp_path / "hidden.jsonl", passphrase=secret("one two")) as session:
        session.append(*words_of("Hidden words"))
    (tmp_path / "key").write_text("one two\n")
    sessions("import", "hidden.jsonl")
    (entry,) = [json.loads(line) for line in sessions("list", "--json").stdout.splitlines() if '"hidden"' in line]
    assert (entry["encrypted"], entry["messages"]) == (True, None)
    without = sessions("search", "hidden words")
    assert "not looked into, as encrypted: 1 session, such as hidden" in without.stderr
    assert "not looked into" in sessions("list", "--text", "hidden words").stderr
    within = sessions("search", "hidden words", "--passphrase-file", "key", "--json")
    assert (json.loads(within.stdout)["session"], within.stderr) == ("hidden", "")


def test_sessions_are_removed_only_after_a_yes(sessions: Run) -> None:
    said = one_line(sessions("rm", "customer-17"), 2)
    assert "to remove 1 session (customer-17) from" in said
    assert "pass --yes: there is no terminal here to ask at" in said
    assert json.loads(sessions("rm", "customer-17", "--yes", "--json").stdout) == {"removed": ["customer-17"]}
    assert ids(sessions("list", "--json")) == ["customer-18"]


def test_where_one_is_not_there_none_is_removed(sessions: Run) -> None:
    assert "there is no session of this id: 'nope'" in one_line(sessions("rm", "customer-17", "nope", "--yes"), 2)
    assert len(ids(sessions("list", "--json"))) == 2


def test_a_session_that_is_written_to_stays_and_the_others_go(sessions: Run, store: str, tmp_path: Path) -> None:
    with open_store(f"{tmp_path}/{store}") as opened, opened.open("customer-18") as session:
        session.append(*words_of("More"))
        outcome = sessions("rm", "customer-18", "customer-17", "--yes")
    assert (outcome.stdout, "customer-18" in one_line(outcome, 1)) == ("removed customer-17\n", True)


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 1), ("\n", 1, 2), ("no\n", 1, 2)])
def test_at_a_terminal_it_is_asked(store: str, tmp_path: Path, answer: str, code: int, left: int) -> None:
    keyboard, screen = pty.openpty()
    try:
        os.write(keyboard, answer.encode())
        outcome = subprocess.run(
            [*COMMAND, "sessions", "rm", "customer-17", "--store", store],
            cwd=tmp_path,
            env=quiet_environment(),
            stdin=screen,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(keyboard)
        os.close(screen)
    assert outcome.returncode == code
    assert "Remove 1 session (customer-17) from" in outcome.stdout
    with open_store(f"{tmp_path}/{store}") as opened:
        assert len(opened.list()) == left


def test_what_grew_old_while_somebody_was_asked_stays(store: str, tmp_path: Path) -> None:
    keyboard, screen = pty.openpty()
    command = [*COMMAND, "sessions", "prune", "--older-than", "0m", "--store", store]
    given = {"cwd": tmp_path, "env": quiet_environment(), "stdin": screen, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **given) as asking, open_store(f"{tmp_path}/{store}") as opened:  # type: ignore[call-overload]
        said = b""
        while not said.endswith(b"[y/N] "):
            said += asking.stdout.read(1)
        opened.create("late")
        os.write(keyboard, b"y\n")
        assert b"removed customer-17" in asking.stdout.read()
        assert [entry.id for entry in opened.list()] == ["late"]
    os.close(keyboard)
    os.close(screen)


def test_old_sessions_are_said_before_they_are_removed(sessions: Run) -> None:
    assert sessions("prune", "--older-than", "30d").stdout == "there is nothing to remove\n"
    dry = sessions("prune", "--older-than", "0m", "--dry-run", "--json")
    assert sorted(json.loads(dry.stdout)["would_remove"]) == ["customer-17", "customer-18"]
    assert "pass --yes" in one_line(sessions("prune", "--older-than", "0m"), 2)
    assert sessions("prune", "--older-than", "0m", "--tag", "refund", "--yes").stdout == "removed customer-17\n"
    assert ids(sessions("list", "--json")) == ["customer-18"]


@pytest.mark.parametrize("age", ["30", "d", "-1d", "1.5d", "30 days", "9999999d"])
def test_an_age_that_is_none_is_told(sessions: Run, age: str) -> None:
    assert "is no age; write a number and m, h, d or w" in one_line(sessions("prune", f"--older-than={age}"), 2)


def test_no_title_moves_a_terminals_cursor(sessions: Run) -> None:
    sessions("rename", "customer-18", "\x1b[2J\u202e loud\n")
    for outcome in (sessions("list"), sessions("show", "customer-18")):
        assert "\x1b" not in outcome.stdout
        assert "\u202e" not in outcome.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["list", "--store", "nowhere.db"], 2, "nowhere.db: there is no store here; name one with --store"),
        (["list"], 2, "handrail.db: there is no store here"),
        (["list", "--store", "memory:"], 2, "ends with the program that has it"),
        (["list", "--store", "redis://host"], 2, "no store is named by redis:"),
        (["list", "--store", "notes.db"], 1, "file is not a database"),
        (["show", "nobody", "--store", "chats/"], 2, "no session of this id: 'nobody'; `handrail sessions list` says"),
        (["show", "", "--store", "chats/"], 2, "no session can have this id"),
        (["show", "a", "--agent", "nobody", "--store", "chats/"], 2, "possible: desk"),
        (["import", "notes.db", "--store", "new.db"], 2, "not a Handrail session"),
        (["import", "chat.json", "--store", "new.db"], 2, "`handrail import` reads other transcripts"),
        (["import", "a.jsonl", "b.jsonl", "--as", "c"], 2, "--as is the id of one session, and here are 2"),
        (["export", "a", "no/such/file", "--store", "chats/"], 2, "there is no folder no/such"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(
    handrail_here: Run, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "notes.db").write_text("Dear diary, this is no database. " * 200)
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "Hi"}]')
    with open_store(f"{tmp_path}/chats/") as store, store.open("a") as session:
        session.append(*words_of("Hello"))
    assert said in one_line(handrail_here("sessions", *arguments), code)


def test_alone_it_shows_what_there_is(handrail_here: Run) -> None:
    outcome = handrail_here("sessions")
    assert outcome.returncode == 0
    assert "prune" in outcome.stdout


def test_the_environment_names_the_store(handrail_here: Run, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_STORE", store)
    assert ids(handrail_here("sessions", "list", "--json")) == ["customer-18", "customer-17"]


async def test_a_reader_that_goes_away_is_no_error(store: str, tmp_path: Path) -> None:
    with open_store(f"{tmp_path}/{store}") as opened, opened.open("long") as session:
        for number in range(2000):
            session.append(*words_of(f"message {number} " + "word " * 20))
    process = await asyncio.create_subprocess_exec(
        *[*COMMAND, "sessions", "show", "long", "--store", store],
        cwd=tmp_path,
        env=quiet_environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert await process.stdout.readline() == b"long\n"
    # A pipe is closed by its transport alone.
    process.stdout._transport.close()  # type: ignore[attr-defined]
    assert await asyncio.wait_for(process.stderr.read(), 30) == b""
    assert await process.wait() == 1
