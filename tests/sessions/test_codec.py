"""A record as a line, and a line as a record."""

from collections.abc import Callable

import msgspec
import pytest

from handrail.filters import Message, Reasoning, Text, assistant, call, tool_result, user
from handrail.sessions import (
    AuditRecord,
    Gave,
    HandoffRecord,
    InvalidRecord,
    MessageRecord,
    SessionRecord,
    StateRecord,
    ToolResultRecord,
    TurnRecord,
    Unknown,
    Usage,
)
from handrail.sessions.codec import decode, encode, mended, unchained
from handrail.sessions.records import AnyRecord, ModelCallRecord

RECORDS: list[AnyRecord] = [
    MessageRecord(path="desk", message=user("I was charged twice.", id="m1")),
    MessageRecord(path="desk", message=assistant(Reasoning("hm", "x", '{"signature":"c2ln"}'), call("track", n=1))),
    ToolResultRecord(path="desk", message=tool_result("c1", "in Porto", is_error=True)),
    ModelCallRecord(path="desk", step=3, usage=Usage(input_tokens=10, requests=1)),
]


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_comes_back_from_its_line(record: AnyRecord) -> None:
    assert decode(encode(record)) == record


WITH_TEXT: list[Callable[[msgspec.Raw], AnyRecord]] = [
    lambda text: SessionRecord(beside=text),
    lambda text: StateRecord(path="desk", values=text),
    lambda text: AuditRecord(path="desk", name="gate", data=text),
    lambda text: ToolResultRecord(path="desk", message=tool_result("c1", "in Porto"), gave=Gave(writes=text)),
]


@pytest.mark.parametrize("made", WITH_TEXT)
def test_a_record_with_json_text_on_several_lines_is_one_line(made: Callable[[msgspec.Raw], AnyRecord]) -> None:
    line = encode(made(msgspec.Raw(b'{\n  "a b": [1.0,\n 123456789012345678901234567890],\n "c": "d\\n"}\n')))
    assert b'{"a b":[1.0,123456789012345678901234567890],"c":"d\\n"}' in line
    assert b"\n" not in line
    assert encode(decode(line)) == line


@pytest.mark.parametrize("made", WITH_TEXT)
@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"7", b'{"a":1} {}', b'{"a":nan}', b'{"\xff":1}', b'{"a":"\xff"}', b"{\n"]
)
def test_a_record_with_text_that_is_no_json_object_is_refused(
    made: Callable[[msgspec.Raw], AnyRecord], text: bytes
) -> None:
    with pytest.raises(InvalidRecord, match=r"the text of a JSON object.*, not "):
        made(msgspec.Raw(text))


@pytest.mark.parametrize("text", [b'{"a":1e999}', b'{"a":[-1e400]}', b'{"a":%s}' % (b"9" * 5_000)])
def test_what_is_read_as_values_has_no_number_that_cannot_be_read(text: bytes) -> None:
    for made in (lambda raw: StateRecord(path="desk", values=raw), lambda raw: Gave(writes=raw)):
        with pytest.raises(InvalidRecord, match="whose numbers can be read, not "):
            made(msgspec.Raw(text))
    assert bytes(AuditRecord(path="desk", name="seen", data=msgspec.Raw(text)).data) == text


def test_an_unknown_record_on_several_lines_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="one line"):
        Unknown("audit", b'{"kind":"audit",\n"path":"x"}')


@pytest.mark.parametrize("kind", ["interrupt", "decision", "something-new"])
def test_a_line_of_an_unknown_kind_is_kept_whole(kind: str) -> None:
    line = f'{{"kind":"{kind}","n":1.0,"big":123456789012345678901234567890}}'.encode()
    record = decode(line)
    assert record == Unknown(kind, line)
    assert encode(record) == line


def test_a_known_record_with_unknown_fields_is_kept_whole_and_understood_as_far_as_it_goes() -> None:
    message = b'{"role":"user","content":[{"kind":"text","text":"Hi"}]}'
    line = b'{"kind":"message","path":"desk","mood":"good","message":%b}' % message
    record = decode(line)
    assert record == Unknown("message", line, MessageRecord(path="desk", message=user("Hi")))
    assert encode(record) == line


def test_a_known_record_with_a_value_of_another_type_is_kept_whole() -> None:
    line = b'{"kind":"message","path":7,"message":{"role":"user"}}'
    assert decode(line) == Unknown("message", line)


@pytest.mark.parametrize("line", [b"", b"{", b"[1]", b"7", b'{"kind":"\xff"}', b"\0\0", b"[" * 100_000])
def test_a_line_that_is_no_json_object_is_an_error(line: bytes) -> None:
    with pytest.raises(ValueError, match="it is n"):
        decode(line)


def test_what_only_the_standard_library_reads_is_read() -> None:
    record = decode(
        rb'{"kind":"message","path":"desk","message":{"role":"user","content":[{"kind":"text","text":"ok \ud83d"}]}}'
    )
    assert isinstance(record, MessageRecord)
    assert record.message.text == "ok \ufffd"
    assert isinstance(decode(b'{"kind":"decision","n":NaN,"huge":' + b"9" * 5000 + b"}"), Unknown)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (rb"\ud83c\udf78", rb"\ud83c\udf78"),
        (rb"\ud83c", rb"\ufffd"),
        (rb"\udcb0 \ud83c", rb"\ufffd \ufffd"),
        (rb"\\ud83c", rb"\\ud83c"),
        (rb"\\\ud83c", rb"\\\ufffd"),
        (b"\xed\xa0\xbd", "\ufffd".encode()),
        ("é 北 🍸".encode(), "é 北 🍸".encode()),
    ],
)
def test_half_a_surrogate_pair_is_mended_and_nothing_else(text: bytes, whole: bytes) -> None:
    assert mended(text) == whole


def test_a_record_read_from_a_file_can_be_written_to_another() -> None:
    read = decode(b'{"prev":"%b","batch":-1,"kind":"message","path":"a","message":{"role":"user"}}' % (b"0" * 64))
    assert unchained(read) == MessageRecord(path="a", message=Message("user"))
    other = decode(b'{"prev":"%b","kind":"decision","n":1.0}' % (b"0" * 64))
    assert encode(unchained(other)) == b'{"kind":"decision","n":1.0}'


def test_a_record_with_half_a_surrogate_pair_anywhere_is_written_and_read() -> None:
    record = TurnRecord(path="a", run="r", event="end", error="bad \ud83d 🍸", usage=Usage(1))
    assert decode(encode(record)) == TurnRecord(path="a", run="r", event="end", error="bad \ufffd 🍸", usage=Usage(1))


def test_what_stood_beside_an_imported_transcript_is_written_as_it_was() -> None:
    record = SessionRecord(title="half \ud83d", beside=msgspec.Raw(b'{"n":1.0,"e":1e3}'))
    assert encode(record) == '{"kind":"session","title":"half \ufffd","beside":{"n":1.0,"e":1e3}}'.encode()


def test_whole_numbers_of_any_size_in_a_filters_parameters_are_kept() -> None:
    filter = {"kind": "acme/x", "params": {"n": 123456789012345678901234567890}}
    record = HandoffRecord(path="a", source="a", target="b", target_path="b", filter=filter)
    assert decode(encode(record)) == record


def test_numbers_in_call_arguments_keep_their_digits() -> None:
    arguments = '{"id": 2512292042121000001, "big": 123456789012345678901234567890, "f": 1.0, "e": 1e3, "neg0": -0.0}'
    said = assistant(call("look", call_id="c1"))
    part = said.tool_calls[0]
    record = MessageRecord(path="a", message=said.replace(content=(type(part)("c1", "look", arguments), Text("é"))))
    back = decode(encode(record))
    assert isinstance(back, MessageRecord)
    assert back.message.tool_calls[0].arguments == arguments


@pytest.mark.parametrize(
    "inner",
    [
        b'"message":{"role":"user","content":[{"kind":"text","text":"Hi"}],"mood":"glad"}',
        b'"message":{"role":"user","content":[{"kind":"text","text":"Hi","mood":"glad"}]}',
        b'"message":{"role":"assistant","content":[{"kind":"tool_call","id":"c","name":"n","mood":"glad"}]}',
    ],
    ids=["message", "part", "call"],
)
def test_a_field_that_is_not_known_is_kept_at_any_depth(inner: bytes) -> None:
    line = b'{"kind":"message","path":"desk",' + inner + b"}"
    record = decode(line)
    assert isinstance(record, Unknown)
    assert isinstance(record.record, MessageRecord)
    assert encode(record) == line


def test_a_name_that_is_not_utf_8_is_damage_at_any_depth() -> None:
    with pytest.raises(ValueError, match="not UTF-8"):
        decode(b'{"kind":"message","path":"desk","message":{"role":"user","\xe3ontent":[]}}')
