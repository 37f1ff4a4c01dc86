"""A loopback server that writes the bytes it was told to, in the pieces it was told to."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Literal

After = Literal["end", "cut", "hang"]


class Wire:
    """Where the server is, and the raw requests it read, in order (head and body)."""

    def __init__(self) -> None:
        self.base_url = ""
        self.requests: list[bytes] = []


def sse(*events: str) -> bytes:
    """The body of an event stream with these data lines."""
    return "".join(f"data: {event}\n\n" for event in events).encode()


@asynccontextmanager
async def wire(
    *pieces: bytes,
    status: str = "200 OK",
    content_type: str = "text/event-stream",
    headers: Sequence[str] = (),
    after: After = "end",
) -> AsyncIterator[Wire]:
    """Answer every request with these pieces, each written and flushed as a chunk of its own.

    `after` says what follows the last piece: the proper end of the body, a closed connection without that end, or
    nothing at all until the client goes away. Without pieces and with `hang` not even the head is sent.
    """
    seen = Wire()
    head = "\r\n".join((f"HTTP/1.1 {status}", f"content-type: {content_type}", "transfer-encoding: chunked", *headers))

    writers: list[asyncio.StreamWriter] = []
    serving: list[asyncio.Task[None]] = []
    met: asyncio.Queue[tuple[str, int]] = asyncio.Queue()

    def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        serving.append(asyncio.create_task(serve(reader, writer)))
        met.put_nowait(writer.get_extra_info("peername"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await _request(reader):
                seen.requests.append(request)
                if pieces or after != "hang":
                    writer.write(f"{head}\r\n\r\n".encode())
                for piece in pieces:
                    writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    await writer.drain()
                if after == "hang":
                    await reader.read()
                if after != "end":
                    return
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(meet, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    seen.base_url = f"http://{host}:{port}/v1"
    try:
        yield seen
    finally:
        # A client may be gone before it is met: this one is met when all before it were.
        _, last = await asyncio.open_connection(host, port)
        while await met.get() != last.get_extra_info("sockname"):
            pass
        server.close()
        # A connection that a client keeps alive, or has stopped reading, would hold the server open.
        for writer in (*writers, last):
            writer.transport.abort()
        await asyncio.gather(*serving, return_exceptions=True)
        for writer in (*writers, last):
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        await server.wait_closed()


async def _request(reader: asyncio.StreamReader) -> bytes:
    """One request, head and body; empty when the client is gone."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    return head + await reader.readexactly(int(fields.get(b"content-length", b"0")))
