"""Pieces are joined to what they are pieces of."""

from typing import Any

import pytest

from agent.providers.openai.asking import as_json
from handrail.agent.errors import InvalidResponse
from handrail.agent.http.secrets import Secret, Where
from handrail.agent.models import ArgumentsDelta
from handrail.agent.providers.openai.pieces import Calls, Words, merged, read_piece

HERE = Where("the model")


def piece(arguments: Any = None, *, name: str | None = None, **fields: Any) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**fields, "function": function}


def joined(*chunks: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    calls = Calls()
    for pieces in chunks:
        calls.take(pieces)
    return [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls.whole()]


def test_a_surrogate_pair_that_was_cut_in_two_is_one_character_again() -> None:
    words = Words()
    assert [words.add(text) for text in ("a\ud83d", "\ude42b", "é")] == ["a", "🙂b", "é"]
    assert words.text == "a🙂bé"


@pytest.mark.parametrize("half", [0xD83D, 0xDE42])
def test_half_a_pair_that_stays_alone_is_a_replacement_mark(half: int) -> None:
    words = Words()
    words.add(f"a{chr(half)}")
    assert words.text == "a\N{REPLACEMENT CHARACTER}"
    words.add("b")
    assert words.text == "a\N{REPLACEMENT CHARACTER}b"


def test_pieces_of_mixed_calls_are_joined_by_index() -> None:
    first = [piece('{"a', index=0, id="A", name="f"), piece("{", index=1, id="B", name="g")]
    assert joined(first, [piece("}", index=1), piece('":1}', index=0)]) == [("A", "f", '{"a":1}'), ("B", "g", "{}")]


def test_calls_stand_in_the_order_of_their_indices() -> None:
    assert [call[0] for call in joined([piece(index=1, id="B", name="g")], [piece(index=0, id="A", name="f")])] == [
        "A",
        "B",
    ]


def test_without_an_index_pieces_are_joined_by_id() -> None:
    chunks = [[piece("1", id="A", name="f")], [piece("2", id="B", name="g")], [piece("3", id="A")]]
    assert joined(*chunks) == [("A", "f", "13"), ("B", "g", "2")]


def test_without_index_and_id_pieces_go_to_the_last_call_and_a_name_begins_the_next() -> None:
    chunks = [[piece("1", name="f")], [piece("2")], [piece("3", name="g")], [piece("4")]]
    assert joined(*chunks) == [("", "f", "12"), ("", "g", "34")]


def test_without_index_and_id_several_pieces_of_one_chunk_go_by_their_order() -> None:
    chunks = [[piece("1", name="f"), piece("2", name="g")], [piece("3"), piece("4")]]
    assert joined(*chunks) == [("", "f", "13"), ("", "g", "24")]


def test_calls_that_all_have_the_index_of_the_first_are_told_apart_by_id() -> None:
    chunks = [[piece("{}", index=0, id="A", name="f")], [piece("[", index=0, id="B", name="g")], [piece("]", index=0)]]
    assert joined(*chunks) == [("A", "f", "{}"), ("B", "g", "[]")]


def test_a_name_that_is_repeated_is_one_name_and_one_in_pieces_is_joined() -> None:
    repeated = [[piece("1", index=0, name="add")], [piece("2", index=0, name="add")]]
    in_pieces = [[piece(index=0, name="multi")], [piece(index=0, name="ply")]]
    assert [joined(*chunks)[0][1] for chunks in (repeated, in_pieces)] == ["add", "multiply"]


def test_arguments_given_as_an_object_are_its_json_with_every_digit() -> None:
    arguments = '{"n":123456789012345678901234567890,"f":1.0,"e":1e3}'
    call = f'{{"index": 0, "function": {{"name": "f", "arguments": {arguments}}}}}'
    assert joined([read_piece(call, HERE)])[0][2] == arguments


def test_a_delta_says_which_call_it_belongs_to() -> None:
    calls = Calls()
    calls.take([piece("", index=3, id="A", name="f")])
    assert calls.take([piece("{}", index=3)]) == [ArgumentsDelta(0, "A", "f", "{}")]


def test_what_else_is_on_a_call_stays_on_it() -> None:
    calls = Calls()
    calls.take([{**piece("{}", index=0, id="A", name="f"), "extra_content": {"google": {"thought_signature": "c2ln"}}}])
    assert calls.whole()[0]["extra_content"] == {"google": {"thought_signature": "c2ln"}}


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        (None, 1, 1),
        (1, None, 1),
        ("a", "b", "ab"),
        ({"text": "a", "type": "t"}, {"text": "b", "type": "t"}, {"text": "ab", "type": "t"}),
        ({"signature": None}, {"signature": "s"}, {"signature": "s"}),
        ([{"index": 0, "text": "a"}], [{"index": 0, "text": "b"}], [{"index": 0, "text": "ab"}]),
        ([{"index": 0}], [{"index": 1}], [{"index": 0}, {"index": 1}]),
        ([1], [2], [1, 2]),
        (1, 2, 2),
    ],
)
def test_values_are_merged_by_what_they_are(old: Any, new: Any, both: Any) -> None:
    assert merged([old, new]) == both


def test_many_pieces_are_joined_as_one_after_the_other_would_be() -> None:
    first = [{"index": 0, "text": "a", "type": "t"}, {"index": 0, "text": "x"}, "alone"]
    others: list[Any] = [
        [{"index": 0, "text": "y"}],
        None,
        [{"index": 7}, {"text": "no index"}],
        [{"index": 7, "n": 1}],
    ]
    assert merged([first, *others]) == [
        first[0],
        {"index": 0, "text": "xy"},
        "alone",
        {"index": 7, "n": 1},
        others[2][1],
    ]
    assert merged(["a", 1, "b", "c", None]) == "bc"
    assert merged([{"a": "x", "id": "1"}, {"a": None, "id": "2"}, {"a": "y", "b": None}]) == {"a": "xy", "id": "2"}
    assert merged([{"a": None}, {"a": None}]) == {"a": None}
    assert merged([None]) is merged([]) is None


def test_very_many_pieces_of_a_call_are_joined_at_once() -> None:
    calls = Calls()
    for number in range(50_000):
        details = [{"index": 0, "text": "abcd" * 10}, {"index": number + 1}]
        calls.take([{**piece(index=0), "details": details}])
    (details,) = [call["details"] for call in calls.whole()]
    assert len(details) == 50_001
    assert details[0]["text"] == "abcd" * 500_000


def test_half_a_pair_in_what_else_is_on_a_call_finds_its_other_half() -> None:
    calls = Calls()
    calls.take([{**piece(index=0), "note": "a\ud83d"}])
    calls.take([{**piece(index=0), "note": "\ude42\ud83d"}])
    assert calls.whole()[0]["note"] == "a🙂\N{REPLACEMENT CHARACTER}"


def test_numbers_in_an_event_keep_all_their_digits() -> None:
    text = '{"a":12345678901234567890123,"b":1.10,"c":1e400}'
    assert as_json(read_piece(text, HERE)) == text


@pytest.mark.parametrize("data", ["{", "", "[]", "1", "nonsense", "[" * 100_000])
def test_an_event_that_is_no_object_is_an_invalid_response(data: str) -> None:
    with pytest.raises(InvalidResponse, match="an event is not"):
        read_piece(data, HERE)


def test_the_error_for_an_event_holds_nothing_of_it() -> None:
    for data in ('{"key": sk-test-0123456789', "7"):
        with pytest.raises(InvalidResponse) as caught:
            read_piece(data, Where("the model", (Secret("sk-test-0123456789"),)))
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert "sk-test" not in str(caught.value)
