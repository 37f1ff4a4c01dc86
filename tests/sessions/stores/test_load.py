"""Many processes and many sessions over one SQLite database.

8 processes, 1,000 sessions, 100,000 appends; a machine that takes too long for that sets `HANDRAIL_LOAD` to a part of
it, such as 0.1.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.sessions import open_store, verify

_LOAD = float(os.environ.get("HANDRAIL_LOAD", "1"))
_PROCESSES, _SESSIONS, _APPENDS = 8, round(1_000 * _LOAD), round(100_000 * _LOAD)
_WRITER = """
import sys
from handrail.filters import user
from handrail.sessions import MessageRecord, open_store
url, process, processes, sessions, appends = sys.argv[1], *map(int, sys.argv[2:])
each = appends // processes // sessions
with open_store(url, lock_timeout=60) as store:
    for turn in range(sessions):
        # Every process begins elsewhere, and comes to every session.
        number = (turn + process * sessions // processes) % sessions
        extra = appends // processes % sessions > turn
        with store.open(f"s{number}") as session:
            for count in range(each + extra):
                name = f"{process}-{number}-{count}"
                session.append(MessageRecord(path="desk", message=user(f"message {name}", id=name)))
"""


@pytest.mark.slow
def test_many_processes_write_many_sessions_and_every_one_verifies(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/load.db"
    numbers = [str(number) for number in (_PROCESSES, _SESSIONS, _APPENDS)]
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, url, str(process), *numbers], stderr=subprocess.PIPE)
        for process in range(_PROCESSES)
    ]
    assert b"".join([writer.communicate()[1] for writer in writers]).decode() == ""
    with open_store(url) as store:
        entries = store.list()
        assert len(entries) == _SESSIONS
        assert sum(entry.messages or 0 for entry in entries) == _APPENDS
        assert {verify(store.place(entry.id), integrity_only=True).state for entry in entries} == {"intact"}
        names = [message.id for entry in entries for message in store.open(entry.id).log]
        assert len(set(names)) == _APPENDS
