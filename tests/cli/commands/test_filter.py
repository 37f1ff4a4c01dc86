"""`handrail filter`: what would cross."""

import json
from pathlib import Path

import pytest

from cli.conftest import Run, one_line
from handrail.filters import Message, from_descriptor, last_n, parse, seal
from handrail.filters.repairs import breaches

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Where is 8841?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"n": 8841}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "Porto"},
    {"role": "assistant", "content": "In Porto.", "reasoning_content": "Say where."},
    {"role": "user", "content": "Thanks. And when?"},
]


@pytest.fixture
def chat(tmp_path: Path) -> str:
    (tmp_path / "chat.json").write_text(json.dumps(CHAT))
    return "chat.json"


def decoded(messages: object) -> list[Message]:
    import msgspec

    return msgspec.convert(messages, list[Message])


def test_the_messages_that_would_cross_are_shown_as_they_are(handrail: Run, chat: str) -> None:
    outcome = handrail("filter", chat, "--filter", "last_n(3) | strip_tool_calls")
    assert outcome.returncode == 0
    head, *shown = outcome.stdout.splitlines()
    assert head.startswith("chat.json: 3 of 6 messages in the transcript would cross compose(last_n(n=3")
    assert shown == ["system: Be brief.", "assistant: In Porto.", "user: Thanks. And when?"]


def test_explain_says_what_each_step_did_and_why(handrail: Run, chat: str) -> None:
    outcome = handrail("filter", chat, "--filter", "last_n(2) | strip_tool_calls", "--explain")
    assert "last_n(n=2, keep_user=False): 6 -> 3 messages" in outcome.stdout
    assert "outside the last 2 messages" in outcome.stdout


def test_explain_says_what_the_seal_did_as_well(handrail_here: Run, chat: str) -> None:
    outcome = handrail_here("filter", chat, "--filter", "full", "--explain")
    assert "seal: 6 -> 6 messages" in outcome.stdout
    assert "changed assistant" in outcome.stdout


def test_as_json_there_are_the_messages_the_filter_and_the_report(handrail: Run, chat: str) -> None:
    outcome = handrail("filter", chat, "--filter", "last_n(3)", "--json", "--explain")
    said = json.loads(outcome.stdout)
    assert (said["messages_before"], said["messages_after"]) == (6, 3)
    assert from_descriptor(said["filter"]) == seal(last_n(3))
    assert [message.role for message in decoded(said["messages"])] == ["system", "assistant", "user"]
    assert said["report"]["steps"][0]["messages_in"] == 6


def test_without_a_filter_it_is_the_default_one_of_every_handoff(handrail_here: Run, chat: str) -> None:
    said = json.loads(handrail_here("filter", chat, "--json").stdout)
    assert from_descriptor(said["filter"]) == seal(parse("default_handoff_filter"))


def test_standard_input_is_a_file_like_any_other(handrail: Run) -> None:
    outcome = handrail("filter", "-", "--filter", "last_user", input=json.dumps(CHAT))
    assert outcome.stdout.splitlines()[1:] == ["system: Be brief.", "user: Thanks. And when?"]


def test_of_a_session_the_view_of_an_agent_is_filtered(handrail: Run, desk_session: Path) -> None:
    outcome = handrail("filter", desk_session, "--agent", "billing", "--filter", "full", "--json")
    said = json.loads(outcome.stdout)
    assert said["of"] == "the view of billing"
    assert breaches(decoded(said["messages"])) == []
    assert "transfer_to" not in outcome.stdout


def test_of_a_session_it_is_the_view_of_whoever_has_the_conversation(handrail_here: Run, desk_session: Path) -> None:
    outcome = handrail_here("filter", desk_session, "--filter", "last_user")
    assert "in the view of triage would cross" in outcome.stdout
    assert outcome.stdout.splitlines()[-1] == "user: When are you open on Sunday?"


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("last_n(10) | strip_tools", "column 14: no filter is called 'strip_tools'; did you mean 'strip_tool_calls'?"),
        ("last_n(0)", "column 1: last_n: n is a whole number of messages, at least 1, not 0"),
        ("last_n(", "column 8"),
        ("last_n(3) |", "column 12: the name of a filter is expected"),
        ("last_n(size=3)", "column 1"),
        ("__import__('os')", "no filter is called '__import__'"),
        ("", "column 1: the name of a filter is expected"),
    ],
)
def test_a_mistake_in_the_expression_is_shown_with_its_column(
    handrail_here: Run, chat: str, expression: str, said: str
) -> None:
    assert said in one_line(handrail_here("filter", chat, "--filter", expression), 2)


def test_a_filter_that_leaves_nothing_to_answer_says_what_would(handrail_here: Run, chat: str) -> None:
    said = one_line(handrail_here("filter", chat, "--filter", "none"), 1)
    assert "nothing is left to hand over" in said
    assert "keep a user message" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["desk.session.jsonl", "--agent", "bob"], "no agent here is called 'bob'; possible: billing, triage"),
        (["desk.session.jsonl", "--pick", "1"], "is one session, so there is nothing to --pick"),
        (["chat.json", "--agent", "bob"], "is no Handrail session, so it has no views"),
        (["chat.json", "--pick", "2"], "holds 1 transcripts, and there is no number 2"),
    ],
)
def test_a_choice_that_the_file_does_not_have_says_what_it_has(
    handrail_here: Run, chat: str, desk_session: Path, arguments: list[str], said: str
) -> None:
    assert said in one_line(handrail_here("filter", *arguments), 2)
