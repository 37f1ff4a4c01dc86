"""Real transcripts go in and out without loss, or with each loss listed; other formats are refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.sessions import FormatError, Session, export_to, import_file, parse_file, verify

NAMED = ("chat-completions/openhands-sdk-llm-logs", "chat-completions/tau-bench", "chat-completions/mini-swe-agent")


def files(shared: Path) -> list[Path]:
    corpus = shared / "corpus"
    return [path for path in sorted(corpus.rglob("*")) if path.is_file() and path.name not in ("INDEX.md", "stats.py")]


def is_named(path: Path) -> bool:
    return any(part in str(path) for part in NAMED)


def exactly(text: bytes | str) -> Any:
    return json.loads(text, parse_int=str, parse_float=str)


def changed(document: Any, told: str) -> Any:
    """A document after the changes to its messages that an import tells of."""
    if isinstance(document, list):
        return [message_changed(message, told) for message in document]
    made = dict(document)
    for name in ("messages", "traj"):
        if name in made:
            made[name] = changed(made[name], told)
    if "response" in made:
        choice, *others = made["response"]["choices"]
        choice = choice | {"message": message_changed(choice["message"], told)}
        made["response"] = made["response"] | {"choices": [choice, *others]}
    return made


def message_changed(message: dict[str, Any], told: str) -> dict[str, Any]:
    made = dict(message)
    if "null field function_call left out" in told and made.get("function_call", "") is None:
        del made["function_call"]
    content = made.get("content")
    if "one-text list written as a string" in told and isinstance(content, list) and len(content) == 1:
        made["content"] = content[0]["text"]
    return made


def test_every_named_file_goes_in_and_out_and_each_change_is_told(shared: Path, tmp_path: Path) -> None:
    named = [path for path in files(shared) if is_named(path)]
    assert len(named) >= 5
    for number, path in enumerate(named):
        paths = import_file(path, tmp_path / f"{number}{'' if 'tau-bench' in str(path) else '.jsonl'}")
        exported = [export_to(each, "openai-chat") for each in paths]
        document = exactly(path.read_bytes())
        documents = document if len(paths) > 1 else [document]
        assert len(documents) == len(exported)
        for original, written in zip(documents, exported, strict=True):
            assert changed(original, " ".join(written.losses)) == exactly(written.body)


def test_what_stands_beside_the_messages_is_kept_and_breaches_are_listed(shared: Path, tmp_path: Path) -> None:
    for number, path in enumerate(path for path in files(shared) if "openhands-sdk-llm-logs" in str(path)):
        (made,) = import_file(path, tmp_path / f"{number}.jsonl")
        about = Session(made).about
        assert about is not None
        assert {"messages", "response", "cost"} <= set(json.loads(bytes(about.beside)))
        assert [breach[:2] for breach in about.breaches] == ["P2"]
        assert verify(made).state == "intact"


def test_every_other_format_is_refused_by_what_it_is(shared: Path) -> None:
    others = [path for path in files(shared) if not is_named(path)]
    assert len(others) > 50
    vague = []
    for path in others:
        with pytest.raises(FormatError) as caught:
            parse_file(path)
        if caught.value.found.startswith(("an object", "a list of an object", "neither", "broken", "JSON,")):
            vague.append((str(path), caught.value.found))
    assert vague == []
