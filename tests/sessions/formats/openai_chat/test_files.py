"""Files of Chat Completions messages."""

import json
from pathlib import Path

import pytest

from handrail.filters import assistant, user
from handrail.sessions import FormatError, Session, export_to, import_file, parse_file, to_openai_chat
from handrail.sessions.formats.openai_chat import OpenAIChat

HI = '{"role":"user","content":"Hi"}'
HO = '{"role":"assistant","content":"Ho"}'
CHOICES = f'[{{"index": 0, "message": {HO}}}, {{"index": 1}}]'
USAGE = '{"big": 12345678901234567890123, "part": 1e3}'
LOG = f'{{"messages": [{HI}], "cost": 0.10, "response": {{"id": "r", "choices": {CHOICES}, "usage": {USAGE}}}}}'


def parsed(path: Path, text: str) -> list[list[str]]:
    path.write_text(text)
    return [[message.text for message in transcript.messages] for transcript in parse_file(path)[1]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"[{HI},{HO}]", [["Hi", "Ho"]]),
        (f"\ufeff[{HI}]", [["Hi"]]),
        (HI, [["Hi"]]),
        (f"{HI}\n\n{HO}\n", [["Hi", "Ho"]]),
        (LOG, [["Hi", "Ho"]]),
        (f'{json.dumps(json.loads(LOG))}\n{{"messages":[{HI}]}}\n', [["Hi", "Ho"], ["Hi"]]),
        (f'[{{"traj":[{HI}],"reward":1.0}},{{"traj":[{HO}]}}]', [["Hi"], ["Ho"]]),
        (f'{{"messages":[{HI}],"response":null}}', [["Hi"]]),
        (f'{{"messages":[{HI}],"response":{{"error":"busy"}}}}', [["Hi"]]),
    ],
)
def test_every_layout_is_read(tmp_path: Path, text: str, said: list[list[str]]) -> None:
    assert parsed(tmp_path / "f", text) == said


@pytest.mark.parametrize("text", [LOG, f'{{"traj":[{HI},{HO}],"reward":1.0,"nested":{{"messages":[1]}}}}'])
def test_the_document_is_written_again_with_every_digit(tmp_path: Path, text: str) -> None:
    (tmp_path / "f.json").write_text(text)
    (path,) = import_file(tmp_path / "f.json", tmp_path / "s.jsonl")
    exported = export_to(path, "openai-chat")
    loose = [json.loads(each, parse_float=str, parse_int=str) for each in (exported.body, text)]
    assert loose[0] == loose[1]
    assert exported.losses == ()


def test_a_conversation_that_went_on_is_a_list_and_says_what_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(LOG)
    (path,) = import_file(tmp_path / "f.json", tmp_path / "s.jsonl")
    session = Session(path)
    assert session.about is not None
    exported = OpenAIChat().write((*session.history(), user("more", id="m1")), session.about)
    assert [each["content"] for each in json.loads(exported.body)] == ["Hi", "Ho", "more"]
    assert exported.losses == ("what stood beside the imported messages (messages, cost, response)",)


def test_losses_are_counted_and_speakers_are_told_apart() -> None:
    said = [user("a", pinned=True), assistant("b", agent="x"), user("c", pinned=True), assistant("d", agent="y")]
    assert to_openai_chat(said).losses == ("pinned mark (2)", "name of the agent that spoke (2)")


REFUSED = {
    "": "an empty file",
    "[]": "an empty list",
    "{}": "an empty object",
    "7": "JSON, but int",
    "hello": "neither JSON nor JSON lines",
    "interactions:\n- request: 1\n": "a YAML file (recorded HTTP traffic)",
    "a: 1\n": "a YAML file",
    f"[{HI},": "broken JSON",
    f"{HI}\n{{broken\n": "JSON lines of which line 2 is broken",
    '[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]': "an Anthropic Messages body",
    f'{{"messages":[{HI}],"tools":[{{"name":"f","input_schema":{{}}}}]}}': "an Anthropic Messages body",
    '[{"role":"user","content":"a"},{"type":"function_call","name":"f"}]': "a list of Responses API items",
    '{"timestamp":"t","type":"response_item","payload":{}}\n' * 2: "a Codex rollout",
    '{"parentUuid":null,"type":"user"}': "a Claude Code session",
    '{"contents":[{"parts":[]}]}': "a Gemini request",
    '[{"parts":[],"kind":"request"}]': "a Pydantic AI message history",
    '{"prev":"0","kind":"header"}': "a Handrail session",
    '{"messages":[]}': "an object whose list of messages is empty",
    '{"messages":[{"role":"user","content":"a"},{"role":"imp"}]}': "number 2 has the role 'imp'",
    '{"history":[1]}': "an object with the fields history",
}


@pytest.mark.parametrize("text", REFUSED)
def test_another_file_is_refused_by_what_it_is(tmp_path: Path, text: str) -> None:
    (tmp_path / "f").write_text(text)
    with pytest.raises(FormatError) as caught:
        parse_file(tmp_path / "f")
    assert caught.value.found.startswith(REFUSED[text]) or REFUSED[text] in caught.value.found
    assert str(caught.value).startswith(f"{tmp_path / 'f'}: not OpenAI Chat Completions messages: ")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    with pytest.raises(FormatError, match="not UTF-8"):
        parse_file(tmp_path / "f")


def test_deep_nesting_is_refused_and_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("[" * 200_000)
    with pytest.raises(FormatError):
        parse_file(tmp_path / "f")


def test_half_a_surrogate_pair_goes_in_and_out(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(r'[{"role":"user","content":"ok \ud83d end \ud83c\udf78 \udcb0 é 北"}]')
    (path,) = import_file(tmp_path / "f", tmp_path / "s.jsonl")
    assert Session(path).history()[0].text == "ok \ufffd end 🍸 \ufffd é 北"
    exported = export_to(path, "openai-chat")
    (tmp_path / "again").write_bytes(exported.body)
    (again,) = import_file(tmp_path / "again", tmp_path / "again.jsonl")
    assert Session(again).history() == Session(path).history()
    assert exported.losses == ("on import: half of a surrogate pair written as U+FFFD (1)",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}]', "number 2 has the role 'robot'"),
        ('[{"role": "user", "content": "a"}, {"role": ["user"], "content": "b"}]', "number 2 has the role"),
        ('{"messages": [{"role": "user", "content": "a"}, {"role": "user"}]}', "number 2 has no content"),
        ('{"role": "user", "content": "a"}\n{"role": "user", "content": {}}\n', "number 2 has content that is neither"),
    ],
)
def test_a_message_that_is_none_is_named_by_its_number(text: str, said: str) -> None:
    with pytest.raises(FormatError) as refused:
        OpenAIChat().parse(text.encode(), "chat.json")
    assert said in str(refused.value)
