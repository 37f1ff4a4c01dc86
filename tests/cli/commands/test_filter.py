"""`handrail filter`: what would cross."""

import json
from pathlib import Path

import pytest

from cli.conftest import Run, one_line
from handrail.agent import Agent, ScriptedModel, handoff
from handrail.filters import Message, call, from_descriptor, last_n, parse, seal, user
from handrail.filters.repairs import breaches

OWN = """
from handrail.filters import Filter, Messages, constructor, filter_kind


@filter_kind("own/only-last")
class OnlyLast(Filter, frozen=True):
    def __call__(self, history: Messages) -> Messages:
        return tuple(history[-1:])


@constructor
def only_last() -> OnlyLast:
    return OnlyLast()
"""
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
    assert head.startswith("chat.json, the transcript: 3 of 6 messages would cross, 0 made: compose(last_n(n=3")
    assert [line.partition(" [")[0] for line in shown] == ["system", "assistant", "user"]
    assert [line.partition("]: ")[2] for line in shown] == ["Be brief.", "In Porto.", "Thanks. And when?"]


def test_a_long_system_prompt_is_cut_short_unless_it_is_wanted_whole(handrail_here: Run, tmp_path: Path) -> None:
    prompt = {"role": "system", "content": "Be brief. " * 50}
    (tmp_path / "chat.json").write_text(json.dumps([prompt, {"role": "user", "content": "Hi"}]))
    assert len(handrail_here("filter", "chat.json", "--filter", "full").stdout.splitlines()[1]) < 150
    assert "Be brief. " * 49 in handrail_here("filter", "chat.json", "--filter", "full", "--full").stdout


def test_explain_says_what_each_step_did_and_why(handrail: Run, chat: str) -> None:
    outcome = handrail("filter", chat, "--filter", "last_n(2) | strip_tool_calls", "--explain")
    assert "last_n(n=2, keep_user=False): 6 -> 3 messages" in outcome.stdout
    assert "outside the last 2 messages" in outcome.stdout


def test_explain_says_what_the_seal_did_as_well(handrail_here: Run, chat: str) -> None:
    outcome = handrail_here("filter", chat, "--filter", "full", "--explain")
    assert "strip_reasoning(): 6 -> 6 messages" in outcome.stdout
    assert "“assistant: In Porto.”" in outcome.stdout
    assert "reasoning stays with the agent that thought it" in outcome.stdout


def test_a_call_without_its_result_is_named_with_the_law(handrail_here: Run, tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text(json.dumps([CHAT[1], CHAT[2], CHAT[5]]))
    outcome = handrail_here("filter", "cut.json", "--filter", "full", "--explain")
    assert "repair: 3 -> 2 messages" in outcome.stdout
    assert "call 'c1' of track has no result (P2)" in outcome.stdout


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
    assert [line.partition("]: ")[2] for line in outcome.stdout.splitlines()[1:]] == ["Be brief.", "Thanks. And when?"]


def test_of_a_session_the_view_of_an_agent_is_filtered(handrail: Run, desk_session: Path) -> None:
    outcome = handrail("filter", desk_session, "--agent", "billing", "--filter", "full", "--json")
    said = json.loads(outcome.stdout)
    assert said["of"] == "the view of billing"
    assert breaches(decoded(said["messages"])) == []
    assert "transfer_to" not in outcome.stdout


def test_of_a_session_it_is_the_view_of_whoever_has_the_conversation(handrail_here: Run, desk_session: Path) -> None:
    outcome = handrail_here("filter", desk_session, "--filter", "last_user")
    assert ", the view of triage: 1 of " in outcome.stdout
    assert " messages would cross, 0 made: last_user()" in outcome.stdout
    assert outcome.stdout.splitlines()[-1].endswith("]: When are you open on Sunday?")


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


def test_what_left_nothing_is_explained_all_the_same(handrail_here: Run, chat: str) -> None:
    outcome = handrail_here("filter", chat, "--filter", "none", "--explain")
    assert "nothing is left to hand over" in one_line(outcome, 1)
    assert "none(): 6 -> 0 messages" in outcome.stdout


def test_a_reason_stands_in_where_no_user_message_is_left(handrail_here: Run, chat: str) -> None:
    outcome = handrail_here("filter", chat, "--filter", "none", "--reason", "asks for a parcel", "--explain")
    assert outcome.returncode == 0
    assert "the handoff's reason, as no user message is left" in outcome.stdout
    assert outcome.stdout.splitlines()[-1].endswith("]: asks for a parcel")


def test_a_filter_of_ones_own_is_known_once_its_module_is_imported(handrail: Run, chat: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    outcome = handrail("filter", chat, "--import", "own", "--filter", "only_last | strip_tool_calls")
    assert outcome.returncode == 0, outcome.stderr
    assert "would cross, 0 made: compose(own/only-last(), strip_tool_calls()" in outcome.stdout
    assert "no module elsewhere" in one_line(handrail("filter", chat, "--import", "elsewhere"), 2)


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


def test_the_table_tells_what_was_kept_and_what_it_saves_in_tokens(handrail: Run, chat: str) -> None:
    outcome = handrail("filter", chat, "--filter", "last_n(2)", "--explain", "--counter", "estimate@1")
    step = next(line for line in outcome.stdout.splitlines() if "│ last_n(n=2" in line)
    assert [cell.strip() for cell in step.split("│")][3:5] == ["kept", "3 messages"]
    assert "tokens by estimate@1" in outcome.stdout
    said = json.loads(handrail("filter", chat, "--filter", "last_n(2)", "--explain", "--json").stdout)
    assert said["report"]["steps"][0]["tokens_in"] > said["report"]["steps"][0]["tokens_out"]


def test_many_messages_that_a_step_treats_alike_are_one_row(handrail_here: Run, tmp_path: Path) -> None:
    talk = [{"role": "user", "content": f"Line {number}"} for number in range(50)]
    (tmp_path / "long.json").write_text(json.dumps(talk))
    outcome = handrail_here("filter", "long.json", "--filter", "last_n(3)", "--explain", "--counter", "estimate@1")
    assert "47 messages, from " in outcome.stdout
    assert len(outcome.stdout.splitlines()) < 20


def test_a_counter_that_is_not_here_is_one_line(handrail_here: Run, chat: str) -> None:
    assert "known: " in one_line(handrail_here("filter", chat, "--explain", "--counter", "nobody"), 2)


def test_the_recorded_handoffs_between_two_agents_are_shown_each_with_its_filter(
    handrail: Run, desk_session: Path
) -> None:
    outcome = handrail("filter", desk_session, "--from", "triage", "--to", "billing", "--explain")
    assert outcome.returncode == 0, outcome.stderr
    heads = [line for line in outcome.stdout.splitlines() if line.startswith("handoff ")]
    assert len(heads) == 1
    head = "handoff 1, step 1, triage -> billing: 4 of 6 messages crossed, 0 made: compose(last_n(n=6"
    assert heads[0].startswith(head)
    assert "tool calls and their results do not cross" in outcome.stdout


def test_another_filter_in_its_place_shows_what_would_have_crossed(handrail_here: Run, desk_session: Path) -> None:
    arguments = ("filter", desk_session, "--from", "triage", "--filter", "last_user", "--json", "--explain")
    said = json.loads(handrail_here(*arguments).stdout)
    assert (said["from"], said["to"], said["handoff"], said["recorded"]) == ("triage", "billing", 1, False)
    assert [message.text for message in decoded(said["messages"])] == ["Was I charged twice on invoice 1042?"]
    assert from_descriptor(said["filter"]) == seal(parse("last_user"))
    assert said["report"]["steps"][0]["step"] == "last_user()"


def test_a_recorded_handoff_that_another_filter_leaves_nothing_of_is_explained_all_the_same(
    handrail_here: Run, tmp_path: Path
) -> None:
    billing = Agent("billing", model=ScriptedModel("Yes."))
    model = ScriptedModel(call("transfer_to_billing", call_id="h1"))
    triage = Agent("triage", model=model, handoffs=[handoff(billing)])
    triage.run_sync("Twice?", session=str(tmp_path / "a.jsonl"))
    outcome = handrail_here("filter", "a.jsonl", "--to", "billing", "--filter", "none()", "--explain")
    assert outcome.returncode == 1
    assert "0 of 1 message would cross, 0 made: none()" in outcome.stdout
    assert "nothing crosses but the reason or the input" in outcome.stdout
    assert "or the filter kept none of them" in outcome.stderr


def test_a_long_summary_is_cut_in_heads_and_not_in_json(handrail: Run, chat: str) -> None:
    arguments = ("filter", chat, "--filter", f"summary('{'word ' * 400}')", "--explain")
    head, *table = handrail(*arguments).stdout.splitlines()
    assert len(head) < 400
    assert max(map(len, [line for line in table if "->" in line])) < 600
    assert "word " * 399 in handrail(*arguments, "--json").stdout


def test_the_messages_of_a_recorded_handoff_are_those_that_crossed(handrail_here: Run, desk_session: Path) -> None:
    lines = handrail_here("filter", desk_session, "--to", "research", "--json").stdout.splitlines()
    said = json.loads(lines[0])
    assert (len(lines), said["kind"], said["recorded"], said["problem"]) == (1, "subagent", True, "")
    assert decoded(said["messages"])[-1].text == "What is the rule for a double charge?"


def test_a_recorded_filter_that_is_only_code_still_shows_what_crossed(handrail_here: Run, tmp_path: Path) -> None:
    billing = Agent("billing", model=ScriptedModel("Yes."))
    model = ScriptedModel(call("transfer_to_billing", call_id="h1"))
    triage = Agent("triage", model=model, handoffs=[handoff(billing, filter=lambda history: history[-1:])])
    triage.run_sync([user("Hello."), user("Twice?")], session=str(tmp_path / "a.jsonl"))
    outcome = handrail_here("filter", "a.jsonl", "--from", "triage", "--explain")
    assert outcome.returncode == 1
    assert "the filter that left it out cannot run here" in outcome.stdout
    assert "]: Twice?" in outcome.stdout
    assert "an anonymous function is not registered" in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["desk.session.jsonl", "--from", "bob"], "no handoff bob -> anyone; those there are: triage -> billing, "),
        (["chat.json", "--to", "bob"], "is no Handrail session, so it has no handoffs"),
        (["desk.session.jsonl", "--to", "billing", "--agent", "triage"], "leave --agent, --pick and --reason out"),
        (["desk.session.jsonl", "--to", "billing", "--filter", "last_m"], "did you mean 'last_n'"),
    ],
)
def test_a_handoff_that_is_not_recorded_says_which_are(
    handrail_here: Run, chat: str, desk_session: Path, arguments: list[str], said: str
) -> None:
    assert said in one_line(handrail_here("filter", *arguments), 2)
