"""Who makes a session of another one and is killed at any moment: the new one is there whole, or not at all."""

from pathlib import Path
from random import Random

import pytest

from handrail.filters import assistant, last_n, user
from handrail.sessions import export_to, read, verify
from sessions.conversations import Conversation, secret
from sessions.crashes.jobs import MAKERS
from sessions.crashes.killing import SEED, Killer

KILLS = 12


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session of some length, and beside it the same as a foreign transcript."""
    path = tmp_path_factory.mktemp("source") / "source.jsonl"
    with Conversation(path) as conversation:
        for number in range(30):
            conversation.say("desk", user(f"Question {number}?" + "!" * 2000))
            conversation.say("desk", assistant(f"Answer {number}." + "." * 2000, agent="desk"))
        conversation.hand_over("desk", "billing", last_n(2))
    path.with_suffix(".json").write_bytes(export_to(path, "openai-chat").body)
    return path


@pytest.mark.parametrize(
    ("how", "end"),
    [(how, ".jsonl") for how in MAKERS] + [("export", ".gz"), ("export", ".zst")],
)
def test_what_was_made_when_the_maker_was_killed_is_whole(
    killer: Killer, source: Path, tmp_path: Path, how: str, end: str
) -> None:
    print(f"KILL_SEED={SEED}")
    dice, before = Random(f"{SEED}{how}{end}"), killer.kills
    passphrase = secret() if how == "encrypt" else None
    for kill in range(KILLS):
        folder = tmp_path / f"{kill}"
        folder.mkdir()
        job = ("sessions.crashes.jobs:make", how, source, folder, end)
        said = killer.kill(*job, after=dice.uniform(0, 0.02), lines=dice.choice((1, 1, 2, 3)))
        made = [path for path in folder.glob("**/*") if path.is_file() and path.suffix != ".part"]
        assert {path for path in map(Path, said) if path.name != "begun"} <= set(made)
        for path in made:
            assert verify(path, passphrase=passphrase).state == "intact"
            assert sum(1 for _ in read(path, passphrase=passphrase).records()) >= 62
    assert killer.kills - before == 12


@pytest.mark.parametrize("how", MAKERS)
def test_what_a_killed_maker_left_is_written_over_and_nothing_stays_beside(
    source: Path, tmp_path: Path, how: str
) -> None:
    left = tmp_path / ("store/new.jsonl.jsonl.part" if how in ("keep", "fork kept") else "new.jsonl.part")
    left.parent.mkdir(exist_ok=True)
    left.write_text("half a copy, longer than what comes " * 20_000)
    made = Path(MAKERS[how](source, tmp_path / "new.jsonl"))
    assert verify(made, passphrase=secret() if how == "encrypt" else None).state == "intact"
    assert [path.name for path in tmp_path.glob("**/*.part")] == []
