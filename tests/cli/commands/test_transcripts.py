"""`handrail import`, `export` and `filter` on real transcripts, and on what is none."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Run, one_line
from cli.refusals import obey_permissions
from handrail.sessions import Session, verify

LOGS = "corpus/chat-completions/openhands-sdk-llm-logs"
SEVERAL = "corpus/chat-completions/tau-bench"


def files(shared: Path, folder: str) -> list[Path]:
    found = sorted((shared / folder).glob("*.json"))
    assert found
    return found


def as_sent(message: dict[str, Any]) -> dict[str, Any]:
    """A message without what an import lists as not kept: null fields, and how a single text is written."""
    kept = {name: value for name, value in message.items() if value is not None}
    content = kept.get("content")
    if (
        isinstance(content, list)
        and [part["type"] for part in content] == ["text"]
        and set(content[0]) == {"type", "text"}
    ):
        kept["content"] = content[0]["text"]
    return kept


def test_a_request_log_goes_in_and_out_with_its_answer(handrail: Run, shared: Path) -> None:
    for file in files(shared, LOGS):
        outcome = handrail("import", file, "-o", f"{file.stem}.jsonl", "--json")
        assert outcome.returncode == 0, outcome.stderr
        log = json.loads(file.read_bytes())
        expected = [*log["messages"], log["response"]["choices"][0]["message"]]
        assert json.loads(outcome.stdout)["messages"] == len(expected)
        back = json.loads(handrail("export", f"{file.stem}.jsonl", "--to", "openai-chat").stdout)
        given = back if isinstance(back, list) else [*back["messages"], back["response"]["choices"][0]["message"]]
        assert [as_sent(message) for message in given] == [as_sent(message) for message in expected]


def test_what_stands_beside_the_messages_is_kept(handrail: Run, shared: Path, tmp_path: Path) -> None:
    for file in files(shared, LOGS):
        handrail("import", file, "-o", "log.session.jsonl")
        about = Session(tmp_path / "log.session.jsonl").about
        assert about is not None
        kept = json.loads(bytes(about.beside))
        assert set(json.loads(file.read_bytes())) - {"messages"} <= set(kept)
        (tmp_path / "log.session.jsonl").unlink()


def test_a_file_of_several_transcripts_becomes_a_folder(handrail: Run, shared: Path, tmp_path: Path) -> None:
    for file in files(shared, SEVERAL):
        transcripts = json.loads(file.read_bytes())
        said = [json.loads(line) for line in handrail("import", file, "--json").stdout.splitlines()]
        assert [each["messages"] for each in said] == [len(each["traj"]) for each in transcripts]
        for each, transcript in zip(said, transcripts, strict=True):
            assert verify(tmp_path / each["session"]).state == "intact"
            back = json.loads(handrail("export", each["session"], "--to", "openai-chat").stdout)
            given = back if isinstance(back, list) else back.get("traj", back.get("messages"))
            assert [as_sent(message) for message in given] == [as_sent(message) for message in transcript["traj"]]


def test_every_transcript_of_a_file_can_be_filtered(handrail_here: Run, shared: Path) -> None:
    for file in files(shared, SEVERAL):
        count = len(json.loads(file.read_bytes()))
        assert f"pass --pick 1 to {count}" in one_line(handrail_here("filter", file), 2)
        outcome = handrail_here(
            "filter", file, "--pick", count, "--filter", "last_n(5) | strip_tool_calls", "--explain"
        )
        assert f", transcript {count} of {count}: " in outcome.stdout


def test_every_request_log_can_be_filtered(handrail: Run, shared: Path) -> None:
    for file in files(shared, LOGS):
        said = json.loads(handrail("filter", file, "--filter", "last_n(4, keep_user=true)", "--json").stdout)
        assert 0 < said["messages_after"] <= 6


@pytest.mark.parametrize(
    ("file", "what"),
    [
        ("anthropic-messages/messages_tool_with_thinking.json", "an Anthropic Messages body"),
        ("claude-code/short-conversation.jsonl", "a Claude Code session"),
        ("responses/items_tool_use.json", "Responses API items"),
        ("pydantic-ai-history/multiple_parallel_tool_calls.json", "a Pydantic AI message history"),
        ("gemini-adk/contents_instructions_only_with_tool_calls.json", "a Gemini request"),
        ("responses/test_responses_tool_use.yaml", "a YAML file"),
        ("langchain/langgraph-python_messages.json", "a LangChain message list"),
        ("chat-completions/swe-agent/ctf_katy.traj", "a SWE-agent trajectory"),
    ],
)
def test_another_format_is_refused_by_naming_what_it_is(
    handrail_here: Run, shared: Path, tmp_path: Path, file: str, what: str
) -> None:
    for command in ("import", "filter"):
        said = one_line(handrail_here(command, shared / "corpus" / file), 2)
        assert "not OpenAI Chat Completions messages" in said
        assert what in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[]", "{}", '[{"role": "user"', '{"role": "user"}\n{"role": \n', "null"]
)
def test_what_is_no_transcript_is_refused_and_leaves_nothing(handrail_here: Run, tmp_path: Path, text: str) -> None:
    outcome = handrail_here("import", "-", input=text)
    assert "standard input: " in one_line(outcome, 2)
    assert list(tmp_path.iterdir()) == []


def test_an_import_overwrites_nothing(handrail_here: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"role": "user", "content": "Hello"}]')
    (tmp_path / "a.session.jsonl").write_text("mine\n")
    assert "there is a file already" in one_line(handrail_here("import", "a.json"), 2)
    assert (tmp_path / "a.session.jsonl").read_text() == "mine\n"


def test_a_session_is_not_imported_again(handrail_here: Run, desk_session: Path) -> None:
    assert "is a Handrail session already" in one_line(handrail_here("import", desk_session), 2)


def test_an_import_lists_what_was_not_kept_and_what_is_unlawful(handrail_here: Run, tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    chat = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    (tmp_path / "a.json").write_text(json.dumps(chat))
    outcome = handrail_here("import", "a.json", "--agent", "clerk")
    assert "kept as it was, though unlawful: P2, message 2" in outcome.stdout
    assert Session(tmp_path / "a.session.jsonl").history("clerk")[1].tool_calls[0].name == "look"


def test_an_export_is_a_sealed_copy(handrail: Run, desk_session: Path, tmp_path: Path) -> None:
    outcome = handrail("export", desk_session)
    assert outcome.stdout == f"desk.sealed.jsonl: a sealed copy of {desk_session}\n"
    verdict = verify(tmp_path / "desk.sealed.jsonl")
    assert (verdict.state, verdict.sealed) == ("intact", True)
    assert "there is a file already" in one_line(handrail("export", desk_session), 2)


def test_an_export_of_one_view_holds_that_view(handrail: Run, desk_session: Path) -> None:
    outcome = handrail("export", desk_session, "--to", "openai-chat", "--agent", "billing", "-o", "b.json", "--json")
    said = json.loads(outcome.stdout)
    assert said["written"] == "b.json"
    again = handrail("import", "b.json", "-o", "b.jsonl", "--json")
    assert json.loads(again.stdout)["messages"] == len(Session(desk_session).history("billing"))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--to", "telegram"], 2, "telegram: not a known format: known: openai-chat"),
        (["--agent", "billing"], 2, "--agent goes with --to openai-chat"),
        (["--to", "openai-chat", "--agent", "bob"], 2, "no agent here is called 'bob'"),
        (["--to", "openai-chat", "--json"], 2, "so it needs -o FILE"),
        (["-o", "closed/a.jsonl"], 1, "closed/a.jsonl: cannot be written to: Permission denied"),
        (["--to", "openai-chat", "-o", "closed/a.json"], 1, "closed/a.json: cannot be written to: Permission denied"),
    ],
)
def test_an_export_that_cannot_be_made_is_told_in_one_line(
    handrail_anew: Run, desk_session: Path, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "closed").mkdir(mode=0o555)
    outcome = handrail_anew("export", desk_session, *arguments, before=obey_permissions)
    assert said in one_line(outcome, code)
    assert outcome.stdout == ""
