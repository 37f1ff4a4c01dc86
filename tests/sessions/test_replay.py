"""Checking a session: every line, and every boundary again."""

import os
import tracemalloc
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from handrail.filters import (
    Filter,
    History,
    Message,
    assistant,
    compose,
    custom,
    custom_filter,
    default_handoff_filter,
    digest,
    full,
    last_n,
    last_user,
    strip_tool_calls,
    tool_result,
    user,
)
from handrail.sessions import (
    DamagedSession,
    HandoffRecord,
    Journal,
    MessageRecord,
    NotASession,
    Session,
    Unknown,
    Verdict,
    crossings,
    export,
    read,
    verify,
)
from handrail.sessions.records import AnyRecord, Footer, Header
from sessions.conversations import Conversation, put

TOGETHER = 1 << 16
"""After so many bytes the line that is begun is the last of those that are checked together."""


@custom_filter("sessions-test/last-two")
def last_two(history: History) -> tuple[Message, ...]:
    return tuple(history[-2:])


def desk(path: Path, filter: Filter | None = None) -> Path:
    """Three handoffs among two agents, and a sub-agent."""
    with Conversation(path) as talk:
        talk.say("triage", user("I was charged twice."))
        talk.use_tool("triage", "look", "check", backwards=True)
        talk.hand_over("triage", "billing", filter or default_handoff_filter(), beside="note")
        talk.say("billing", assistant("Which one?", agent="billing"))
        talk.ask("billing", "research", full(), "Look it up.", "Twice indeed.")
        talk.hand_over("billing", "triage", compose(last_n(4), strip_tool_calls()))
        talk.say("triage", user("And now?"))
        talk.hand_over("triage", "billing", full())
    return path


def rewritten(path: Path, change: Callable[[AnyRecord], AnyRecord]) -> Verdict:
    """The verdict on the same records with a change, in a chain of their own."""
    made = path.with_name("rewritten.jsonl")
    made.unlink(missing_ok=True)
    with Journal.create(made, fsync="never") as journal:
        journal.append(*[change(record) for record in read(path).records() if not isinstance(record, Header)])
    return verify(made)


def test_an_intact_session_verifies_every_boundary(tmp_path: Path) -> None:
    verdict = verify(desk(tmp_path / "s"))
    assert (verdict.state, verdict.ok, verdict.sealed, verdict.handoffs) == ("intact", True, False, 4)
    assert str(verdict) == "intact, not sealed"


def test_a_sealed_copy_verifies_as_sealed(tmp_path: Path) -> None:
    verdict = verify(export(desk(tmp_path / "s"), tmp_path / "sealed"))
    assert (verdict.state, verdict.sealed) == ("intact", True)


def test_one_changed_byte_anywhere_is_never_intact(tmp_path: Path) -> None:
    data = export(desk(tmp_path / "s"), tmp_path / "sealed").read_bytes()
    changed = tmp_path / "changed"
    for place in range(200, len(data) - 1, 97):
        put(changed, data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        line = data[:place].count(b"\n") + 1
        verdict = verify(changed, integrity_only=True)
        assert verdict.state in ("damaged", "tampered")
        assert verdict.line is not None
        assert abs(verdict.line - line) <= 1


def test_a_missing_line_and_a_moved_line_are_tampering(tmp_path: Path) -> None:
    lines = desk(tmp_path / "s").read_bytes().splitlines(keepends=True)
    changed = tmp_path / "changed"
    for made in ([*lines[:4], *lines[5:]], [*lines[:4], lines[5], lines[4], *lines[6:]]):
        changed.write_bytes(b"".join(made))
        verdict = verify(changed)
        assert (verdict.state, verdict.ok) == ("tampered", False)
        assert verdict.line in (4, 5)


def test_a_sealed_copy_cut_at_a_line_is_not_sealed_any_more(tmp_path: Path) -> None:
    sealed = export(desk(tmp_path / "s"), tmp_path / "sealed")
    lines = sealed.read_bytes().splitlines(keepends=True)
    sealed.write_bytes(b"".join(lines[:-1]))
    assert (verify(sealed).state, verify(sealed).sealed) == ("intact", False)
    sealed.write_bytes(b"".join(lines[:-2] + lines[-1:]))
    assert verify(sealed).state == "tampered"


@pytest.mark.parametrize("field", ["counts", "head"])
def test_a_footer_that_does_not_fit_is_tampering(tmp_path: Path, field: str) -> None:
    sealed = export(desk(tmp_path / "s"), tmp_path / "sealed")
    footer = list(read(sealed).records())[-1]
    assert isinstance(footer, Footer)
    old, new = (
        (f'"message":{footer.counts["message"]}', '"message":1')
        if field == "counts"
        else (f'"head":"{footer.head}"', f'"head":"{"0" * 64}"')
    )
    sealed.write_text(sealed.read_text().replace(old, new))
    assert (verify(sealed).state, verify(sealed).line) == ("tampered", sum(1 for _ in read(sealed)))


def test_a_broken_line_is_damage_with_its_number(tmp_path: Path) -> None:
    path = desk(tmp_path / "s")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], b"{broken\n", *lines[6:]]))
    verdict = verify(path)
    assert (verdict.state, verdict.line) == ("damaged", 7)
    assert "it is not JSON" in str(verdict)


WRONG: dict[str, tuple[Callable[[bytes], bytes], str, dict[str, int]]] = {
    "no record": (lambda line: b"{broken", "damaged", {}),
    "another link": (lambda line: line.replace(b'{"prev":"', b'{"prev":"0', 1), "tampered", {}),
    "two links": (lambda line: line[:-1] + b',"prev":"%b"}' % (b"0" * 64), "tampered", {}),
    "a batch's end": (lambda line: line[:75] + b'"batch":-1,' + line[75:], "tampered", {}),
    "other words": (lambda line: line.replace(b"Word", b"Ward"), "tampered", {"message": 1}),
    "another kind": (lambda line: line.replace(b'"message"', b'"massage"', 1), "tampered", {"massage": 1}),
}
"""What a line is made to be, the state that this leads to, and what is still counted: only the next line tells of
some."""


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("line", [3, 120, 400, 600])
def test_what_is_wrong_in_a_long_session_is_told_with_its_line_and_what_stood_before_it(
    tmp_path: Path, wrong: str, line: int
) -> None:
    path = tmp_path / "s"
    with Journal.create(path, fsync="never") as journal:
        for number in range(600):
            journal.append(MessageRecord(path="desk", message=user(f"Word {number}. " * 20, id=f"m{number}")))
    change, state, counted = WRONG[wrong]
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[: line - 1], change(lines[line - 1]), *lines[line:], b""]))
    for integrity_only in (True, False):
        verdict = verify(path, integrity_only=integrity_only)
        assert (verdict.state, verdict.line) == (state, line)
        assert verdict.counts == Counter({"header": 1, "message": line - 2}) + Counter(counted)


@pytest.mark.parametrize("beyond", [False, True])
def test_a_second_header_is_damage_wherever_the_lines_that_are_read_together_begin(
    tmp_path: Path, beyond: bool
) -> None:
    with Journal.create(tmp_path / "s", fsync="never") as journal:
        while journal.end < TOGETHER:
            journal.append(MessageRecord(path="desk", message=user("Word. " * 200)))
    header, *lines = (tmp_path / "s").read_bytes().splitlines()
    made = chain(tmp_path / "made", header, [*lines[: None if beyond else -2], header])
    verdict = verify(made)
    assert (verdict.state, verdict.line) == ("damaged", len(made.read_bytes().splitlines()))


@pytest.mark.parametrize("beyond", [False, True])
def test_a_record_after_the_footer_is_tampering_wherever_the_lines_that_are_read_together_begin(
    tmp_path: Path, beyond: bool
) -> None:
    def sealed(name: str, words: int) -> Path:
        with Journal.create(tmp_path / name, fsync="never") as journal:
            journal.append(MessageRecord(path="desk", message=user("w" * words)))
        return export(tmp_path / name, tmp_path / f"{name}-sealed")

    made = sealed("s", 1)
    footer = len(made.read_bytes().splitlines()[-1])
    if beyond:
        made = sealed("t", TOGETHER - made.stat().st_size + footer // 2)
        assert made.stat().st_size - footer < TOGETHER < made.stat().st_size
    # It goes on from what stands before the footer, as if that were not there.
    head = sha256(made.read_bytes().splitlines()[-2]).hexdigest().encode()
    with made.open("ab") as file:
        file.write(b'{"prev":"%b","kind":"turn","path":"a","run":"r","event":"start","at":1}\n' % head)
    assert verify(made).state == "tampered"


def test_what_stands_before_a_boundary_that_does_not_fit_is_counted_and_no_more(tmp_path: Path) -> None:
    def misfit(record: AnyRecord) -> AnyRecord:
        is_last = isinstance(record, HandoffRecord) and record.target == "triage"
        return msgspec.structs.replace(record, crossed=((0, 99),)) if is_last else record

    verdict = rewritten(desk(tmp_path / "s"), misfit)
    lines = list(read(tmp_path / "rewritten.jsonl").records())
    assert verdict.line is not None
    assert isinstance(lines[verdict.line - 1], HandoffRecord)
    assert verdict.state == "damaged"
    assert sum(verdict.counts.values()) == verdict.line - 1 < len(lines)


def test_a_torn_tail_is_told_and_the_rest_is_checked(tmp_path: Path) -> None:
    path = desk(tmp_path / "s")
    path.write_bytes(path.read_bytes()[:-9])
    verdict = verify(path)
    assert (verdict.state, verdict.ok) == ("torn", True)
    assert verdict.torn is not None


def test_a_changed_message_before_a_handoff_makes_its_view_drift(tmp_path: Path) -> None:
    def change(record: AnyRecord) -> AnyRecord:
        line = msgspec.json.encode(record).replace(b"charged twice", b"charged once")
        return msgspec.json.decode(line, type=type(record))

    verdict = rewritten(desk(tmp_path / "s"), change)
    assert verdict.state == "drifted"
    assert {drift.what for drift in verdict.drifts} == {"view"}
    assert verdict.drifts[0].handoff == 1


def test_a_filter_that_gives_something_else_now_is_a_drift_that_names_the_message(tmp_path: Path) -> None:
    def change(record: AnyRecord) -> AnyRecord:
        if isinstance(record, HandoffRecord) and record.target == "triage":
            return msgspec.structs.replace(
                record, filter={"kind": "seal", "version": 1, "steps": [last_n(1).descriptor]}
            )
        return record

    verdict = rewritten(desk(tmp_path / "s"), change)
    (drift,) = verdict.drifts
    assert (drift.handoff, drift.source, drift.target, drift.what) == (3, "billing", "triage", "seed")
    assert drift.message
    assert "handoff 3 (billing -> triage)" in str(verdict)


def test_a_message_that_crosses_with_another_value_names_the_field(tmp_path: Path) -> None:
    with Conversation(tmp_path / "s") as talk:
        talk.say("a", user("Hello"))
        talk.hand_over(
            "a",
            "b",
            custom(lambda history: [message.replace(pinned=True) for message in history], name="sessions-test/louder"),
        )
    custom_filter("sessions-test/louder")(
        lambda history: [message.replace(sensitivity="secret") for message in history]
    )
    (drift,) = verify(tmp_path / "s").drifts
    assert (drift.message, drift.field) == ("m1", "sensitivity")


def test_a_record_whose_parts_do_not_fit_each_other_is_a_drift(tmp_path: Path) -> None:
    def change(record: AnyRecord) -> AnyRecord:
        return msgspec.structs.replace(record, seed="0" * 64) if isinstance(record, HandoffRecord) else record

    assert {drift.what for drift in rewritten(desk(tmp_path / "s"), change).drifts} == {"record"}


def test_a_registered_function_runs_again_and_an_anonymous_one_is_told_apart(tmp_path: Path) -> None:
    assert verify(desk(tmp_path / "named", custom("sessions-test/last-two"))).state == "intact"
    verdict = verify(desk(tmp_path / "anonymous", custom(lambda history: history[-2:])))
    assert (verdict.state, verdict.ok, verdict.drifts) == ("not runnable", False, ())
    (missing,) = verdict.not_runnable
    assert (missing.handoff, missing.target) == (1, "billing")


def test_a_filter_of_an_unknown_kind_is_not_runnable(tmp_path: Path) -> None:
    def change(record: AnyRecord) -> AnyRecord:
        if isinstance(record, HandoffRecord):
            return msgspec.structs.replace(
                record, filter={"kind": "seal", "version": 1, "steps": [{"kind": "acme/x", "version": 3}]}
            )
        return record

    verdict = rewritten(desk(tmp_path / "s"), change)
    assert verdict.state == "not runnable"
    assert "acme/x" in verdict.not_runnable[0].missing


def test_integrity_alone_leaves_the_boundaries_out(tmp_path: Path) -> None:
    verdict = verify(desk(tmp_path / "s"), integrity_only=True)
    assert (verdict.state, verdict.handoffs) == ("intact", 0)
    assert verdict.counts == verify(tmp_path / "s").counts


def test_progress_reaches_the_end_of_the_file(tmp_path: Path) -> None:
    told: list[int] = []
    verify(desk(tmp_path / "s"), progress=told.append)
    assert told[-1] == (tmp_path / "s").stat().st_size


def test_only_boundaries_that_ran_again_are_counted_as_such(tmp_path: Path) -> None:
    verdict = verify(desk(tmp_path / "s", custom(lambda history: history[-2:])))
    assert (verdict.handoffs, verdict.run_again, len(verdict.not_runnable)) == (4, 3, 1)
    assert verdict.boundaries == "3 of 4 boundaries run again, 1 not runnable"
    assert verify(tmp_path / "s", integrity_only=True).boundaries == ""


def test_a_torn_end_is_told_beside_what_else_was_found(tmp_path: Path) -> None:
    path = desk(tmp_path / "s", custom(lambda history: history[-2:]))
    path.write_bytes(path.read_bytes() + b'{"prev":')
    verdict = verify(path)
    assert verdict.state == "not runnable"
    assert "\n  torn at its end: " in str(verdict)


def test_the_head_is_the_hash_of_the_last_line_and_tells_a_tail_that_was_cut(tmp_path: Path) -> None:
    with Conversation(tmp_path / "s") as talk:
        for words in ("One.", "Two.", "Three."):
            talk.say("triage", user(words))
    lines = (tmp_path / "s").read_bytes().splitlines(keepends=True)
    assert verify(tmp_path / "s").head == sha256(lines[-1][:-1]).hexdigest()
    (tmp_path / "s").write_bytes(b"".join(lines[:-1]))
    cut = verify(tmp_path / "s")
    assert (cut.state, cut.head) == ("intact", sha256(lines[-2][:-1]).hexdigest())
    (tmp_path / "s").write_bytes(b"".join([*lines[:-2], b"{}\n", lines[-1]]))
    assert verify(tmp_path / "s").head == ""


UNFIT: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "another type": lambda lines: changed(lines, b'"view_length":', b'"view_length":"x","step":'),
    "another role": lambda lines: changed(lines, b'"role":"user"', b'"role":5'),
    "a huge number": lambda lines: [
        *lines,
        b'{"kind":"turn","path":"a","run":"r","event":"end","at":' + b"9" * 6000 + b"}",
    ],
    "a second header": lambda lines: [
        *lines,
        b'{"kind":"header","format":"handrail-session","version":1,"id":"x","created_at":1}',
    ],
    "a header of the future": lambda lines: [
        *lines,
        b'{"kind":"header","new":1,"format":"handrail-session","version":1,"id":"x","created_at":1}',
    ],
    "a kind that is no text": lambda lines: [*lines, b'{"kind":5}'],
    "no kind": lambda lines: [*lines, b'{"path":"desk"}'],
    "a message of the wrong time": lambda lines: changed(lines, b'"role":"user"', b'"created_at":1.5,"role":"user"'),
    "a path that is no text": lambda lines: changed(lines, b'"path":"billing"', b'"path":"\xff"'),
}


def changed(lines: list[bytes], old: bytes, new: bytes) -> list[bytes]:
    return [line.replace(old, new) for line in lines]


@pytest.mark.parametrize("unfit", UNFIT)
def test_a_line_that_is_no_record_of_its_kind_is_damage_to_every_reader(tmp_path: Path, unfit: str) -> None:
    path = desk(tmp_path / "s")
    lines = UNFIT[unfit](path.read_bytes().splitlines()[1:])
    made = chain(tmp_path / "made", path.read_bytes().splitlines()[0], lines)
    verdict = verify(made)
    assert (verdict.state, verify(made, integrity_only=True).state) == ("damaged", "damaged")
    assert verify(made, integrity_only=True).line == verdict.line
    readers: tuple[Callable[[Path], object], ...] = (
        Session.open,
        lambda it: export(it, tmp_path / "out"),
        lambda it: list(crossings(it)),
    )
    for reader in readers:
        with pytest.raises(DamagedSession) as caught:
            reader(made)
        assert caught.value.line == verdict.line


def chain(path: Path, header: bytes, lines: list[bytes]) -> Path:
    """A file of these lines whatever is in them, each with the hash of the one before."""
    made = [header]
    for line in lines:
        rest = line.partition(b",")[2] if line.startswith(b'{"prev"') else line[1:]
        made.append(b'{"prev":"%b",%b' % (sha256(made[-1]).hexdigest().encode(), rest))
    path.write_bytes(b"".join([line + b"\n" for line in made]))
    return path


def test_records_of_unknown_kinds_are_counted_and_told(tmp_path: Path) -> None:
    desk(tmp_path / "s")
    with Journal.open(tmp_path / "s") as journal:
        journal.append(
            Unknown("decision", b'{"kind":"decision","n":1}'), Unknown("decision", b'{"kind":"decision","n":2}')
        )
    verdict = verify(tmp_path / "s")
    assert (verdict.state, verdict.unknown) == ("intact", {"decision": 2})
    assert "kinds that are not known here: decision 2" in str(verdict)


def test_one_changed_byte_of_the_footer_is_told_whichever_it_is(tmp_path: Path) -> None:
    with Conversation(tmp_path / "s") as talk:
        talk.say("triage", user("Hello"))
    data = export(tmp_path / "s", tmp_path / "sealed").read_bytes()
    changed = tmp_path / "changed"
    for place in range(data[:-1].rindex(b"\n") + 1, len(data)):
        for byte in {data[place] ^ 1, data[place] ^ 0x20, 0, 0x20, 0x0A, 0x7D} - {data[place]}:
            put(changed, data[:place] + bytes([byte]) + data[place + 1 :])
            verdict = verify(changed)
            assert not verdict.ok, (place, byte, verdict)


def test_a_sealed_copy_cut_within_its_footer_is_damaged(tmp_path: Path) -> None:
    data = export(desk(tmp_path / "s"), tmp_path / "sealed").read_bytes()
    start = data[:-1].rindex(b"\n") + 1
    for cut in (start + 90, start + 120, len(data) - 1):
        (tmp_path / "sealed").write_bytes(data[:cut])
        assert verify(tmp_path / "sealed").state == "damaged"


def test_a_line_with_two_links_is_tampering_to_every_reader(tmp_path: Path) -> None:
    path = desk(tmp_path / "s")
    lines = path.read_bytes().splitlines(keepends=True)
    for first, second in ((lines[-1][9:73], b"0" * 64), (b"0" * 64, lines[-1][9:73])):
        twice = b'{"prev":"%b",%b' % (first, lines[-1].partition(b",")[2].replace(b"}\n", b',"prev":"%b"}\n' % second))
        path.write_bytes(b"".join([*lines[:-1], twice]))
        assert {verify(path).state, verify(path, integrity_only=True).state} == {"tampered"}
        for reader in (lambda it: export(it, tmp_path / "out"), lambda it: list(crossings(it))):
            with pytest.raises(DamagedSession):
                reader(path)


def test_a_seed_that_a_hook_changed_is_counted_and_is_one_that_the_seal_lets_pass(tmp_path: Path) -> None:
    with Conversation(tmp_path / "s") as talk:
        talk.say("triage", user("I was charged twice."))
        talk.hand_over("triage", "billing", full())

    def edited(seed: Message) -> Verdict:
        def edit(record: AnyRecord) -> AnyRecord:
            if not isinstance(record, HandoffRecord):
                return record
            new = {"crossed": (seed,), "seed": digest((seed,)), "seed_length": 1, "edited": record.seed}
            return msgspec.structs.replace(record, **new)

        return rewritten(tmp_path / "s", edit)

    honest = edited(user("Calm down.", id="x1"))
    assert (honest.state, honest.edited) == ("intact", 1)
    assert "1 changed by a hook" in honest.boundaries
    for forged in (assistant("<think>hm</think>Hi."), assistant("Hi."), tool_result("c9", "never called")):
        verdict = edited(forged.replace(id="x1"))
        assert [(drift.what, drift.handoff) for drift in verdict.drifts] == [("seed", 1)]
        assert "no hook can hand over" in str(verdict)


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for look in (verify, read, lambda path: export(path, tmp_path / "out"), lambda path: list(crossings(path))):
        with pytest.raises(NotASession, match="it is a pipe"):
            look(tmp_path / "pipe")


def test_a_file_without_a_line_is_refused_after_its_beginning(tmp_path: Path) -> None:
    with (tmp_path / "endless").open("wb") as file:
        file.write(b'{"prev":"')
        file.truncate(50_000_000)
    tracemalloc.start()
    with pytest.raises(NotASession):
        verify(tmp_path / "endless")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000


def test_a_torn_end_of_any_length_takes_no_memory(tmp_path: Path) -> None:
    path = desk(tmp_path / "s")
    with path.open("ab") as file:
        file.write(b'{"torn":"' + b"x" * 50_000_000)
    tracemalloc.start()
    verdict = verify(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert verdict.state == "torn"
    assert peak < 8_000_000


def test_what_the_seal_gave_before_a_hook_changed_it_is_compared(tmp_path: Path) -> None:
    def edited(digest: str) -> Verdict:
        def change(record: AnyRecord) -> AnyRecord:
            given = digest or (record.seed if isinstance(record, HandoffRecord) else "")
            return msgspec.structs.replace(record, edited=given) if isinstance(record, HandoffRecord) else record

        return rewritten(path, change)

    path = desk(tmp_path / "s")
    assert (edited("").state, edited("").run_again) == ("intact", 4)
    verdict = edited("0" * 64)
    assert (verdict.state, [(drift.handoff, drift.what) for drift in verdict.drifts]) == (
        "drifted",
        [(1, "seed"), (3, "seed"), (4, "seed")],
    )


kept: list[Message] = []


@custom_filter("sessions-test/brings-back")
def brings_back(history: History) -> tuple[Message, ...]:
    return (*history, *kept)


def test_a_filter_that_brought_back_what_stood_in_the_view_does_so_again(tmp_path: Path) -> None:
    with Conversation(tmp_path / "s") as talk:
        talk.say("triage", user("I was charged twice."))
        talk.use_tool("triage", "look")
        kept[:] = talk.history("triage")[1:]
        talk.hand_over("triage", "billing", compose(last_user(), custom("sessions-test/brings-back")))
        assert [message.role for message in talk.history("billing")] == ["user", "assistant", "tool"]
    verdict = verify(tmp_path / "s")
    assert (verdict.state, verdict.run_again, verdict.drifts) == ("intact", 1, ())
