"""A file of messages by hand, chained by SHA-256, on dicts (*bare*) and on structs (*typed*)."""

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.floors import typed

WORDS = "We looked into order {0} and found that it left the depot this morning."


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    prev: str
    message: typed.Message


def bare_message(number: int) -> dict[str, Any]:
    return {"role": "assistant", "id": f"m{number}", "content": [{"kind": "text", "text": WORDS.format(number)}]}


def typed_message(number: int) -> typed.Message:
    return typed.Message("assistant", (typed.Text(WORDS.format(number)),), f"m{number}")


class BareFile:
    """A file that is written message by message, each with a write(2) of its own."""

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self.prev = "0" * 64

    def append(self, message: dict[str, Any]) -> None:
        self.write(json.dumps({"prev": self.prev, "message": message}).encode())

    def write(self, line: bytes) -> None:
        os.write(self.file, line + b"\n")
        self.prev = sha256(line).hexdigest()

    def close(self) -> None:
        os.close(self.file)


class TypedFile(BareFile):
    """The same with a struct for each line."""

    def append(self, message: typed.Message) -> None:  # type: ignore[override]  # another kind of message
        self.write(msgspec.json.encode(Line(self.prev, message)))


def read_bare(path: Path) -> None:
    with path.open("rb") as lines:
        for line in lines:
            json.loads(line)


def read_typed(path: Path) -> None:
    decode = msgspec.json.Decoder(Line).decode
    with path.open("rb") as lines:
        for line in lines:
            decode(line)


def verify_bare(path: Path) -> None:
    _verify(path, lambda line: str(json.loads(line)["prev"]))


def verify_typed(path: Path) -> None:
    decode = msgspec.json.Decoder(Line).decode
    _verify(path, lambda line: decode(line).prev)


def _verify(path: Path, prev_of: Callable[[bytes], str]) -> None:
    prev = "0" * 64
    with path.open("rb") as lines:
        for line in lines:
            if prev_of(line) != prev:
                raise ValueError(f"{path}: the chain is broken")
            prev = sha256(line[:-1]).hexdigest()
