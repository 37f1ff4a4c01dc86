"""A running command: wait for what it says, interrupt it, and see how it ends."""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from cli.conftest import COMMAND, quiet_environment


class Running:
    """A command that is under way, and what it has said so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said = b""

    async def hear(self, text: str) -> None:
        """Waits until the command has said this on standard output."""
        assert self.process.stdout is not None
        async with asyncio.timeout(30):
            while text.encode() not in self.said:
                piece = await self.process.stdout.read(1 << 16)
                assert piece, f"it ended after saying {self.said!r}"
                self.said += piece

    async def interrupted(self) -> tuple[int, str, str]:
        """Presses Ctrl-C; gives the exit code, and all that was said on standard output and standard error."""
        self.process.send_signal(signal.SIGINT)
        async with asyncio.timeout(30):
            out, err = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, (self.said + out).decode(), err.decode()


@asynccontextmanager
async def running(
    folder: Path, *arguments: str, stdin: int = asyncio.subprocess.PIPE, **environment: str
) -> AsyncIterator[Running]:
    """Starts the command in this folder; it is gone at the end, whatever happens."""
    settings: Mapping[str, str] = {**quiet_environment(), **environment}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *arguments, cwd=folder, env=settings, stdin=stdin, stdout=pipe, stderr=pipe
    )
    try:
        yield Running(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
