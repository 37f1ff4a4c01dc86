"""The page about the format, the schema and the records say the same of every line."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import jsonschema
import msgspec
import msgspec.inspect as inspect
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from handrail.filters import Message, Note, Part
from handrail.sessions import Cipher, Footer, Gave, Header, Journal, Spent, Usage, export, read, session_schema
from handrail.sessions.codec import encode, unchained
from handrail.sessions.lines import ZEROS, chained
from handrail.sessions.records import AnyRecord, EncryptedRecord, Known
from laws.pages import Page
from laws.strategies import messages
from laws.test_sessions_records import text, unknown, values
from sessions.conversations import secret

ROOT = Path(__file__).parent.parent.parent
page = Page(ROOT / "docs" / "format.md")
schema = session_schema()
line_schema = jsonschema.Draft202012Validator(schema)
BESIDE = frozenset({"prev", "batch", "kind"})
numbers = st.integers(-(2**53) + 1, 2**53 - 1)
PLAIN: dict[type[inspect.Type], st.SearchStrategy[Any]] = {
    inspect.StrType: text,
    inspect.IntType: numbers,
    inspect.BoolType: st.booleans(),
    inspect.NoneType: st.none(),
    inspect.BytesType: st.binary(),
    inspect.RawType: values,
    inspect.AnyType: st.none() | st.booleans() | numbers | text | st.lists(text, max_size=2),
    inspect.DecimalType: st.decimals(allow_nan=False, allow_infinity=False),
}


def values_of(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """Any values of a type, as the records use types."""
    match kind:
        case inspect.StructType(cls=cls) if cls is Message:
            return messages
        case inspect.StructType(cls=cls):
            return structs(cls)
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.VarTupleType():
            return st.lists(values_of(kind.item_type), max_size=2).map(tuple)
        case inspect.TupleType():
            return st.tuples(*map(values_of, kind.item_types))
        case inspect.DictType():
            return st.dictionaries(values_of(kind.key_type), values_of(kind.value_type), max_size=2)
        case inspect.UnionType():
            return st.one_of(*map(values_of, kind.types))
        case _:
            return PLAIN[type(kind)]


def structs(cls: type, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any of these, with every field given or left at its default."""
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    fields = {field.name: field for field in info.fields if field.name not in BESIDE}
    required = {name: values_of(field.type) for name, field in fields.items() if field.required}
    optional = {name: values_of(field.type) for name, field in fields.items() if not field.required}
    return st.fixed_dictionaries(required | given, optional=optional).map(lambda made: cls(**made))


def kinds() -> dict[str, Any]:
    records = [Header, EncryptedRecord, *[cls for cls in get_args(Known) if cls is not Header]]
    return {str(cls.__struct_config__.tag): cls for cls in records}


def test_the_schema_is_a_schema_and_every_kind_has_its_table_and_its_place_there() -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    listed = [each["$ref"].rpartition("/")[2] for each in schema["oneOf"]]
    assert listed == [*[cls.__name__ for cls in kinds().values()], "UnknownKind"]
    assert kinds().keys() <= page.tables.keys()


@pytest.mark.parametrize(
    ("heading", "cls"),
    [
        *kinds().items(),
        ("messages", Message),
        *[(cls.__name__.lower(), cls) for cls in (*get_args(Part), Note, Usage, Spent, Cipher, Gave)],
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_table_the_schema_and_the_struct_have_the_same_fields_and_require_the_same(heading: str, cls: type) -> None:
    table, described = page.tables[heading], schema["$defs"][cls.__name__]
    fields = [each for each in msgspec.structs.fields(cls) if each.encode_name not in BESIDE]
    assert list(table) == [each.encode_name for each in fields]
    assert set(described["properties"]) - BESIDE == set(table)
    required = {each.encode_name for each in fields if each.required}
    assert {name for name, field in table.items() if field.required} == required
    assert set(described.get("required", ())) - BESIDE == required


ends: st.SearchStrategy[AnyRecord] = st.one_of(
    structs(Header, format=st.just("handrail-session"), version=st.just(1)), structs(Footer), structs(EncryptedRecord)
)
records: st.SearchStrategy[AnyRecord] = st.one_of(
    *[structs(cls) for cls in kinds().values() if cls not in (Header, Footer, EncryptedRecord)], unknown
)


def assert_as_told(line: bytes) -> None:
    """The line is what the schema and the page say of its kind."""
    value = json.loads(line)
    assert [error.message for error in line_schema.iter_errors(value)] == []
    if value["kind"] in kinds():
        assert list(page.misfits(value["kind"], value, BESIDE)) == []


@settings(max_examples=150)
@given(st.lists(records, min_size=1, max_size=4))
def test_every_line_that_is_written_is_as_the_schema_and_the_page_say_and_reads_as_it_was_given(
    given_records: list[AnyRecord],
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        with Journal.create(path, fsync="never") as journal:
            journal.append(*given_records)
        back = list(read(path).records())[1:]
        assert [encode(unchained(record)) for record in back] == list(map(encode, given_records))
        hidden = export(path, Path(folder) / "hidden.jsonl", passphrase=secret())
        decrypted = list(read(hidden, passphrase=secret()).records())[1:-1]
        assert [encode(unchained(record)) for record in decrypted] == list(map(encode, given_records))
        for line in [*path.read_bytes().splitlines(), *hidden.read_bytes().splitlines()]:
            assert_as_told(line)


@given(ends)
def test_a_header_a_footer_and_an_encrypted_line_of_any_values_are_so_too(record: AnyRecord) -> None:
    assert_as_told(chained(ZEROS, 0, encode(record)))


@given(records | ends, st.sampled_from(["extra", "prev", "kind"]))
def test_a_field_too_many_or_too_few_is_told_by_the_schema_and_by_the_page(record: AnyRecord, field: str) -> None:
    value = json.loads(chained(ZEROS, 0, encode(record)))
    assume(value["kind"] in kinds())
    if field == "extra":
        value["nobody_knows_this"] = 1
        assert list(page.misfits(value["kind"], value, BESIDE)) != []
    else:
        del value[field]
    assert not line_schema.is_valid(value)
