"""Digests, canonical JSON and histories, on any messages."""

import contextlib
import json
import pickle
from typing import Any, get_args

import msgspec
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from handrail.filters import History, Message, digest
from handrail.filters.canonical import OWN_KEY, canonical_text, not_canonical
from handrail.filters.digests import written
from handrail.filters.errors import InvalidMessage
from handrail.filters.messages import Part, canonical_json
from handrail.filters.surveys import Survey
from laws.strategies import histories, messages

exact = st.integers(-(2**53) + 1, 2**53 - 1)
plain = st.recursive(
    st.none() | st.booleans() | exact | st.floats(-(2.0**52), 2.0**52) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
).filter(lambda value: OWN_KEY not in json.dumps(value))


@given(messages)
def test_our_sorted_encoding_is_the_canonical_json_of_the_standard(message: Message) -> None:
    encoded = canonical_json(message)
    assert encoded == rfc8785.dumps(json.loads(encoded))
    assert b"created_at" not in encoded


@given(st.lists(messages, max_size=30))
def test_what_is_written_of_many_is_what_is_written_of_each(several: list[Message]) -> None:
    assert written(several) == [canonical_json(message) for message in several]


@given(st.lists(plain.map(json.dumps) | st.text(st.sampled_from('{}[]",:1a \n'), max_size=9), max_size=5))
def test_texts_that_are_said_to_stay_are_canonical(texts: list[str]) -> None:
    odd = not_canonical(texts)
    assert all([place in odd or canonical_text(text) == text for place, text in enumerate(texts)])


@given(messages)
def test_a_message_comes_back_from_json(message: Message) -> None:
    again = msgspec.json.decode(msgspec.json.encode(message), type=Message)
    assert again == message
    assert again.digest == message.digest


@given(messages)
def test_the_digest_does_not_know_when_something_was_said(message: Message) -> None:
    assert message.replace(created_at=17).digest == message.replace(created_at=None).digest


@given(plain)
def test_a_json_text_is_canonical_whatever_its_spaces_escapes_and_order_of_keys(value: Any) -> None:
    expected = rfc8785.dumps(value).decode()
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)):
        assert canonical_text(text) == expected


@given(plain)
def test_the_canonical_form_is_its_own(value: Any) -> None:
    once = canonical_text(json.dumps(value))
    assert canonical_text(once) == once


@given(st.text(st.sampled_from('{}[]",:\\u09dae1.-$hNI \ud800'), max_size=60))
def test_any_text_has_a_canonical_form_that_can_be_written(text: str) -> None:
    Message("user", (), "", name=canonical_text(text)).digest  # noqa: B018  # it must not raise
    assert canonical_text(text) == canonical_text(text)


@given(histories, histories)
def test_a_history_behaves_like_a_tuple(history: History, other: History) -> None:
    model = tuple(history)
    assert history == model
    assert model == history
    assert hash(history) == hash(model)
    assert (len(history), list(reversed(history))) == (len(model), list(reversed(model)))
    assert tuple(history + other) == model + tuple(other)
    assert tuple(model + other) == model + tuple(other)
    assert (history == other) == (model == tuple(other))
    assert pickle.loads(pickle.dumps(history)) == history
    assert all(message in history and history.index(message) == model.index(message) for message in model)


@given(histories, st.slices(12))
def test_a_slice_of_a_history_is_that_of_a_tuple(history: History, cut: slice) -> None:
    assert tuple(history[cut]) == tuple(history)[cut]


@given(st.lists(messages, max_size=8), st.lists(st.tuples(st.integers(0, 8), messages), max_size=12))
def test_histories_that_share_a_buffer_do_not_see_each_other(
    start: list[Message], steps: list[tuple[int, Message]]
) -> None:
    known = [(History(start), tuple(start))]
    for which, message in steps:
        history, model = known[which % len(known)]
        known.append((history.append(message), (*model, message)))
        history.survey()
    for history, model in known:
        assert tuple(history) == model
        assert history.digest == digest(model)
        assert seen(history.survey()) == seen(History(model).survey())


def seen(survey: Survey) -> dict[str, Any]:
    return {name: getattr(survey, name) for name in Survey.__slots__ if name != "transfer_calls"}


@given(histories, st.integers(0, 12))
def test_what_is_known_of_a_prefix_is_what_a_walk_finds(history: History, length: int) -> None:
    history.survey()
    prefix = history.prefix(length)
    assert seen(prefix.survey()) == seen(History(tuple(prefix)).survey())
    assert prefix.digest == digest(prefix)


@given(histories)
def test_a_message_is_found_by_its_id(history: History) -> None:
    assert [history.position(message.id) for message in history] == list(range(len(history)))
    assert history.position("nobody") is None
    assert history.position("") is None


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(max_size=4),
    st.just([7]),
    st.builds(object),
)


@given(st.sampled_from([Message, *get_args(Part)]), st.data())
def test_what_a_message_is_made_of_is_refused_or_can_be_read_again(kind: Any, data: st.DataObject) -> None:
    fields = [field.name for field in msgspec.structs.fields(kind)]
    given_fields = {name: data.draw(anything, name) for name in fields if data.draw(st.booleans(), f"{name} is given")}
    role = {"role": "user"} if kind is Message else {}
    required = {field.name: "x" for field in msgspec.structs.fields(kind) if field.required}
    made = None
    with contextlib.suppress(InvalidMessage):
        made = kind(**{**required, **role, **given_fields})
    assert made is None or msgspec.json.decode(msgspec.json.encode(made), type=kind) == made
