"""The digests of many messages at once."""

import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from handrail.filters import History, Image, Message, ToolCall, assistant, digest, system, tool_result, user
from handrail.filters.digests import joined_digests, written
from handrail.filters.messages import canonical_json


def conversation(arguments: Callable[[int], str] = '{{"n":{}}}'.format, turns: int = 20) -> list[Message]:
    messages: list[Message] = []
    for turn in range(turns):
        call = ToolCall(f"c{turn}", "lookup", arguments(turn))
        messages += [
            user(f'Where is "{turn}"?\n\r\u2028é🍸', id=f"u{turn}", created_at=17 * turn),
            assistant("One moment.", call, id=f"a{turn}", agent="Desk", created_at=-turn),
            tool_result(call, (Image(data="aGk="), "gone"), id=f"r{turn}"),
            assistant(f'"created_at":17,"role" {turn}', id=f"s{turn}", created_at=1_700_000_000_000),
        ]
    return messages


def one_by_one(messages: list[Message]) -> list[bytes]:
    return [canonical_json(message) for message in messages]


def test_what_is_written_of_many_is_the_canonical_json_of_each() -> None:
    assert written(conversation()) == one_by_one(conversation())


@pytest.mark.parametrize(
    "odd",
    [
        "",
        " ",
        '{"b":1,"a":2}',
        '{"a":1}\n',
        '{"a":1',
        '"b":2}',
        "1\n2",
        '{"n": 7}',
        '{"a":1.0}',
        '{"a":"\\u00e9"}',
        '{"\ufb33":1,"🍸":2}',
        '{"$handrail":["integer","1"]}',
        "[" * 200,
        "9007199254740993",
    ],
)
def test_arguments_that_are_not_canonical_are_written_so_wherever_they_stand(odd: str) -> None:
    for place in (0, 7, 19):
        messages = conversation(lambda turn, place=place: odd if turn == place else "{}")  # type: ignore[misc]
        assert written(messages) == one_by_one(messages)
    cut = conversation(lambda turn: ("[1", "2]", odd)[turn % 3])
    assert written(cut) == one_by_one(cut)


def test_digests_known_before_and_worked_out_together_are_the_same() -> None:
    expected = b"".join([message.digest for message in conversation()])
    for known in (0, 1, 40, 79, 80):
        messages = conversation()
        assert [len(message.digest) for message in messages[:known]] == [32] * known
        assert joined_digests(messages) == expected
        assert b"".join([message.__dict__["digest"] for message in messages]) == expected


def test_a_long_history_has_the_digest_of_its_messages_whatever_its_length() -> None:
    messages = conversation(turns=600)
    for length in (0, 1, 8, 9, 128, 129, 1024, 1025, 2400):
        assert History(message.replace() for message in messages[:length]).digest == digest(messages[:length])


class Elsewhere(list[Message]):
    """Messages that are made when they are read, and that nobody keeps."""

    def __iter__(self) -> Iterator[Message]:
        return (assistant(f"{number} ".ljust(5_000), id=f"m{number}") for number in range(len(self)))


def test_of_messages_that_are_read_from_elsewhere_some_are_held_at_a_time() -> None:
    def peak(length: int) -> int:
        elsewhere = Elsewhere([user("unread")] * length)
        tracemalloc.start()
        found = joined_digests(elsewhere)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found == b"".join([message.digest for message in elsewhere])
        return held

    assert peak(8_000) < 1.5 * peak(3_000)


def test_a_message_that_stands_twice_counts_twice() -> None:
    messages = [system("Be brief.", id="s")] * 12
    assert joined_digests(messages) == messages[0].digest * 12


def test_what_is_read_from_elsewhere_has_the_same_digests_and_keeps_none() -> None:
    read = tuple(conversation(turns=600))
    assert joined_digests(read) == b"".join([message.digest for message in conversation(turns=600)])
    assert not any("digest" in vars(message) for message in read)
