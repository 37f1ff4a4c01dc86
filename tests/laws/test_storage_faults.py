"""Crashes, failed writes, half characters and large numbers cost a session nothing more than they must, wherever it is
kept."""

import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.agent import Agent, ScriptedModel, tool
from handrail.agent.replay import rerun
from handrail.filters import ToolCall, assistant, user
from handrail.sessions import (
    DamagedSession,
    FormatError,
    MessageRecord,
    NotASession,
    Passphrase,
    Session,
    SessionConflict,
    Store,
    ToolResultRecord,
    diff,
    export_to,
    import_file,
    open_store,
    verify,
)
from sessions.conversations import secret

BEFORE = "eyJzZXEiOjEsInJvbGUiOiJ1c2VyIiwiY29udGVudCI6ImJlZm9yZSJ9C"
TORN = {
    "half_json": BEFORE + "nsic2VxIjoyLCJyb2xlIjoiYXNzaXN0",
    "half_character": BEFORE + "nsic2VxIjoyLCJyb2xlIjoidXNlciIsImNvbnRlbnQiOiJjYWbD",
    "nul_padding": BEFORE + "gAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
}
WHOLE = BEFORE + "nsic2VxIjoyLCJyb2xlIjoidXNlciIsImNvbnRlbnQiOiJrZXB0In0="
HALVES = "ok \ud83d end \U0001f378 \udcb0 é 北"
MENDED = "ok \ufffd end \U0001f378 \ufffd é 北"
NUMBERS = '{"id": 2512292042121000001, "big": 123456789012345678901234567890, "f": 1.0, "e": 1e3, "neg0": -0.0}'
HUGE = '{"id": ' + "7" * 5000 + "}"


@pytest.fixture(params=["plain", "encrypted"])
def passphrase(request: pytest.FixtureRequest) -> Passphrase | None:
    """What the sessions are encrypted with, if they are."""
    return secret() if request.param == "encrypted" else None


@pytest.fixture
def store(store_url: str, passphrase: Passphrase | None) -> Iterator[Store]:
    with open_store(store_url, passphrase=passphrase) as store:
        yield store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def said(text: str) -> MessageRecord:
    return MessageRecord(path="desk", message=user(text))


def texts(session: Session) -> list[str]:
    return [message.text for message in session.log]


@pytest.mark.parametrize("name", TORN)
def test_what_a_crash_left_is_cut_and_told_and_the_next_record_stands_alone(
    path: Path, passphrase: Passphrase | None, name: str
) -> None:
    with Session(path, passphrase=passphrase) as session:
        session.append(said("before"))
    whole, torn = path.read_bytes(), b64decode(TORN[name]).partition(b"\n")[2]
    path.write_bytes(whole + torn)
    session = Session(path, passphrase=passphrase)
    assert (texts(session), session.torn is not None) == (["before"], True)
    assert path.read_bytes() == whole + torn
    with session:
        session.append(said("after"))
    assert path.read_bytes().startswith(whole)
    assert texts(session) == ["before", "after"]
    assert verify(path, passphrase=passphrase).state == "intact"


def test_a_whole_record_that_lacks_its_newline_is_kept(path: Path, passphrase: Passphrase | None) -> None:
    with Session(path, passphrase=passphrase) as session:
        session.append(said("before"))
        session.append(said("kept"))
    path.write_bytes(path.read_bytes()[:-1])
    with Session(path, passphrase=passphrase) as session:
        session.append(said("after"))
    assert texts(session) == ["before", "kept", "after"]
    assert verify(path, passphrase=passphrase).state == "intact"


@pytest.mark.parametrize("content", [*TORN.values(), WHOLE], ids=[*TORN, "whole_but_no_newline"])
def test_a_torn_file_that_is_no_session_is_named_and_never_changed(path: Path, content: str) -> None:
    path.write_bytes(b64decode(content))
    with pytest.raises(NotASession):
        Session(path).append(said("after"))
    if content == WHOLE:
        (made,) = import_file(path, path.with_name("imported.jsonl"))
        assert texts(Session(made)) == ["before", "kept"]
    else:
        with pytest.raises(FormatError, match=r"line 2|byte 80"):
            import_file(path, path.with_name("imported.jsonl"))
        assert not path.with_name("imported.jsonl").exists()
    assert path.read_bytes() == b64decode(content)


async def test_a_call_that_a_crash_tore_leaves_no_result_without_it(path: Path, passphrase: Passphrase | None) -> None:
    with Session(path, passphrase=passphrase) as session:
        session.append(said("before"))
        session.append(MessageRecord(path="desk", message=assistant(ToolCall("c1", "look"), agent="desk")))
    path.write_bytes(path.read_bytes()[:-30])
    with Session(path, passphrase=passphrase) as session:
        result = await Agent("desk", model=ScriptedModel("Hello.")).run("after", session=session)
    assert result.recovered
    assert [(message.role, message.text) for message in session.log] == [
        ("user", "before"),
        ("user", "after"),
        ("assistant", "Hello."),
    ]


def test_after_a_write_that_failed_half_way_another_connection_writes_at_once(shared_url: str, path: Path) -> None:
    with Session(path) as session:
        session.append(said("one"), said("two"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[2].replace(b"two", b"six"), lines[2]]))
    with open_store(shared_url) as store, open_store(shared_url) as elsewhere:
        store.create("desk", tags=["kept"]).close()
        held = store.open("desk")
        wrong: list[tuple[type[Exception], Callable[[], object]]] = [
            (TypeError, lambda: held.append(said("good"), MessageRecord(path=object(), message=user("x")))),  # type: ignore[arg-type]
            (TypeError, lambda: store.tag("desk", object())),  # type: ignore[arg-type]
            (DamagedSession, lambda: store.import_(path, as_="half")),
            (SessionConflict, lambda: elsewhere.delete("desk")),
        ]
        for number, (kind, act) in enumerate(wrong):
            with pytest.raises(kind):
                act()
            with elsewhere.open("other", lock_timeout=0) as other:
                other.append(said(str(number)))
        held.append(said("after"))
        held.close()
        assert {entry.id: entry.tags for entry in elsewhere.list()} == {"other": (), "desk": ("kept",)}
        assert (texts(elsewhere.open("desk")), texts(store.open("other"))) == (["after"], ["0", "1", "2", "3"])


def scraper(*arguments: str) -> Agent:
    """An agent whose tool gives half characters, called once for each of the arguments."""

    @tool
    async def scrape(q: str = "") -> str:
        return HALVES

    asked = assistant([ToolCall(f"c{number}", "scrape", each) for number, each in enumerate(arguments, 1)])
    return Agent("desk", model=ScriptedModel(asked, "Done."), tools=[scrape])


async def test_half_a_character_in_results_arguments_and_keys_harms_nothing_on_any_way_out(
    store: Store, tmp_path: Path
) -> None:
    with store.open("desk") as session:
        await scraper("{}", '{"q":"\\udc97"}', '{"\\ud800":1}').run("go \ud83d", session=session)
        results = [record.message.text for record in session.records() if isinstance(record, ToolResultRecord)]
    assert results[:2] == [MENDED, MENDED]
    assert session.log[0].text == "go \ufffd"
    path = store.export("desk", tmp_path / "desk.jsonl")
    with open_store("memory:") as other:
        other.import_(path, as_="again")
        again = other.open("again", passphrase=store.passphrase)
        assert again.log == store.open("desk").log
        assert diff(again, store.open("desk")).same
    (tmp_path / "chat.json").write_bytes(export_to(path, "openai-chat", passphrase=store.passphrase).body)
    (back,) = import_file(tmp_path / "chat.json", tmp_path / "back.jsonl", agent="desk")
    assert texts(Session(back)) == texts(session)
    assert (await rerun(store.open("desk"), scraper())).ok


async def test_half_a_character_harms_no_page(tmp_path: Path) -> None:
    await scraper("{}", '{"q":"\\udc97"}', '{"\\ud800":1}').run("go \ud83d", session=tmp_path / "desk.jsonl")
    command = [
        sys.executable,
        "-m",
        "handrail.cli",
        "view",
        str(tmp_path / "desk.jsonl"),
        "-o",
        str(tmp_path / "p.html"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    assert MENDED in (tmp_path / "p.html").read_text(encoding="utf-8")


def finder(seen: list[dict[str, Any]], *arguments: str) -> Agent:
    """An agent whose tool keeps what it was given, called once for each of the arguments."""

    @tool(side_effects="read_only")
    async def find(id: int, big: int = 0, f: float = 0, e: float = 0, neg0: float = 0) -> str:
        seen.append({"id": id, "big": big, "f": f, "e": e, "neg0": neg0})
        return str(id)

    asked = assistant([ToolCall(f"c{number}", "find", each) for number, each in enumerate(arguments, 1)])
    return Agent("desk", model=ScriptedModel(asked, "Done."), tools=[find])


async def test_numbers_come_through_tool_store_export_and_replay_digit_for_digit(store: Store, tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    with store.open("desk") as session:
        await finder(seen, NUMBERS, HUGE).run("go", session=session)
    assert seen == [
        {"id": 2512292042121000001, "big": 123456789012345678901234567890, "f": 1.0, "e": 1000.0, "neg0": -0.0}
    ]
    assert [type(value) for value in seen[0].values()] == [int, int, float, float, float]
    path = store.export("desk", tmp_path / "desk.jsonl")
    with open_store("memory:", passphrase=store.passphrase) as other:
        other.import_(path, as_="again")
        for log in (store.open("desk").log, other.open("again").log):
            assert [call.arguments for call in log[1].tool_calls] == [NUMBERS, HUGE]
            assert [message.is_error for message in log if message.role == "tool"] == [False, True]
    exported = export_to(path, "openai-chat", passphrase=store.passphrase)
    (tmp_path / "chat.json").write_bytes(exported.body)
    (back,) = import_file(tmp_path / "chat.json", tmp_path / "back.jsonl", agent="desk")
    assert [call.arguments for call in Session(back).log[1].tool_calls] == [NUMBERS, HUGE]
    assert (await rerun(store.open("desk"), finder(seen), allow=["find"])).ok
    assert len(seen) == 2
    assert seen[0] == seen[1]
