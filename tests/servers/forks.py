"""Runs a module as `python -m` does, or a file, in a process of its own that need not import everything again.

A process that stands by forks a child for each run. The child gets arguments, a folder, an environment and standard
streams of its own, runs the module as `__main__`, and ends as an interpreter ends. What a child had to import of what
is installed is imported for the next ones. Not of a child's own are the interpreter's options and its hash seed: a test
that is about these, or about what is imported when, starts an interpreter.
"""

import gc
import json
import os
import runpy
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeAlias

Outcome: TypeAlias = "subprocess.CompletedProcess[str]"
Fork: TypeAlias = Callable[..., Outcome]
"""`fork("pytest", "-q", cwd=folder, env=environment, input="")`: how it ended, and what it said."""


@contextmanager
def standing_by(*options: str, env: Mapping[str, str]) -> Iterator[Fork]:
    """Has a process that forks stand by, started with these options of the interpreter and in this environment."""
    ours, its = socket.socketpair()
    command = [sys.executable, "-P", *options, __file__, str(its.fileno())]
    pipe = subprocess.PIPE
    with (
        ours,
        ours.makefile("rb") as replies,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env, pass_fds=[its.fileno()]) as process,
    ):
        its.close()
        ours.settimeout(120)

        def fork(module: str, *arguments: str, cwd: Path, env: Mapping[str, str], input: str = "") -> Outcome:
            with TemporaryFile() as out, TemporaryFile() as err:
                reading, writing = os.pipe()
                order = json.dumps([[module, *arguments], str(cwd), dict(env)]).encode() + b"\n"
                socket.send_fds(ours, [b"%d\n" % len(order)], [reading, out.fileno(), err.fileno()])
                os.close(reading)
                ours.sendall(order)
                giving = threading.Thread(target=_give, args=(writing, input))
                giving.start()
                code = json.loads(replies.readline())
                giving.join()
                for stream in (out, err):
                    stream.seek(0)
                said = out.read().decode(), err.read().decode()
            return subprocess.CompletedProcess([module, *arguments], code, *said)

        try:
            yield fork
        finally:
            process.kill()


def _give(writing: int, text: str) -> None:
    with suppress(BrokenPipeError), open(writing, "wb") as stream:
        stream.write(text.encode())


def _serve(connection: socket.socket) -> None:
    while True:
        head, streams, _, _ = socket.recv_fds(connection, 32, 3)
        if not head:
            return
        size, _, order = head.partition(b"\n")
        while len(order) < int(size):
            order += connection.recv(int(size) - len(order))
        gc.collect()
        gc.freeze()
        telling, saying = os.pipe()
        child = os.fork()
        if not child:
            connection.close()
            os.close(telling)
            argv, folder, environment = json.loads(order)
            _run(argv, folder, environment, streams, saying)
        for number in (*streams, saying):
            os.close(number)
        with open(telling) as told:
            imported = told.read().split()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(b"%d\n" % code)
        _import(imported)


def _run(argv: Sequence[str], folder: str, environment: Mapping[str, str], streams: Sequence[int], saying: int) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        old = getattr(sys, name)
        line = 1 if name == "stderr" else -1
        new = open(old.fileno(), mode, line, encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    file = argv[0].endswith(".py")
    sys.path.insert(0, str(Path(argv[0]).parent) if file else folder)
    sys.argv = list(argv)
    before = set(sys.modules)
    try:
        if file:
            runpy.run_path(argv[0], run_name="__main__")
        else:
            runpy.run_module(argv[0], run_name="__main__", alter_sys=True)
        sys.exit()
    finally:
        with open(saying, "w") as told:
            told.write(" ".join(_installed(set(sys.modules) - before)))


def _installed(names: set[str]) -> list[str]:
    """Those that the waiting process may import: not what pytest has rewritten, or rewrites when it is a plugin."""
    found = [(name, sys.modules[name]) for name in names]
    plain = [(name, module) for name, module in found if type(getattr(module, "__loader__", None)) is SourceFileLoader]
    return [name for name, module in plain if not hasattr(module, "pytest")]


def _import(names: Sequence[str]) -> None:
    for name in names:
        with suppress(Exception):
            if find_spec(name) is not None:
                import_module(name)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
