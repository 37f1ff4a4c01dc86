"""Where commands read from and write to."""

from pathlib import Path

import pytest

from handrail.cli.sources import new_name, on_disk, write_new
from handrail.sessions import SessionExists


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("-", "stdin.sealed.jsonl"),
        ("logs/chat.json", "chat.sealed.jsonl"),
        ("desk.session.jsonl", "desk.sealed.jsonl"),
        ("plain", "plain.sealed.jsonl"),
    ],
)
def test_a_new_file_is_named_after_the_old_one_and_stands_here(name: str, made: str) -> None:
    assert new_name(name, ".sealed.jsonl") == Path(made)


def test_a_file_that_is_not_there_is_told_before_anything_is_done() -> None:
    with pytest.raises(FileNotFoundError), on_disk("nowhere.json"):
        pytest.fail("nothing is there to work on")


def test_a_new_file_overwrites_nothing_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write_new(tmp_path / "a.json", b"[]")
    with pytest.raises(SessionExists):
        write_new(tmp_path / "a.json", b"{}")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.json", b"[]")]
