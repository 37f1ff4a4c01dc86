"""Reading what was written gives it back, and nothing to report."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.filters import Filter, Message, default_handoff_filter, full, last_n, last_user, strip_tool_calls, user
from handrail.sessions import Journal, Session, Unknown, export, read, verify
from handrail.sessions.codec import decode, encode
from handrail.sessions.formats.openai_chat import decode_message, encode_message
from handrail.sessions.records import (
    AgentRecord,
    AnyRecord,
    AuditRecord,
    BudgetRecord,
    HandoffRecord,
    MessageRecord,
    ModelCallRecord,
    StateRecord,
    SubagentRecord,
    ToolCallRecord,
    ToolResultRecord,
    TurnRecord,
    ViewRecord,
)
from handrail.sessions.usages import Spent, Usage
from laws.strategies import messages, texts
from sessions.conversations import Conversation

text = texts.map(lambda each: each.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
usages = st.builds(Usage, st.integers(0, 10**9), st.integers(0, 10**9))
spent = st.builds(
    Spent, st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), usages, st.none() | st.decimals(0, 99, places=6)
)
crossed = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)) | messages, max_size=3).map(tuple)
edges = {
    "path": text,
    "source": text,
    "target": text,
    "target_path": text,
    "crossed": crossed,
    "step": st.integers(0, 99),
}
unknown = st.dictionaries(text, st.none() | st.booleans() | st.integers() | text, max_size=3).map(
    lambda fields: Unknown("decision", json.dumps({"kind": "decision"} | fields | {"kind": "decision"}).encode())
)
values = st.dictionaries(text, st.none() | st.booleans() | st.integers() | text, max_size=3).map(
    lambda given: msgspec.Raw(json.dumps(given).encode())
)
records: st.SearchStrategy[AnyRecord] = st.one_of(
    st.builds(AgentRecord, name=text, tools=st.lists(text, max_size=2).map(tuple)),
    st.builds(MessageRecord, path=text, message=messages, aside=st.booleans()),
    st.builds(ToolResultRecord, path=text, message=messages),
    st.builds(ToolCallRecord, path=text, call_id=text, name=text, arguments=text),
    st.builds(TurnRecord, path=text, run=text, event=st.sampled_from(["start", "end"]), usage=usages),
    st.builds(ModelCallRecord, path=text, step=st.integers(0, 99), usage=usages, error=st.none() | text),
    st.builds(ViewRecord, path=text, removed=st.lists(text, max_size=2).map(tuple), reason=text),
    st.builds(BudgetRecord, path=text, run=text, spent=spent),
    st.builds(StateRecord, path=text, layer=text, scope=st.sampled_from(["turn", "session"]), values=values),
    st.builds(AuditRecord, path=text, name=text, call_id=text, at=st.integers(0, 10**13), data=values),
    st.builds(HandoffRecord, **edges),
    st.builds(SubagentRecord, event=st.sampled_from(["start", "end"]), part=st.integers(0, 3), answer=text, **edges),
    unknown,
)


@given(records)
def test_a_record_of_any_kind_comes_back_from_its_line(record: AnyRecord) -> None:
    assert decode(encode(record)) == record


@settings(max_examples=60)
@given(st.lists(st.lists(records, max_size=4), max_size=6))
def test_a_session_reads_as_it_was_written_and_has_nothing_to_report(batches: list[list[AnyRecord]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        with Journal.open(path, fsync="never") as journal:
            for batch in batches:
                journal.append(*batch)
        back = [encode(record) for record in read(path).records()][1:]
        given_lines = [encode(record) for batch in batches for record in batch]
        bare = [json.loads(line) for line in back]
        for line in bare:
            del line["prev"]
            line.pop("batch", None)
        assert bare == [json.loads(line) for line in given_lines]
        sealed = export(path, Path(folder) / "sealed.jsonl")
        for each in (path, sealed):
            verdict = verify(each, integrity_only=True)
            assert (verdict.state, verdict.torn) == ("intact", None)
        assert verify(sealed, integrity_only=True).sealed


AGENTS = ("triage", "billing", "sales")
FILTERS: list[Filter] = [full(), last_n(1), last_n(3), last_user(), strip_tool_calls(), default_handoff_filter()]
steps = st.one_of(
    st.tuples(st.just("say"), texts),
    st.tuples(st.just("tools"), st.booleans()),
    st.tuples(st.just("ask"), st.sampled_from(FILTERS)),
    st.tuples(st.just("hand over"), st.sampled_from(AGENTS), st.sampled_from(FILTERS), st.booleans()),
)


def walk(path: Path, walked: list[tuple[object, ...]]) -> None:
    """Walk on from wherever the session stands, and find every view again as it was left."""
    with Conversation(path) as talk:
        active = talk.session.active_agent or "triage"
        talk.say(active, user("I need help."))
        for step in walked:
            match step:
                case ("say", str(said)):
                    talk.say(active, user(said or "Well?"))
                case ("tools", bool(backwards)):
                    talk.use_tool(active, "look", "check", "note", backwards=backwards)
                case ("ask", Filter() as chosen):
                    talk.ask(active, "research", chosen, "What is it?", "It is blue.")
                case ("hand over", str(target), Filter() as chosen, bool(beside)) if target != active:
                    talk.hand_over(active, target, chosen, beside="note" if beside else None)
                    active = target
                case _:
                    pass
        assert Session(path).views == talk.views


@settings(max_examples=60)
@given(st.lists(steps, max_size=12), st.lists(steps, max_size=6))
def test_any_walk_of_handoffs_gone_on_with_from_its_file_verifies(
    first: list[tuple[object, ...]], second: list[tuple[object, ...]]
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        walk(path, first)
        walk(path, second)
        verdict = verify(path)
        assert verdict.state == "intact", str(verdict)


AGAIN = """
import sys
from pathlib import Path
from handrail.filters import default_handoff_filter, user
from sessions.conversations import Conversation
with Conversation(Path(sys.argv[1])) as talk:
    assert talk.session.active_agent == "billing"
    talk.say("billing", user("And the other one?"))
    talk.hand_over("billing", "triage", default_handoff_filter())
"""


def test_a_walk_gone_on_with_in_another_process_verifies(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "s.jsonl"
    walk(path, [("tools", True), ("hand over", "billing", full(), True)])
    command = [sys.executable, "-c", AGAIN, str(path)]
    subprocess.run(command, check=True, cwd=root / "tests")
    session = Session(path)
    assert (session.active_agent, verify(path).state, verify(path).handoffs) == ("triage", "intact", 2)
    assert [message.text for message in session.history("triage")][-1] == "And the other one?"


@given(messages)
def test_what_was_once_written_for_chat_completions_reads_and_writes_the_same_for_ever(message: Message) -> None:
    once = decode_message(encode_message(message))
    told: list[str] = []
    twice = decode_message(encode_message(once), told.append)
    assert (encode_message(twice), told) == (encode_message(once), [])
    assert json.loads(encode_message(twice))["role"] == message.role
