"""Messages, their parts and their digests."""

import hashlib
import json
from typing import Any, get_args

import msgspec
import pytest

from handrail.filters import (
    Image,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    assistant,
    call,
    digest,
    system,
    tool_result,
    user,
)
from handrail.filters.errors import InvalidMessage
from handrail.filters.messages import Part, canonical_json, is_empty, named


def test_constructors_take_words_and_parts() -> None:
    asked = call("track", call_id="c1", parcel="8841")
    assert user("Hi").content == (Text("Hi"),)
    assert system(["Be brief.", Text("Be kind.")]).text == "Be brief.Be kind."
    assert assistant("One moment.", asked).tool_calls == (asked,)
    assert tool_result(asked, "in Porto") == Message("tool", (Text("in Porto"),), call_id="c1", name="track")
    assert tool_result("c1", "").content == ()


def test_content_is_always_a_tuple_of_parts() -> None:
    assert Message("user", "Hi") == user("Hi")  # type: ignore[arg-type]  # a person may well write it
    assert Message("user", [Text("Hi")]) == user("Hi")  # type: ignore[arg-type]


def test_a_message_cannot_be_changed_only_replaced() -> None:
    said = user("Hi", id="m1")
    with pytest.raises(AttributeError):
        said.role = "system"  # type: ignore[misc]
    assert said.replace(pinned=True).pinned
    assert not said.pinned
    with pytest.raises(TypeError):
        said.replace(pinnned=True)


def test_lone_halves_of_characters_are_replaced_and_whole_ones_stay() -> None:
    scraped = tool_result("c\ud800", json.loads('"ok \\ud83d end \\ud83c\\udf78 \\udcb0 é 北"'), name="scrape\udc00")
    assert scraped.text == "ok \ufffd end 🍸 \ufffd é 北"
    assert (scraped.call_id, scraped.name) == ("c\ufffd", "scrape\ufffd")
    assert ToolCall("c\ud800", "x", '{"q":"\ud800"}').arguments == '{"q":"\ufffd"}'
    assert msgspec.json.decode(msgspec.json.encode(scraped), type=Message) == scraped


def test_a_message_that_is_named_is_as_sound_as_one_that_is_made_so() -> None:
    said = assistant("Hi", id="old", sensitivity="internal")
    assert named(said, "m1", "Desk", 5) == said.replace(id="m1", agent="Desk", created_at=5)
    assert named(said, "m\ud800", "Desk", 5).id == "m\ufffd"
    assert said.digest != named(said, "m1", "Desk", 5).digest
    for wrong in (True, 1.5):
        with pytest.raises(InvalidMessage):
            named(said, "m1", "Desk", wrong)  # type: ignore[arg-type]


def test_an_escaped_lone_half_in_arguments_stays_text() -> None:
    asked = ToolCall("c1", "x", '{"q":"\\udc97"}')
    assert asked.arguments == '{"q":"\\udc97"}'
    assert assistant(asked).digest != assistant(ToolCall("c1", "x", '{"q":"\\udc98"}')).digest


def test_whole_numbers_come_through_digit_for_digit() -> None:
    asked = ToolCall(
        "c1", "x", '{"id": 2512292042121000001, "big": 123456789012345678901234567890, "f": 1.0, "e": 1e3}'
    )
    again = msgspec.json.decode(msgspec.json.encode(asked), type=ToolCall)
    assert again.parse() == {"id": 2512292042121000001, "big": 123456789012345678901234567890, "f": 1.0, "e": 1000.0}
    assert [type(value) for value in again.parse().values()] == [int, int, float, float]


@pytest.mark.parametrize("arguments", ["{", f'{{"n":{"7" * 5000}}}', "[" * 200_000])
def test_arguments_that_cannot_be_read_are_a_value_error(arguments: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        ToolCall("c1", "x", arguments).parse()
    assert len(assistant(ToolCall("c1", "x", arguments)).digest) == 32


def test_no_arguments_are_an_empty_object() -> None:
    assert ToolCall("c1", "x").parse() == ToolCall("c1", "x", " ").parse() == {}
    assert assistant(ToolCall("c1", "x")).digest == assistant(ToolCall("c1", "x", "{}")).digest


def test_a_digest_is_sha_256_over_canonical_json() -> None:
    said = user("Grüß Gott", id="m1", created_at=1_700_000_000_000)
    written = '{"content":[{"kind":"text","text":"Grüß Gott"}],"id":"m1","role":"user"}'.encode()
    assert canonical_json(said) == written
    assert said.digest == hashlib.sha256(written).digest()
    assert digest([said, said]) == hashlib.sha256(said.digest * 2).hexdigest()


def test_a_field_at_its_default_is_not_written() -> None:
    assert canonical_json(Message("user", (), pinned=False, name=None)) == b'{"role":"user"}'
    family = msgspec.json.decode(b'"reasoning"')
    assert b"family" not in canonical_json(user(Opaque("openai", "x", "{}", family)))


def test_a_new_field_with_a_default_changes_no_old_digest() -> None:
    class Later(Message, frozen=True):
        mood: str | None = None

    assert canonical_json(Later("user", (Text("Hi"),), "m1")) == canonical_json(user("Hi", id="m1"))


def test_a_replaced_message_has_its_own_digest() -> None:
    said = user("Hi")
    before = said.digest
    assert said.replace(id="m1").digest != before == said.digest


@pytest.mark.parametrize(
    ("part", "empty"),
    [
        (Text(""), True),
        (Text(" "), False),
        (Reasoning("hm"), True),
        (Refusal("No."), False),
        (Image(url="https://example.org/a.png"), False),
        (Opaque("openai", "reasoning", "{}"), True),
        (Opaque("openai", "web_search_call", "{}", "tool"), False),
        (ToolCall("c1", "x"), False),
    ],
)
def test_a_message_is_empty_when_no_part_says_anything(part: Text, empty: bool) -> None:
    assert is_empty(assistant(part)) is empty


def test_json_of_another_shape_is_refused_with_its_place() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.content\[0\]"):
        msgspec.json.decode(b'{"role":"user","content":[{"kind":"telepathy"}]}', type=Message)


WHOLE: dict[type[Any], dict[str, Any]] = {
    **{kind: {} for kind in get_args(Part)},
    Message: {"role": "user"},
    Text: {"text": "Hi"},
    ToolCall: {"id": "c1", "name": "x"},
    Refusal: {"text": "No."},
    Opaque: {"provider": "openai", "type": "x", "data": "{}"},
}
OTHERS: dict[Any, tuple[Any, ...]] = {
    "content": (7, 1.5, (7,), (user("Hi"),), [None], object()),
    "role": ("developer", "", None, 7),
    "family": ("thoughts", "", None, 7),
    int: (1.5, "5", True, [5]),
    bool: (1, 0, "yes", None),
    str: (7, 1.5, True, b"Hi", ["Hi"], object()),
}
FIELDS = [(kind, field.name) for kind in WHOLE for field in msgspec.structs.fields(kind)]


@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=[f"{kind.__name__}.{name}" for kind, name in FIELDS])
def test_a_value_of_another_type_is_refused_where_it_is_given(kind: type[Any], name: str) -> None:
    (field,) = [field for field in msgspec.structs.fields(kind) if field.name == name]
    wanted = next((each for each in (bool, int) if each in (field.type, *get_args(field.type))), str)
    whole = kind(**WHOLE[kind])
    for value in OTHERS.get(name, OTHERS[wanted]):
        with pytest.raises(InvalidMessage, match=f"{kind.__name__}.{name} is ") as caught:
            kind(**{**WHOLE[kind], name: value})
        assert caught.value.field == name
        assert isinstance(caught.value, ValueError)
        with pytest.raises(InvalidMessage):
            msgspec.structs.replace(whole, **{name: value})


def test_an_error_of_a_value_says_what_was_found_and_what_was_possible() -> None:
    with pytest.raises(InvalidMessage, match=r"Message\.created_at is int or None, not 1.5") as caught:
        user("Hi", created_at=1.5)
    assert (caught.value.found, caught.value.possible) == (1.5, "int or None")
    with pytest.raises(InvalidMessage, match=r"Message\.role is one of assistant, system, tool, user, not 'developer'"):
        Message("developer")  # type: ignore[arg-type]  # what is tested
