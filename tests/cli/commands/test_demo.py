"""`handrail demo`: the main job, on text that is piped in or typed."""

import json
import os
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from cli.conftest import Run, one_line, quiet_environment
from cli.processes import running
from cli.refusals import full_after, obey_permissions
from handrail.sessions import Session, verify
from servers.wire import sse, wire

TALK = "Where is parcel 8841?\nWas I charged twice on invoice 1042?\nyes, refund it\nWhen are you open on Sunday?\n"


@pytest.fixture
def talked(handrail: Run) -> str:
    outcome = handrail("demo", "--session", "desk.session.jsonl", input=TALK)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stderr == ""
    return outcome.stdout


def test_the_desk_answers_each_line_that_is_piped_in(talked: str) -> None:
    assert "you> Where is parcel 8841?" in talked
    assert "triage> Parcel 8841 (office chair) is in transit, Porto" in talked
    assert "billing> Invoice 1042 (office chair) is over 148.00 EUR, paid" in talked
    assert "I have given the second payment back." in talked
    assert "triage> We are open: sunday closed." in talked


def test_a_handoff_shows_what_crossed_what_stayed_and_why(talked: str) -> None:
    shown = talked[talked.index("━━ triage → billing") :]
    assert shown.startswith("━━ triage → billing: a double charge, invoice 1042 (4 of 6 messages crossed, 0 made) ━━")
    assert "crossed  user: Was I charged twice on invoice 1042?" in shown
    assert "stayed   triage: result of track_parcel  (tool calls and their results do not cross)" in shown


def test_the_way_back_keeps_secret_results_with_billing(talked: str) -> None:
    shown = talked[talked.index("━━ billing → triage") :]
    assert "stayed   billing: result of find_payments" in shown
    assert "4929" not in talked


def test_a_sub_agent_is_shown_within_its_caller(talked: str) -> None:
    assert "━━ billing → research (0 of 7 messages crossed, 1 made (the input)) ━━" in talked
    assert "    research> The handbook says: A double charge" in talked


def test_the_session_is_written_verified_and_named_at_the_end(talked: str, tmp_path: Path) -> None:
    assert "Verified: intact, not sealed (3 boundaries run again)." in talked
    assert "The session is in desk.session.jsonl." in talked
    assert verify(tmp_path / "desk.session.jsonl").ok


def test_the_commands_that_look_at_the_session_run_as_they_are_printed(talked: str, tmp_path: Path) -> None:
    (tmp_path / "browse.py").write_text("")
    environment = {**quiet_environment(), "BROWSER": f"{sys.executable} browse.py %s"}
    lines = [line for line in talked.splitlines() if line.startswith("  ") and " desk.session.jsonl" in line]
    for line, word, code in zip(lines, ("view", "filter", "replay"), (0, 0, 1), strict=True):
        shown = subprocess.run(
            line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert (shlex.split(line)[1], shown.returncode, shown.stderr) == (word, code, "")
    assert "triage -> billing: 4 to 1 messages" in shown.stdout  # the last is what would have been otherwise


def test_the_session_of_the_demo_goes_again_as_it_went(handrail: Run, talked: str) -> None:
    outcome = handrail("replay", "desk.session.jsonl", "handrail.cli.desk:triage")
    assert (outcome.returncode, outcome.stdout.endswith(": no divergence\n")) == (0, True)


def test_another_process_goes_on_where_the_talk_ended(handrail: Run, talked: str) -> None:
    outcome = handrail(
        "demo", "--session", "desk.session.jsonl", input="And on Monday, are you open?\nquit\nnot read\n"
    )
    assert "triage> We are open: monday 9 to 18." in outcome.stdout
    assert "not read" not in outcome.stdout
    assert "(3 boundaries run again)" in outcome.stdout


def test_without_a_session_of_its_own_it_says_where_the_new_one_is(handrail: Run) -> None:
    outcome = handrail("demo", input="Hello\n")
    where = outcome.stdout.partition("Session file: ")[2].partition("\n")[0]
    assert verify(where).state == "intact"
    assert Session(where).log[0].text == "Hello"


@pytest.mark.parametrize("input", ["", "quit\n"])
def test_where_nothing_is_said_nothing_is_left_behind(handrail: Run, input: str) -> None:
    outcome = handrail("demo", input=input)
    folder = Path(outcome.stdout.partition("Session file: ")[2].partition("\n")[0]).parent
    assert outcome.returncode == 0
    assert "Nothing was said, so no session is kept." in outcome.stdout
    assert not folder.exists()


def test_a_named_session_in_which_nothing_was_said_says_so(handrail: Run, tmp_path: Path) -> None:
    outcome = handrail("demo", "--session", "new.jsonl", input="quit\n")
    assert "Nothing was said; new.jsonl holds no message yet." in outcome.stdout
    assert verify(tmp_path / "new.jsonl").ok


def test_bytes_that_are_no_text_are_answered_all_the_same(handrail_anew: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.txt").write_bytes(b"Where is parcel 8841? \xff\xfe\n")
    with (tmp_path / "odd.txt").open("rb") as odd:
        outcome = handrail_anew("demo", "--session", "odd.session.jsonl", before=partial(os.dup2, odd.fileno(), 0))
    assert "Parcel 8841 (office chair) is in transit" in outcome.stdout
    assert outcome.returncode == 0


async def test_a_real_model_takes_the_same_desk(tmp_path: Path) -> None:
    words = [json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}) for text in ("Hello ", "from afar.")]
    end = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    async with (
        wire(sse(*words, end, "[DONE]")) as server,
        running(tmp_path, "demo", "--model", "openai:any", "--base-url", server.base_url) as demo,
    ):
        out, err = await demo.process.communicate(b"Hello?\n")
    assert (demo.process.returncode, err) == (0, b"")
    assert b"triage> Hello from afar." in out
    assert b"transfer_to_billing" in server.requests[0]


async def test_ctrl_c_in_the_middle_of_an_answer_keeps_what_was_said(tmp_path: Path) -> None:
    word = json.dumps({"choices": [{"index": 0, "delta": {"content": "One moment"}}]})
    async with (
        wire(sse(word), after="hang") as server,
        running(
            tmp_path, "demo", "--model", "openai:any", "--base-url", server.base_url, "--session", "cut.jsonl"
        ) as demo,
    ):
        assert demo.process.stdin is not None
        demo.process.stdin.write(b"Hello?\n")
        await demo.hear("One moment")
        code, out, err = await demo.interrupted()
    assert (code, err) == (130, "handrail: interrupted\n")
    assert "Verified: intact" in out
    assert [message.text for message in Session(tmp_path / "cut.jsonl").log] == ["Hello?"]


async def test_a_terminal_is_asked_line_by_line_and_ctrl_c_ends_the_talk(tmp_path: Path) -> None:
    terminal, end = os.openpty()
    try:
        async with running(tmp_path, "demo", "--session", "typed.jsonl", stdin=end) as demo:
            await demo.hear("you> ")
            os.write(terminal, b"Where is parcel 8841?\n")
            await demo.hear("in transit, Porto")
            await demo.hear("you> ")
            code, out, err = await demo.interrupted()
    finally:
        os.close(terminal)
        os.close(end)
    assert (code, err) == (130, "handrail: interrupted\n")
    assert "\nVerified: intact" in out


async def test_a_model_that_fails_is_told_in_a_line_and_the_talk_goes_on(tmp_path: Path) -> None:
    async with (
        wire(b"{}", status="400 Bad Request") as server,
        running(
            tmp_path, "demo", "--model", "openai:any", "--base-url", server.base_url, "--session", "a.jsonl"
        ) as demo,
    ):
        out, err = await demo.process.communicate(b"Hello?\n\nStill there?\n")
    assert demo.process.returncode == 1
    assert [line.partition(":")[0] for line in err.decode().splitlines()] == ["handrail", "handrail"]
    assert b"Verified: intact" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "parrot:polly"], "no model is called 'parrot:polly'"),
        (["--base-url", "http://127.0.0.1:9/v1"], "pass --model openai:NAME as well"),
        (["--model", "openai:any", "--base-url", "nonsense"], "base_url must begin with http:// or https://"),
        (["--session", "talk.txt"], "talk.txt: not a Handrail session"),
        (["--session", "newer.jsonl"], "version 7; this Handrail reads version 1"),
    ],
)
def test_what_cannot_work_is_told_before_anybody_types(
    handrail: Run, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "talk.txt").write_text("Dear diary\n")
    header = {
        "prev": "0" * 64,
        "kind": "header",
        "format": "handrail-session",
        "version": 7,
        "id": "a",
        "created_at": 1,
    }
    (tmp_path / "newer.jsonl").write_text(json.dumps(header, separators=(",", ":")) + "\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    outcome = handrail("demo", *arguments, input="Hello\n")
    assert said in one_line(outcome, 2)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_may_not_be_written_to_is_told_before_anybody_types(handrail_anew: Run, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    outcome = handrail_anew("demo", "--session", "closed/a.jsonl", input="Hello\n", before=obey_permissions)
    assert "closed/a.jsonl: cannot be written to: Permission denied" in one_line(outcome, 1)
    assert "you>" not in outcome.stdout


def test_a_full_disk_loses_nothing_that_was_written(handrail_anew: Run, tmp_path: Path) -> None:
    outcome = handrail_anew("demo", "--session", "full.jsonl", input=TALK, before=partial(full_after, 6000))
    assert "full.jsonl: File too large; the journal is whole up to byte" in one_line(outcome, 1)
    assert verify(tmp_path / "full.jsonl").state == "intact"
    assert Session(tmp_path / "full.jsonl").log[0].text == "Where is parcel 8841?"
