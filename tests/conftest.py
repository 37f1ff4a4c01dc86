"""What every test may ask for: the project's folder, the folder of real transcripts, the servers, the stores."""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import certifi
import pytest
from hypothesis import settings

from servers import aimock as model_server
from servers import postgres
from servers.aimock import Aimock
from servers.forks import Fork, standing_by

ROOT = Path(__file__).parent.parent
END = "-----END CERTIFICATE-----"

settings.register_profile("handrail", deadline=None, print_blob=True)
settings.load_profile("handrail")


def _without_server(reason: str) -> None:
    """Skip the test, but fail it where the servers have to be."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the whole project."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real transcripts: $HANDRAIL_SHARED, else `../shared` beside the project.

    It is no part of the project, so its tests are skipped wherever it is not.
    """
    folder = Path(os.environ.get("HANDRAIL_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("needs the folder of real transcripts that HANDRAIL_SHARED names")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A client reads all certificates there are, for 30 ms each time; no server of a test shows one."""
    bundle = Path(certifi.where()).read_text()
    first = tmp_path_factory.mktemp("certificates") / "one.pem"
    first.write_text(bundle[: bundle.index(END) + len(END)] + "\n")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SSL_CERT_FILE", str(first))
        yield


@pytest.fixture(scope="module")
def fork() -> Iterator[Fork]:
    """Runs modules as `python -m` does, each in a process of its own, without the imports of a new interpreter.

    Each module of tests has its own, as which plugins a pytest loads decides how it imports them.
    """
    with standing_by(env=os.environ) as fork:
        yield fork


@pytest.fixture(scope="session")
def _aimock() -> Iterator[Aimock]:
    reason = model_server.missing()
    if reason is not None:
        _without_server(reason)
    with model_server.running() as server:
        yield server


@pytest.fixture
def aimock(_aimock: Aimock) -> Aimock:
    """A model server that answers Chat Completions at `aimock.base_url`, with nothing to say yet.

        aimock.answers("Hello", {"toolCalls": [{"name": "add", "arguments": {"a": 1}, "id": "c1"}]}, chunkSize=3)
        model = OpenAIChat("any", base_url=aimock.base_url, api_key="any")

    Streamed and whole answers come from the same responses; `aimock.requests` holds what the client sent. The fixture
    `llmock`, which the package of that name brings, is the server for faults: `llmock.base_url()` is its address,
    `llmock.rate_limit(times=2, retry_after=0.05)`, `llmock.fail(500)`, `llmock.disconnect(after_chunks=2)`,
    `llmock.truncate(after_chunks=2)`, `llmock.corrupt()`, `llmock.stall(seconds=5)`, `llmock.break_tool_call()`,
    `llmock.call_tool(name, arguments)` and `llmock.reply(text)` say what comes next, `llmock.requests` and
    `llmock.verdict()` what the client did. For exact bytes there is `servers.wire.wire`.
    """
    _aimock.reset()
    return _aimock


@pytest.fixture(scope="session")
def _postgres(worker_id: str) -> Iterator[str]:
    with postgres.running(postgres.name_of_run()) as server, postgres.database(server, worker_id) as database:
        yield database


@pytest.fixture
def postgres_url(_postgres: str) -> str:
    """The URL of a Postgres database of this test's own: a schema in that of its worker."""
    return postgres.schema(_postgres, f"s{next(_SCHEMAS)}")


_SCHEMAS = count(1)


@pytest.fixture(params=["folder", "sqlite", "postgres"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of each kind of store that several processes can have open."""
    return _url(request, tmp_path)


@pytest.fixture(params=["memory", "folder", "sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of each kind of store."""
    return _url(request, tmp_path)


def _url(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    known = {"memory": "memory:", "folder": f"{folder}/sessions/", "sqlite": f"sqlite:///{folder}/sessions.db"}
    return known[request.param]
