"""A writer that is killed at any moment: what it acknowledged is there, and nothing is there by half."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from handrail.filters import user
from handrail.sessions import Journal, MessageRecord, Passphrase, read, verify
from handrail.sessions.lines import link
from handrail.sessions.places import is_begun
from sessions.conversations import WORDS, secret
from sessions.crashes.killing import SEED, Killer

KILLS = 40
A_FILE = 4
"""So many kills are had by one session, which then is long enough."""


def check(path: Path, heads: list[str], passphrase: Passphrase | None) -> bool:
    """Goes on with a session whose writer was killed, and looks at all of it; says whether its end was torn."""
    reading = read(path, passphrase=passphrase)
    whole = path.read_bytes()[: reading.end]
    with Journal.open(path, fsync="never", passphrase=passphrase) as journal:
        assert (journal.recovered, journal.end) == (reading.torn, len(whole.rstrip(b"\n")) + 1)
        journal.append(MessageRecord(path="desk", message=user("after")))
    data = path.read_bytes()
    assert data.startswith(whole)
    assert {link(line) for line in data.splitlines()} >= set(heads)
    ids = [each.message.id for each in read(path, passphrase=passphrase).records() if isinstance(each, MessageRecord)]
    batches = Counter([tuple(id.split("/")[::2]) for id in ids if "/" in id])
    assert all(str(found) == many for (_, many), found in batches.items())
    assert verify(path, passphrase=passphrase).state == "intact"
    return reading.torn is not None


@pytest.mark.parametrize("words", ["", WORDS], ids=["plain", "encrypted"])
@pytest.mark.parametrize("fsync", ["always", "turn", "never"])
def test_a_killed_writer_leaves_all_that_it_acknowledged_and_no_half_batch(
    killer: Killer, tmp_path: Path, fsync: str, words: str
) -> None:
    print(f"KILL_SEED={SEED}")
    dice, before, torn = Random(f"{SEED}{fsync}{words}"), killer.kills, 0
    passphrase = secret(words) if words else None
    for kill in range(KILLS):
        path = tmp_path / f"{kill // A_FILE}.jsonl"
        job = ("sessions.crashes.jobs:append", path, fsync, words, f"{SEED}-{kill}")
        _, *heads = killer.kill(*job, after=dice.uniform(0, 0.015), lines=dice.choice((1, 2, 2, 3)))
        if is_begun(path):
            torn += check(path, heads, passphrase)
        else:
            assert not heads
    print(f"{torn} of {KILLS} ends were torn")
    assert killer.kills - before == 40


TORN: dict[str, Callable[[bytes], bytes]] = {
    "half a record": lambda line: line[: len(line) // 2],
    "half a batch": lambda line: b'{"prev":"' + b"0" * 64 + b'","batch":2,' + line[76:] + b"\n" + line[:40],
    "no newline": lambda line: line,
    "zeros": lambda line: b"\0" * 70_000,
    "no newline but zeros": lambda line: line + b"\0" * 4096,
}


@pytest.mark.parametrize("fsync", ["always", "never"])
@pytest.mark.parametrize("kind", TORN)
def test_who_mends_a_torn_end_and_is_killed_leaves_it_to_the_next(
    killer: Killer, tmp_path: Path, kind: str, fsync: str
) -> None:
    print(f"KILL_SEED={SEED}")
    dice, before = Random(f"{SEED}{fsync}{kind}"), killer.kills
    path = tmp_path / "torn"
    with Journal.open(path) as journal:
        journal.append(MessageRecord(path="desk", message=user("before", id="m1")))
        journal.append(MessageRecord(path="desk", message=user("last", id="m2")))
    data = path.read_bytes()
    last = data.splitlines()[-1]
    kept = ["before", "last"] if "newline" in kind else ["before"]
    path.write_bytes(data[: -len(last) - 1] + TORN[kind](last))
    for kill in range(8):
        folder = tmp_path / f"{kill}"
        folder.mkdir()
        said = killer.kill("sessions.crashes.jobs:repair", folder, path, fsync, after=dice.uniform(0.001, 0.01))
        for torn in folder.glob("*.jsonl"):
            mended = f"mended {torn.stem}" in said
            assert not mended or verify(torn).state == "intact"
            with Journal.open(torn, fsync="never") as journal:
                assert not mended or journal.recovered is None
            assert [each.message.text for each in read(torn).records() if isinstance(each, MessageRecord)] == kept
            assert verify(torn).state == "intact"
    assert killer.kills - before == 8
