"""Real kills, many a second: a process of its own forks a worker for each, and kills it with SIGKILL.

A worker does one of the jobs, named as `module:function` (whose `warm_up` is called once, so that no worker has to
import anything), and says on a pipe what it has done. It is killed so many
seconds after it began, or after it said something, whatever it is doing then.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from random import Random
from typing import TypeAlias

Tell: TypeAlias = Callable[[str], None]
"""Says, in one line, that something is done."""
SEED = int(os.environ.get("KILL_SEED") or Random().getrandbits(32))
"""What the moments come from; a test that fails shows it, and `KILL_SEED=… pytest …` takes it again."""


class Killer:
    """Has jobs done by processes that are killed."""

    def __init__(self, server: "subprocess.Popen[str]") -> None:
        self._server = server
        self.kills = 0

    def kill(self, job: str, *arguments: object, after: float, lines: int = 0) -> list[str]:
        """What a worker said before it was killed: that many seconds after it had said so many lines."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps([job, [str(each) for each in arguments], after, lines]) + "\n")
        self._server.stdin.flush()
        said, killed = json.loads(self._server.stdout.readline())
        assert killed, f"the worker was to be killed, and ended by itself: {said[-1:]}"
        self.kills += 1
        return [str(each) for each in said]


@contextmanager
def killing() -> Iterator[Killer]:
    """What kills, as long as the block lasts."""
    tests = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])}
    command = [sys.executable, "-m", "sessions.crashes.killing"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as server:
        yield Killer(server)
        assert server.stdin is not None
        server.stdin.close()


def _serve() -> None:
    warm: set[str] = set()
    for line in sys.stdin:
        name, arguments, after, lines = json.loads(line)
        module, _, function = name.partition(":")
        jobs = import_module(module)
        if module not in warm:
            warm.add(module)
            jobs.warm_up()
        print(json.dumps(_killed(getattr(jobs, function), arguments, after, lines)), flush=True)


def _killed(job: Callable[..., None], arguments: list[str], after: float, lines: int) -> tuple[list[str], bool]:
    listening, saying = os.pipe()
    worker = os.fork()
    if not worker:
        os.close(listening)
        _work(job, arguments, saying)
    os.close(saying)
    said = b""
    while said.count(b"\n") < lines and (block := os.read(listening, 1 << 16)):
        said += block
    until = time.monotonic() + after
    while (left := until - time.monotonic()) > 0 and select.select([listening], [], [], left)[0]:
        if not (block := os.read(listening, 1 << 16)):
            break
        said += block
    os.kill(worker, signal.SIGKILL)
    while block := os.read(listening, 1 << 16):
        said += block
    os.close(listening)
    _, status = os.waitpid(worker, 0)
    return said.decode().splitlines(), os.WIFSIGNALED(status)


def _work(job: Callable[..., None], arguments: list[str], saying: int) -> None:
    try:
        job(lambda what: os.write(saying, what.encode() + b"\n"), *arguments)
        os.write(saying, b"it has no more to do\n")
    except BaseException:  # noqa: BLE001  # the parent tells it
        os.write(saying, repr(traceback.format_exc()[-3000:]).encode())
    finally:
        os._exit(1)


if __name__ == "__main__":
    _serve()
