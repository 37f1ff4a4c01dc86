"""Many processes and many sessions over one SQLite database.

8 processes, 1,000 sessions, 100,000 appends, two processes to each session; a machine that takes too long for that sets
`HANDRAIL_LOAD` to a part of it, such as 0.1.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.sessions import open_store, verify

_LOAD = float(os.environ.get("HANDRAIL_LOAD", "1"))
_PROCESSES, _SESSIONS, _SHARE = 8, round(1_000 * _LOAD), round(12_500 * _LOAD)
_WRITER = """
import sys
from handrail.filters import user
from handrail.sessions import MessageRecord, open_store
url, process, numbers, appends = sys.argv[1], sys.argv[2], range(*map(int, sys.argv[3:6])), int(sys.argv[6])
with open_store(url, lock_timeout=60) as store:
    for turn, number in enumerate(numbers):
        with store.open(f"s{number}") as session:
            for count in range(appends // len(numbers) + (appends % len(numbers) > turn)):
                name = f"{process}-{number}-{count}"
                session.append(MessageRecord(path="desk", message=user(f"message {name}", id=name)))
"""


@pytest.mark.slow
def test_many_processes_write_many_sessions_and_every_one_verifies(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/load.db"
    # One of the two begins at the first of their sessions, the other at the last: they meet in the middle.
    pairs = _PROCESSES // 2
    numbers = [range(pair, _SESSIONS, pairs)[::way] for pair in range(pairs) for way in (1, -1)]
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, url, *map(str, (process, each.start, each.stop, each.step, _SHARE))],
            stderr=subprocess.PIPE,
        )
        for process, each in enumerate(numbers)
    ]
    assert b"".join([writer.communicate()[1] for writer in writers]).decode() == ""
    with open_store(url) as store:
        entries = store.list()
        assert len(entries) == _SESSIONS
        assert sum(entry.messages or 0 for entry in entries) == _PROCESSES * _SHARE
        assert {verify(store.place(entry.id), integrity_only=True).state for entry in entries} == {"intact"}
        names = [message.id for entry in entries for message in store.open(entry.id).log]
        assert len(set(names)) == _PROCESSES * _SHARE
