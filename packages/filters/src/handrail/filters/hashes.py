"""SHA-256, whose library is loaded when something is first hashed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from hashlib import _Hash

_loaded: Callable[[bytes], _Hash] | None = None


def sha256(data: bytes = b"") -> _Hash:
    """The running hash of these bytes, as `hashlib` gives it."""
    global _loaded  # every message is hashed here: an import in each call would cost as much again
    if _loaded is None:
        from hashlib import sha256 as library

        _loaded = library
    return _loaded(data)


def sha256_of_each(texts: Iterable[bytes]) -> list[bytes]:
    """The SHA-256 (32 bytes) of each of these."""
    from hashlib import sha256 as hashed

    return [found.digest() for found in map(hashed, texts)]
