"""What an index of tools is: something that is built of a set of tools, and finds some of them for a query."""

from collections.abc import Awaitable, Sequence
from hashlib import sha256
from typing import Protocol, TypeVar

import msgspec

from handrail.agent.models import ToolSpec

BuiltT = TypeVar("BuiltT")


class Hit(msgspec.Struct, frozen=True):
    """A tool that was found: its name, how well it fits (higher is better), and what of the query it fits."""

    name: str
    score: float
    matched: tuple[str, ...] = ()


class ToolIndex(Protocol[BuiltT]):
    """Finds tools. It keeps nothing itself: what it makes of a set of tools is kept by who asks it, once a set."""

    @property
    def hint(self) -> str:
        """What a query is, told to the model."""
        ...

    def build(self, tools: Sequence[ToolSpec]) -> BuiltT:
        """What `search` needs of these tools."""
        ...

    def search(self, built: BuiltT, query: str, limit: int) -> Sequence[Hit] | Awaitable[Sequence[Hit]]:
        """The best hits first, at most `limit`; a query is never blank. What it raises the model is told."""
        ...


def fingerprint(tools: Sequence[ToolSpec]) -> str:
    """The SHA-256 of a set of tools, by their names and descriptions, whatever their order."""
    written = sorted(f"{tool.name}\0{tool.description}\x01" for tool in tools)
    return sha256("".join(written).encode(errors="surrogatepass")).hexdigest()


def is_number(value: object) -> bool:
    """Whether a value is a finite number, and no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
