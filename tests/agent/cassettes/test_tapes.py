"""A cassette's file: what stands in it, and how one that cannot be read is told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.cassettes.talks import recorded
from handrail.agent.cassettes import Cassette
from handrail.agent.cassettes.tapes import read_deltas, read_tape, write_tape, written_deltas
from handrail.agent.errors import CassetteError
from handrail.agent.models import ArgumentsDelta, Delta, ReasoningDelta, TextDelta


def test_a_recording_is_readable_json_with_what_was_asked_and_answered(tmp_path: Path) -> None:
    header, told = map(json.loads, recorded(tmp_path / "a.jsonl", "Hi").read_text().splitlines())
    assert header == {"kind": "header", "format": "handrail-cassette", "version": 1}
    assert told.pop("digest")
    assert told == {
        "kind": "model_call",
        "path": "echo",
        "request": {"model": "m", "messages": [{"role": "user", "content": [{"kind": "text", "text": "Hi"}]}]},
        "answer": {"role": "assistant", "content": [{"kind": "text", "text": "Yes."}]},
        "usage": {},
    }


def test_what_was_read_is_written_as_it_was(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.jsonl", "Hi", "\u2028\ud83d\ude00")
    write_tape(tmp_path / "b.jsonl", read_tape(path))
    assert (tmp_path / "b.jsonl").read_bytes() == path.read_bytes()


def test_deltas_come_back_as_they_were() -> None:
    deltas: list[Delta] = [TextDelta("a"), ReasoningDelta("b"), ArgumentsDelta(1, "c1", "find", "{")]
    assert read_deltas(written_deltas(deltas)) == deltas


def changed(line: int, change: Callable[[dict[str, Any]], object]) -> Callable[[list[bytes]], None]:
    def apply(lines: list[bytes]) -> None:
        told = json.loads(lines[line])
        change(told)
        lines[line] = json.dumps(told).encode()

    return apply


def fail(told: dict[str, Any], error: str) -> None:
    del told["answer"]
    told["error"] = {"type": error, "message": ""}


@pytest.mark.parametrize(
    ("break_it", "problem"),
    [
        (changed(0, lambda told: told.update(version=2)), "line 1: it is handrail-cassette version 2"),
        (lambda lines: lines.__setitem__(0, b"{}"), "line 1: it is no cassette"),
        (lambda lines: lines.__setitem__(1, lines[1][:40]), "line 2: it is no recorded model call"),
        (changed(1, lambda told: told["request"].update(model="n")), "line 2: the request is not the one"),
        (changed(1, lambda told: told.pop("answer")), "line 2: a recording has either an answer or an error"),
        (changed(1, lambda told: told.update(deltas=[["song", "la"]])), "line 2: its deltas or its error"),
        (
            changed(1, lambda told: fail(told, "BuildError")),
            "line 2: its deltas .* BuildError is no error",
        ),
        (changed(1, lambda told: fail(told, "Odd")), "line 2: its deltas .* Odd is no error"),
    ],
)
def test_a_file_that_is_no_cassette_is_refused_naming_the_line(
    break_it: Callable[[list[bytes]], None], problem: str, tmp_path: Path
) -> None:
    path = recorded(tmp_path / "a.jsonl", "Hi")
    lines = path.read_bytes().split(b"\n")
    break_it(lines)
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(CassetteError, match=problem):
        Cassette(path)
