"""Sessions of a store, wherever a command takes a session."""

import json
import sqlite3
from pathlib import Path

import pytest

from cli.conftest import Run, one_line
from handrail.cli.stores import plain_name, split
from handrail.sessions import open_store

POLICY = '[[rule]]\nsource = "triage"\nallow_targets = ["sales"]\n'
SHOP = "from handrail.cli.desk import support_desk\n\ndesk = support_desk()\n"


@pytest.fixture(params=["chats.db", "chats/"])
def kept(request: pytest.FixtureRequest, tmp_path: Path, desk_session: Path) -> str:
    """The desk's session in a store."""
    with open_store(f"{tmp_path}/{request.param}") as store:
        store.import_(desk_session, as_="customer 17")
    return f"{request.param}#customer 17"


def test_a_session_of_a_store_is_checked_and_counted_like_its_file(
    handrail_here: Run, kept: str, desk_session: Path
) -> None:
    for command in ("verify", "stats"):
        from_file, from_store = [
            json.loads(handrail_here(command, name, "--json").stdout) | {"file": ""} for name in (desk_session, kept)
        ]
        assert from_file == from_store


def test_a_session_of_a_store_is_compared_with_its_file(handrail_here: Run, kept: str, desk_session: Path) -> None:
    outcome = handrail_here("diff", kept, desk_session, "--json")
    assert (outcome.returncode, json.loads(outcome.stdout)["a"]) == (0, kept)


def test_a_session_of_a_store_is_filtered_audited_and_sealed(handrail_here: Run, kept: str, tmp_path: Path) -> None:
    (tmp_path / "desk.toml").write_text(POLICY)
    assert "would cross" in handrail_here("filter", kept, "--agent", "triage", "--filter", "full").stdout
    assert "triage -> billing" in handrail_here("filter", kept, "--from", "triage", "--to", "billing").stdout
    audited = handrail_here("audit", kept, "--policy", "desk.toml", "--json")
    assert (audited.returncode, json.loads(audited.stdout)["file"]) == (1, kept)
    assert handrail_here("export", kept).stdout == f"customer-17.sealed.jsonl: a sealed copy of {kept}\n"
    assert handrail_here("verify", "customer-17.sealed.jsonl", "--require-sealed").returncode == 0


def test_a_session_of_a_store_is_looked_at_and_run_again(handrail_here: Run, kept: str, tmp_path: Path) -> None:
    (tmp_path / "shop_of_stores.py").write_text(SHOP)
    assert handrail_here("view", kept).returncode == 0
    assert "parcel 8841" in (tmp_path / "customer-17.html").read_text()
    assert handrail_here("replay", kept, "shop_of_stores:desk").returncode == 0


def test_every_kind_of_store_serves_every_command_and_no_password_is_told(
    handrail: Run, shared_url: str, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    url = shared_url.replace("postgres:@", "postgres:hush-hush@")
    name = f"{url}#a"
    outcomes = [
        handrail("chat", "shop:desk", "--session", name, input="Was I charged twice on invoice 1042?\n"),
        handrail("run", "shop:desk", "yes, refund it", "--session", name),
        handrail("run", "shop:desk", "thanks", "--session", name, "--json"),
        *[handrail(command, name) for command in ("verify", "stats", "view", "export")],
        *[handrail(command, name, "--json") for command in ("verify", "stats", "filter")],
        handrail("filter", name),
        handrail("filter", name, "--from", "triage"),
        handrail("diff", name, name),
        handrail("replay", name, "shop:desk"),
        handrail("sessions", "list", "--store", url),
        handrail("sessions", "show", "a", "--store", url),
        handrail("sessions", "fork", "a", "--store", url),
        handrail("sessions", "rm", "a", "--yes", "--store", url),
    ]
    told = [outcome.stdout + outcome.stderr for outcome in outcomes] + [(tmp_path / "a.html").read_text()]
    assert [outcome.returncode for outcome in outcomes] == [0] * len(outcomes), "".join(told)
    assert not any(["hush-hush" in text for text in told])


@pytest.mark.parametrize("name", ["chats.db#a", "chats/#a", "#a"])
def test_a_run_goes_on_in_a_store(handrail: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    handrail("run", "shop:desk", "Was I charged twice on invoice 1042?", "--session", name)
    outcome = handrail("run", "shop:desk", "yes, refund it", "--session", name, "--json")
    result = json.loads(outcome.stdout)
    assert (result["agent"], result["session"]) == ("billing", name)


def test_a_sealed_copy_is_gone_on_from_in_a_file(handrail_here: Run, desk_session: Path, tmp_path: Path) -> None:
    (tmp_path / "shop_of_copies.py").write_text(SHOP)
    handrail_here("export", desk_session, "-o", "sealed.jsonl")
    arguments = "run", "shop_of_copies:desk", "Hi", "--continue-from", "sealed.jsonl", "--session"
    assert "--continue-from begins a new file" in one_line(handrail_here(*arguments, "chats.db#a"), 2)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("-", None),
        ("a.jsonl", None),
        ("a#b.jsonl", None),
        ("there#a.db#b", None),
        ("chats.db#a", ("chats.db", "a")),
        ("chats.db#a#b", ("chats.db", "a#b")),
        ("sqlite:///chats.db#a/b", ("sqlite:///chats.db", "a/b")),
        ("postgresql://host/name#a", ("postgresql://host/name", "a")),
        ("new/#a", ("new/", "a")),
        ("#a", ("", "a")),
    ],
)
def test_a_name_is_a_file_unless_a_store_stands_before_the_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, found: tuple[str, str] | None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there#a.db#b").write_text("a file")
    assert split(name) == found
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there#a.db#b"]


@pytest.mark.parametrize(("name", "plain"), [("a/b.jsonl", "a/b.jsonl"), ("chats.db#../a b", "..-a-b.jsonl")])
def test_what_is_made_of_a_session_is_named_after_its_id(name: str, plain: str) -> None:
    assert plain_name(name) == plain


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("chats.db#nobody", "there is no session of this id: 'nobody'; `handrail sessions list` says which there are"),
        ("chats.db#", "no session can have this id"),
        ("nowhere.db#a", "nowhere.db: there is no store here"),
        ("redis://host#a", "no store is named by redis:"),
        ("a#b.jsonl", "a#b.jsonl: there is no such file or folder"),
    ],
)
def test_what_is_not_there_is_told_and_nothing_is_made(
    handrail_here: Run, tmp_path: Path, name: str, said: str
) -> None:
    with open_store(tmp_path / "chats.db") as store:
        store.create("a").close()
    before = sorted(path.name for path in tmp_path.iterdir())
    assert said in one_line(handrail_here("stats", name), 2)
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("chats.db-")) == before


def test_a_line_that_was_changed_in_a_database_is_named(handrail_here: Run, tmp_path: Path, desk_session: Path) -> None:
    with open_store(tmp_path / "chats.db") as store:
        store.import_(desk_session, as_="a")
    with sqlite3.connect(tmp_path / "chats.db") as database:
        database.execute("UPDATE handrail_lines SET line = CAST(replace(line, '8841', '8842') AS BLOB)")
    database.close()
    outcome = handrail_here("verify", "chats.db#a")
    assert outcome.returncode == 1
    assert "tampered" in outcome.stdout
