"""Runs killed at any moment: what was heard, done and answered is written down, and the conversation goes on."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from agent.desks import requests, unlawful
from agent.dying import pair
from handrail.agent import ScriptedModel
from handrail.sessions import MessageRecord, Passphrase, Session, ToolCallRecord, ToolResultRecord, read, verify
from handrail.sessions.places import is_begun
from sessions.conversations import WORDS, secret
from sessions.crashes.killing import SEED, Killer, killing

KILLS = 20


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with killing() as killer:
        yield killer


def held(path: Path, passphrase: Passphrase | None) -> set[str]:
    """What a session holds, in the words in which it was told."""
    found = set()
    for record in read(path, passphrase=passphrase).records() if is_begun(path) else ():
        if isinstance(record, ToolCallRecord):
            found.add(f"paid {json.loads(record.arguments)['n']}")
        elif isinstance(record, MessageRecord | ToolResultRecord):
            found |= {f"heard {record.message.id}", f"answered {record.message.id}"}
    return found


@pytest.mark.parametrize("words", ["", WORDS], ids=["plain", "encrypted"])
@pytest.mark.parametrize("fsync", ["always", "turn", "never"])
async def test_a_killed_run_has_written_down_what_it_did_and_is_gone_on_with(
    killer: Killer, tmp_path: Path, fsync: str, words: str
) -> None:
    print(f"KILL_SEED={SEED}")
    dice, before = Random(f"{SEED}{fsync}{words}"), killer.kills
    passphrase = secret(words) if words else None
    for kill in range(KILLS):
        path = tmp_path / f"{kill // 4}.jsonl"
        job = ("agent.dying:talk", path, fsync, words, f"{SEED}-{kill}")
        said = killer.kill(*job, after=dice.uniform(0, 0.02), lines=dice.choice((1, 2, 4, 9)))
        assert {line for line in said if line != "begun"} <= held(path, passphrase)
        assert not is_begun(path) or verify(path, passphrase=passphrase).ok
        model = ScriptedModel("I am back.")
        with Session(path, passphrase=passphrase) as session:
            result = await pair(model, said.append).run("Are you there?", session=session)
        assert (result.output, unlawful(requests(model))) == ("I am back.", [])
        assert verify(path, passphrase=passphrase).state == "intact"
    assert killer.kills - before == 20
