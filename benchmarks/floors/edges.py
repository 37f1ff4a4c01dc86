"""A handoff by hand: what crosses is chosen, digested and recorded, on dicts (*bare*) and on structs (*typed*)."""

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec

from benchmarks.floors import bare, typed

WINDOW = 10


def bare_seed(messages: Sequence[bare.Message]) -> list[bare.Message]:
    """System messages, the last ten others and the last user message, without results that carry a token."""
    start = len(messages) - WINDOW
    kept = list(messages[start:])
    if not any([message["role"] == "user" for message in kept]):
        kept[:0] = [message for message in reversed(messages[:start]) if message["role"] == "user"][:1]
    return [message for message in kept if message["role"] != "tool" or "[REDACTED:" not in message["content"]]


def bare_handoff(messages: Sequence[bare.Message], file: int) -> list[bare.Message]:
    seed = bare_seed(messages)
    record = {"kind": "handoff", "from": "Desk", "to": "Billing", "before": len(messages), "seed": len(seed)}
    os.write(file, json.dumps(record).encode() + b"\n")
    return seed


class Crossing(msgspec.Struct, frozen=True, tag_field="kind", tag="handoff"):
    """The record of a handoff."""

    source: str
    target: str
    filter: dict[str, Any]
    view: str
    seed: str
    before: int
    crossed: tuple[tuple[int, int], ...]


class Ledger:
    """Typed messages with the digest of each and a running digest of all."""

    def __init__(self, messages: Sequence[typed.Message]) -> None:
        self.messages = messages
        self.encode = msgspec.json.Encoder(order="sorted").encode
        self.digests = [sha256(self.encode(message)).digest() for message in messages]
        self.running = sha256(b"".join(self.digests))

    def handoff(self, file: int) -> list[typed.Message]:
        """What crosses, with its record written and the digests of both sides in it."""
        messages, length = self.messages, len(self.messages)
        places = list(range(length - WINDOW, length))
        if not any([messages[place].role == "user" for place in places]):
            last = next((place for place in range(length - WINDOW - 1, -1, -1) if messages[place].role == "user"), None)
            places = places if last is None else [last, *places]
        places = [
            place for place in places if messages[place].role != "tool" or "[REDACTED:" not in messages[place].text
        ]
        record = Crossing(
            "Desk",
            "Billing",
            {"kind": "last-n", "version": 1, "params": {"n": WINDOW}},
            self.running.copy().hexdigest(),
            sha256(b"".join([self.digests[place] for place in places])).hexdigest(),
            length,
            ((places[0], places[-1] + 1),),
        )
        os.write(file, self.encode(record) + b"\n")
        return [messages[place] for place in places]
