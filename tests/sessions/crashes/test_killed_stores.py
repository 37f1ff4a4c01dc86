"""A program that writes to a store and is killed at any moment: every session in it has what was acknowledged."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from handrail.filters import user
from handrail.sessions import MessageRecord, Store, open_store, verify
from sessions.crashes.killing import SEED, Killer

KILLS = 12


def check(store: Store, name: str, acknowledged: list[str]) -> None:
    """Goes on with a session whose writer was killed, and looks at all of it."""
    with store.open(name) as session:
        session.append(MessageRecord(path="desk", message=user("after")))
        ids = [message.id for message in session.log]
        assert set(ids) >= set(acknowledged)
        batches = Counter([tuple(id.split("/")[::2]) for id in ids if "/" in id])
        assert all(str(found) == many for (_, many), found in batches.items())
    assert verify(store.place(name)).state == "intact"


@pytest.mark.parametrize("where", ["folder/", "store.db"])
@pytest.mark.parametrize("fsync", ["always", "turn", "never"])
def test_a_store_whose_writer_was_killed_has_all_that_it_acknowledged(
    killer: Killer, tmp_path: Path, where: str, fsync: str
) -> None:
    print(f"KILL_SEED={SEED}")
    dice, before = Random(f"{SEED}{where}{fsync}"), killer.kills
    for kill in range(KILLS):
        url = f"{tmp_path}/{kill // 5}{where}"
        job = ("sessions.crashes.jobs:store", url, fsync, f"{SEED}-{kill}")
        _, *said = killer.kill(*job, after=dice.uniform(0, 0.02), lines=dice.choice((1, 2, 2, 3)))
        with open_store(url) as store:
            for name in "ab":
                check(store, name, [line[2:] for line in said if line.startswith(name)])
            assert {entry.id for entry in store.list()} == {"a", "b"}
            assert [found.session for found in store.search("after", limit=1)]
    assert killer.kills - before == 12
