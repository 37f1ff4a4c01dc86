"""Encrypted sessions: whole and secret, or refused with the line at fault."""

import json
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.filters import last_n, user
from handrail.sessions import (
    DamagedSession,
    EmptyPassphrase,
    Journal,
    MessageRecord,
    Passphrase,
    PassphraseMissing,
    PassphraseNotNeeded,
    Session,
    SessionError,
    TamperedRecord,
    UnfitCipher,
    Unknown,
    WrongPassphrase,
    crossings,
    export,
    read,
    verify,
)
from handrail.sessions.codec import Forged
from handrail.sessions.lines import ZEROS, link
from handrail.sessions.vaults import Sealer, Vault
from sessions.conversations import CHEAP, WORDS, Conversation, secret


def said(text: str) -> MessageRecord:
    return MessageRecord(path="desk", message=user(text))


def talk(path: Path, passphrase: Passphrase | None) -> Path:
    with Conversation(path, passphrase) as conversation:
        conversation.say("triage", user("I was charged twice."))
        conversation.hand_over("triage", "billing", last_n(1))
        conversation.say("billing", user("Well?"))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return talk(tmp_path / "secret.jsonl", secret())


def forged(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> Path:
    """The same file after a change by somebody without the passphrase, who makes the chain anew."""
    head, lines = ZEROS, []
    for line in change(path.read_bytes().splitlines()):
        lines.append(line[:9] + head.encode() + line[73:])
        head = link(lines[-1])
    made = path.with_name("forged.jsonl")
    made.write_bytes(b"".join([line + b"\n" for line in lines]))
    return made


def test_an_encrypted_session_reads_as_a_plain_one_and_shows_nothing(path: Path, tmp_path: Path) -> None:
    plain = talk(tmp_path / "plain.jsonl", None)
    shown = path.read_text()
    assert all(word not in shown for word in ("charged", "triage", "billing", "handoff", "Well?", WORDS))
    found = [type(record) for record in read(path, passphrase=secret()).records()]
    assert found == [type(record) for record in read(plain).records()]
    session = Session(path, passphrase=WORDS)
    assert [each.text for each in session.history("billing")][-1] == "Well?"
    assert [each.target for each in session.handoffs] == ["billing"]
    assert len(list(crossings(path, passphrase=WORDS))) == 1


def test_every_boundary_of_an_encrypted_session_is_verified(path: Path) -> None:
    verdict = verify(path, passphrase=WORDS)
    assert (verdict.state, verdict.run_again, verdict.encrypted, verdict.decrypted) == ("intact", 1, True, True)


def test_without_the_passphrase_a_verdict_says_that_nothing_was_decrypted(path: Path, tmp_path: Path) -> None:
    verdict = verify(path)
    assert (verdict.state, verdict.ok, verdict.decrypted) == ("not decrypted", False, False)
    assert "no passphrase was given" in str(verdict)
    assert verify(path, integrity_only=True).ok
    sealed = export(path, tmp_path / "sealed.jsonl", passphrase=secret())
    assert (verify(sealed).state, verify(sealed).sealed) == ("not decrypted", True)
    lines = sealed.read_bytes().splitlines(keepends=True)
    sealed.write_bytes(b"".join([*lines[:2], lines[2].replace(b'"data":"', b'"data":"A', 1), *lines[3:]]))
    assert verify(sealed).state in ("tampered", "damaged")


def test_a_session_goes_on_at_its_end_also_with_batches(path: Path) -> None:
    for words in ("one", "two"):
        with Journal.open(path, passphrase=secret(), fsync="never") as journal:
            journal.append(said(words))
            journal.append(said("three"), said("four"))
    assert verify(path, passphrase=secret()).ok
    assert len(Session(path, passphrase=secret()).log) == 4 + 6


def test_a_torn_end_is_cut_without_a_gap_in_the_numbers(path: Path) -> None:
    whole = path.read_bytes()
    with Journal.open(path, passphrase=secret()) as journal:
        journal.append(said("one"), said("two"))
    path.write_bytes(path.read_bytes()[:-20])
    assert verify(path, passphrase=secret()).state == "torn"
    with Journal.open(path, passphrase=secret()) as journal:
        assert journal.recovered is not None
        journal.append(said("again"))
    assert path.read_bytes().startswith(whole)
    assert verify(path, passphrase=secret()).state == "intact"


def test_a_batch_that_did_not_arrive_is_numbered_as_if_it_had_never_been() -> None:
    vault = Vault("s1", 1, secret().key(Path("s"), b"0" * 16, CHEAP))
    sealer = Sealer(vault, "a", 2)

    def numbers(head: str, count: int) -> list[int]:
        seal = sealer.batch(head)
        return [json.loads(seal(head, said("x")))["number"] for _ in range(count)]

    assert (numbers("a", 2), numbers("a", 2), numbers("b", 1)) == ([2, 3], [2, 3], [4])


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda lines: [*lines[:2], *lines[3:]], 3),
        (lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], 3),
        (lambda lines: [*lines[:3], lines[2], *lines[3:]], 4),
        (lambda lines: [lines[0], b'{"prev":"%b","kind":"audit","path":"x","name":"y"}' % (b"0" * 64), *lines[1:]], 2),
        (lambda lines: [*lines[:3], lines[3].replace(b'"data":"', b'"data":"QUJD'), *lines[4:]], 4),
    ],
    ids=["left out", "swapped", "twice", "a clear line", "other data"],
)
def test_a_forged_line_is_told_by_its_number_though_the_chain_holds(
    path: Path, change: Callable[[list[bytes]], list[bytes]], line: int
) -> None:
    made = forged(path, change)
    verdict = verify(made, passphrase=secret())
    assert (verdict.state, verdict.line) == ("tampered", line)
    with pytest.raises(TamperedRecord) as caught:
        list(read(made, passphrase=secret()))
    assert caught.value.line == line


def test_a_line_of_another_file_with_the_same_passphrase_does_not_fit(path: Path, tmp_path: Path) -> None:
    passphrase = secret()
    other = talk(tmp_path / "other.jsonl", passphrase).read_bytes().splitlines()
    made = forged(path, lambda lines: [*lines[:2], other[2], *lines[3:]])
    assert (verify(made, passphrase=passphrase).state, verify(made, passphrase=passphrase).line) == ("tampered", 3)


def went_on(path: Path, passphrase: Passphrase) -> tuple[list[bytes], list[bytes]]:
    """The lines of two copies of one file that went on, each in its own way."""
    copy = path.with_name("copy.jsonl")
    shutil.copy(path, copy)
    for each in (path, copy):
        with Journal.open(each, passphrase=passphrase, fsync="never") as journal:
            journal.append(said(f"{each.name} first"))
            journal.append(said(f"{each.name} second"), said(f"{each.name} third"))
    return path.read_bytes().splitlines(), copy.read_bytes().splitlines()


def test_lines_of_a_copy_that_went_on_another_way_do_not_fit(path: Path) -> None:
    passphrase, begun = secret(), len(path.read_bytes().splitlines())
    ours, theirs = went_on(path, passphrase)
    for at in range(begun, len(ours)):
        mixed = [*ours[:at], theirs[at], *ours[at + 1 :]]
        made = forged(path, lambda _, mixed=mixed: mixed)  # type: ignore[misc]  # bound here
        assert verify(made, passphrase=passphrase).state == "tampered"
        with pytest.raises(TamperedRecord):
            list(read(made, passphrase=passphrase))


def test_a_record_that_was_cut_off_and_written_anew_does_not_come_back(path: Path) -> None:
    passphrase, before = secret(), path.read_bytes()
    with Journal.open(path, passphrase=passphrase) as journal:
        journal.append(said("I owe you nothing."))
    cut = path.read_bytes().splitlines()
    path.write_bytes(before)
    with Journal.open(path, passphrase=passphrase) as journal:
        journal.append(said("I owe you 100."))
        journal.append(said("Fine."))
    made = forged(path, lambda lines: [*lines[:-2], cut[-1], lines[-1]])
    assert verify(made, passphrase=passphrase).state == "tampered"
    with pytest.raises(TamperedRecord):
        Session.open(made, passphrase=passphrase)


def test_whoever_decrypts_sees_that_each_line_follows_the_one_before(path: Path) -> None:
    lines = path.read_bytes().splitlines()
    lines[1] = lines[1].replace(b'"kind"', b'"batch":0,"kind"')
    path.write_bytes(b"".join([line + b"\n" for line in lines]))
    with pytest.raises(TamperedRecord, match="follow") as caught:
        list(read(path, passphrase=secret()))
    assert caught.value.line == 3
    with pytest.raises(TamperedRecord, match="follow"):
        Session(path, passphrase=secret()).tail(100)


def test_a_footer_is_proved_by_its_values_in_whatever_order_they_stand(path: Path, tmp_path: Path) -> None:
    *lines, footer = export(path, tmp_path / "sealed.jsonl", passphrase=secret()).read_bytes().splitlines()
    fields = json.loads(footer)
    fields["counts"] = dict(reversed(fields["counts"].items()))
    other = json.dumps({name: fields[name] for name in ("prev", "kind", "head", "check", "counts")})
    made = tmp_path / "other.jsonl"
    made.write_bytes(b"\n".join([*lines, other.encode(), b""]))
    assert verify(made, passphrase=secret()).state == "intact"
    del fields["check"]
    made.write_bytes(b"\n".join([*lines, json.dumps(fields).encode(), b""]))
    assert verify(made, passphrase=secret()).state == "tampered"


@pytest.mark.parametrize("field", [b'"created_at":1', b'"writer":"handrail', b'"draft":true'])
def test_a_header_that_was_changed_is_told_before_anything_is_read(path: Path, field: bytes) -> None:
    changed = field.replace(b"true", b"false").replace(b":1", b":2").replace(b"handrail", b"somebody")
    made = forged(path, lambda lines: [lines[0].replace(field, changed, 1), *lines[1:]])
    assert (verify(made, passphrase=secret()).state, verify(made, passphrase=secret()).line) == ("tampered", 1)


def test_a_sealed_copy_that_was_cut_and_sealed_by_somebody_else_is_told(path: Path, tmp_path: Path) -> None:
    sealed = export(path, tmp_path / "sealed.jsonl", passphrase=secret())
    assert verify(sealed, passphrase=secret()).ok
    *_, footer = sealed.read_bytes().splitlines()

    def cut(lines: list[bytes]) -> list[bytes]:
        head = link(lines[1])
        made = footer.replace(footer[9:73], head.encode()).replace(b'"encrypted":3', b'"encrypted":1')
        return [*lines[:2], made]

    def cut_without_check(lines: list[bytes]) -> list[bytes]:
        *kept, made = cut(lines)
        return [*kept, made[: made.index(b',"check"')] + b"}"]

    for change in (cut, cut_without_check):
        verdict = verify(forged(sealed, change), passphrase=secret())
        assert (verdict.state, verdict.line) == ("tampered", 3)
        assert "footer" in verdict.problem


def test_a_footer_that_was_changed_in_its_place_is_told(path: Path, tmp_path: Path) -> None:
    sealed = export(path, tmp_path / "sealed.jsonl", passphrase=secret())

    def with_another_batch(lines: list[bytes]) -> list[bytes]:
        last = lines[-2][:74] + b',"batch":0' + lines[-2][74:]
        head = link(last[:9] + link(lines[-3]).encode() + last[73:])
        return [*lines[:-2], last, lines[-1].replace(lines[-1][9:73], head.encode())]

    made = forged(sealed, with_another_batch)
    assert verify(made).state == "not decrypted"
    verdict = verify(made, passphrase=secret())
    assert (verdict.state, verdict.line) == ("tampered", len(made.read_bytes().splitlines()))


def test_a_footer_that_counts_otherwise_is_told_by_whoever_reads(path: Path, tmp_path: Path) -> None:
    sealed = export(path, tmp_path / "sealed.jsonl", passphrase=secret())
    content = sealed.read_bytes()
    sealed.write_bytes(content.replace(b'"encrypted":', b'"encrypted":1'))
    assert sealed.read_bytes() != content
    with pytest.raises(TamperedRecord, match="footer"):
        list(read(sealed, passphrase=secret()))


def test_what_was_sealed_opens_in_its_line_of_its_session_and_version_alone() -> None:
    key = secret().key(Path("s"), b"0" * 16, CHEAP)
    text = Vault("s1", 1, key).seal(2, "a", b"text")
    assert Vault("s1", 1, key).open(2, "a", text) == b"text"
    for id, version, number, prev in (("s1", 1, 3, "a"), ("s2", 1, 2, "a"), ("s1", 2, 2, "a"), ("s1", 1, 2, "b")):
        with pytest.raises(Forged):
            Vault(id, version, key).open(number, prev, text)


def test_without_the_passphrase_a_line_in_another_place_is_told(path: Path) -> None:
    verdict = verify(forged(path, lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]]))
    assert (verdict.state, verdict.line) == ("tampered", 3)


def test_a_session_whose_last_line_was_changed_is_neither_written_on_nor_read_backwards(path: Path) -> None:
    made = forged(path, lambda lines: [*lines[:-1], lines[-1].replace(b'"data":"', b'"data":"QUJD')])
    content = made.read_bytes()
    for act in (Journal.open, lambda path, passphrase: Session(path, passphrase=passphrase).tail(1)):
        with pytest.raises(TamperedRecord) as caught:
            act(made, passphrase=secret())
        assert caught.value.line == len(content.splitlines())
    assert made.read_bytes() == content


def test_a_passphrase_is_the_same_however_its_letters_are_composed(tmp_path: Path) -> None:
    talk(tmp_path / "a.jsonl", secret("Zür\u00fcck"))
    assert verify(tmp_path / "a.jsonl", passphrase=secret("Zu\u0308ru\u0308ck")).ok
    assert verify(tmp_path / "a.jsonl", passphrase=Passphrase("Z\u00fcr\u00fcck".encode(), cost=CHEAP)).ok


def test_a_fork_of_an_encrypted_session_is_encrypted(path: Path, tmp_path: Path) -> None:
    fork = Session(path, passphrase=secret()).fork(tmp_path / "fork.jsonl")
    assert "charged" not in (tmp_path / "fork.jsonl").read_text()
    assert verify(tmp_path / "fork.jsonl", passphrase=secret()).run_again == 1
    fork.append(said("And now?"))
    fork.close()
    assert fork.log[-1].text == "And now?"
    with pytest.raises(PassphraseMissing):
        Session(path).fork(tmp_path / "other.jsonl")


def test_a_wrong_a_missing_and_a_needless_passphrase_are_told_at_once(path: Path, tmp_path: Path) -> None:
    plain = talk(tmp_path / "plain.jsonl", None)
    size = path.stat().st_size
    for act in (
        lambda given: read(path, passphrase=given),
        lambda given: Session.open(path, passphrase=given),
        lambda given: Journal.open(path, passphrase=given),
        lambda given: export(path, tmp_path / "copy.jsonl", passphrase=given),
        lambda given: Session.continue_from(path, tmp_path / "next.jsonl", passphrase=given),
    ):
        with pytest.raises(WrongPassphrase):
            act(secret("another"))
        with pytest.raises(PassphraseMissing):
            act(None)
        with pytest.raises(EmptyPassphrase):
            act("")
    for open_plain in (read, Session.open, Journal.open, verify):
        with pytest.raises(PassphraseNotNeeded):
            open_plain(plain, passphrase=WORDS)
    assert path.stat().st_size == size
    assert not (tmp_path / "copy.jsonl").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"n":1024', b'"n":1073741824'),
        (b'"n":1024', b'"n":524288'),
        (b'"n":1024', b'"n":1000'),
        (b'"salt":"', b'"salt":"AAAA'),
        (b'"n":1024', b'"n":0'),
        (b'"r":8', b'"r":1000000000'),
        (b'"p":1', b'"p":1000000000'),
        (b'"p":1', b'"p":-1'),
        (b'"name":"aes-256-gcm"', b'"name":"rot13"'),
        (b'"kdf":"scrypt"', b'"kdf":"none"'),
    ],
)
def test_an_encryption_that_is_not_known_or_asks_for_too_much_is_refused(path: Path, old: bytes, new: bytes) -> None:
    made = forged(path, lambda lines: [lines[0].replace(old, new), *lines[1:]])
    with pytest.raises(UnfitCipher):
        read(made, passphrase=secret())


def test_a_plain_session_becomes_an_encrypted_copy_with_the_same_id(path: Path, tmp_path: Path) -> None:
    plain = talk(tmp_path / "plain.jsonl", None)
    copies = [export(plain, tmp_path / f"{n}.jsonl", passphrase=secret()) for n in range(2)]
    verdict = verify(copies[0], passphrase=secret())
    assert (verdict.state, verdict.sealed, verdict.run_again) == ("intact", True, 1)
    assert read(copies[0], passphrase=secret()).header.id == read(plain).header.id
    made = forged(copies[0], lambda lines: [*lines[:2], copies[1].read_bytes().splitlines()[2], *lines[3:]])
    assert verify(made, passphrase=secret()).line == 3


def test_a_session_that_goes_on_from_an_encrypted_copy_is_encrypted(path: Path, tmp_path: Path) -> None:
    sealed = export(path, tmp_path / "sealed.jsonl", passphrase=secret())
    with Session.continue_from(sealed, tmp_path / "next.jsonl", passphrase=secret()) as session:
        session.append(said("One more thing."))
    assert "One more" not in (tmp_path / "next.jsonl").read_text()
    assert verify(tmp_path / "next.jsonl", passphrase=secret()).run_again == 1
    assert read(tmp_path / "next.jsonl", passphrase=secret()).header.continues == read(sealed, passphrase=WORDS).head


def test_a_record_of_an_unknown_kind_comes_back_as_it_was(path: Path) -> None:
    line = b'{"kind":"weather","sun":[1.50,null]}'
    with Journal.open(path, passphrase=secret()) as journal:
        journal.append(Unknown("weather", line))
    *_, last = read(path, passphrase=secret()).records()
    assert isinstance(last, Unknown)
    assert last.line.endswith(b'"kind":"weather","sun":[1.50,null]}')


def test_an_encrypted_line_in_a_plain_session_is_damage(path: Path, tmp_path: Path) -> None:
    plain = talk(tmp_path / "plain.jsonl", None)
    made = forged(plain, lambda lines: [*lines[:2], path.read_bytes().splitlines()[2]])
    assert (verify(made).state, verify(made).line) == ("damaged", 3)
    with pytest.raises(DamagedSession, match="encrypted"):
        list(read(made))


def test_one_passphrase_makes_its_key_once_for_a_file(path: Path) -> None:
    passphrase = secret()
    cipher = read(path, passphrase=passphrase).header.cipher
    assert cipher is not None
    assert passphrase.key(path, cipher.salt, CHEAP) is passphrase.key(path, cipher.salt, CHEAP)


def shown_locals(error: BaseException | None) -> str:
    """What a log with locals shows of this error and those before it, of the frames that are the package's own."""
    shown = ""
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if Path(frame.f_code.co_filename) != Path(__file__):
                shown += repr(frame.f_locals)
        error = error.__context__
    return shown


def test_no_repr_and_no_local_of_any_frame_shows_a_passphrase(path: Path, tmp_path: Path) -> None:
    assert WORDS not in repr(secret())
    plain = talk(tmp_path / "plain.jsonl", None)
    wrong = f"not-{WORDS}"
    for act in (
        lambda: read(path, passphrase=wrong),
        lambda: read(plain, passphrase=wrong),
        lambda: Session.open(path, passphrase=wrong),
        lambda: Journal.open(path, passphrase=wrong),
        lambda: verify(path, passphrase=wrong),
        lambda: list(crossings(path, passphrase=wrong)),
        lambda: export(path, tmp_path / "copy.jsonl", passphrase=wrong),
        lambda: export(plain, tmp_path / "no" / "copy.jsonl", passphrase=wrong),
    ):
        with pytest.raises(SessionError) as caught:
            act()
        assert WORDS not in str(caught.value)
        shown = shown_locals(caught.value)
        assert "Passphrase('***')" in shown
        assert WORDS not in shown
