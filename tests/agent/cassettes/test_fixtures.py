"""The fixtures and options as pytest has them: real test files, run by a pytest of their own."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from servers import aimock as model_server
from servers.aimock import Aimock
from servers.forks import Fork, Outcome

Run: TypeAlias = Callable[..., Outcome]

ECHO = """
from handrail.agent import Agent, FunctionModel
def agent(cassette, answer="Yes."):
    return Agent("echo", model=cassette.model(FunctionModel(lambda request: answer, name="m")))
"""
DESK = """
import pytest
from handrail.agent import Agent, tool
from handrail.agent.events import Text

@tool
def find_payments(invoice: str) -> str:
    "The payments of an invoice."
    return "7 March, 8 March"

billing = Agent("billing", model="openai:small", tools=[find_payments], instructions="You are billing.")
triage = Agent("triage", model="openai:large", handoffs=[billing])

async def test_whole(cassette):
    assert (await triage.run("I was charged twice.")).output == "It was paid twice."

async def test_streamed(cassette):
    async with triage.stream("I was charged twice.") as run:
        words = [event.text async for event in run if isinstance(event, Text)]
    assert "".join(words) == "It was paid twice." and len(words) > 3
"""


@pytest.fixture
def pytest_run(tmp_path: Path, fork: Fork) -> Run:
    """Runs pytest on the files of `tmp_path`, where nothing says that this is CI."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["handrail.agent.testing"]\n')
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")

    def run(*arguments: str, **environment: str) -> Outcome:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "CI", "PYTEST_"))}
        plain = ["pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_asyncio.plugin"]
        alone = {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment}
        return fork(*plain, *arguments, cwd=tmp_path, env=alone)

    return run


def write(folder: Path, text: str, name: str = "test_desk.py") -> Path:
    (folder / name).write_text(ECHO + text)
    return folder / "cassettes" / Path(name).stem


def passed(outcome: Outcome, count: int) -> None:
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert f"{count} passed" in outcome.stdout


def billing_answers(server: Aimock) -> None:
    transfer = {"toolCalls": [{"name": "transfer_to_billing", "arguments": {"reason": "double"}, "id": "h1"}]}
    find = {"toolCalls": [{"name": "find_payments", "arguments": {"invoice": "1042"}, "id": "c1"}]}
    server.when({"model": "large"}, transfer)
    server.when({"model": "small", "toolCallId": "c1"}, "It was paid twice.", chunkSize=4)
    server.when({"model": "small"}, find)


def test_what_a_server_answered_is_answered_when_the_server_is_gone(tmp_path: Path, pytest_run: Run) -> None:
    if (reason := model_server.missing()) is not None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    (tmp_path / "test_desk.py").write_text(DESK)
    with model_server.running() as server:
        billing_answers(server)
        address = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-never-written-down"}
        passed(pytest_run(**address), 2)
        assert len(server.requests) == 6
    passed(pytest_run("--cassette=none", **address), 2)
    passed(pytest_run("--no-model-calls"), 2)
    for name in ("test_whole", "test_streamed"):
        text = (tmp_path / "cassettes" / "test_desk" / f"{name}.jsonl").read_text()
        assert "never-written" not in text
        assert [json.loads(line).get("path") for line in text.splitlines()] == [None, "triage", "billing", "billing"]
        assert ('"deltas"' in text) == (name == "test_streamed")


def test_a_test_has_its_cassette_beside_it_and_in_ci_nothing_is_recorded(tmp_path: Path, pytest_run: Run) -> None:
    folder = write(tmp_path, "def test_it(cassette):\n    assert agent(cassette).run_sync('Hi').output == 'Yes.'\n")
    outcome = pytest_run(CI="true")
    assert outcome.returncode == 1
    assert "NotRecorded" in outcome.stdout
    assert not folder.exists()
    passed(pytest_run(), 1)
    passed(pytest_run(CI="true"), 1)
    assert [path.name for path in folder.iterdir()] == ["test_it.jsonl"]


def test_a_test_that_fails_leaves_its_cassette_as_it_was(tmp_path: Path, pytest_run: Run) -> None:
    folder = write(tmp_path, "def test_it(cassette):\n    agent(cassette).run_sync('Hi')\n")
    passed(pytest_run(), 1)
    before = (folder / "test_it.jsonl").read_bytes()
    write(tmp_path, "def test_it(cassette):\n    agent(cassette, 'No.').run_sync('Hi')\n    assert False\n")
    assert pytest_run("--cassette=all").returncode == 1
    assert (folder / "test_it.jsonl").read_bytes() == before
    write(tmp_path, "def test_it(cassette):\n    agent(cassette, 'No.').run_sync('Hi')\n")
    passed(pytest_run("--cassette=all"), 1)
    assert b"No." in (folder / "test_it.jsonl").read_bytes()


def test_recordings_that_are_left_over_fail_the_test_at_its_end(tmp_path: Path, pytest_run: Run) -> None:
    write(tmp_path, "def test_it(cassette):\n    agent(cassette).run_sync('Hi')\n")
    passed(pytest_run(), 1)
    write(tmp_path, "def test_it(cassette):\n    pass\n")
    outcome = pytest_run()
    assert outcome.returncode == 1
    assert "1 of 1 recordings were not asked for" in outcome.stdout


def test_another_request_shows_what_differs(tmp_path: Path, pytest_run: Run) -> None:
    write(tmp_path, "def test_it(cassette):\n    agent(cassette).run_sync('Hi')\n")
    passed(pytest_run(), 1)
    write(tmp_path, "def test_it(cassette):\n    agent(cassette).run_sync('Ho')\n")
    outcome = pytest_run()
    assert outcome.returncode == 1
    assert 'messages[0].content[0].text: "Hi" → "Ho"' in outcome.stdout
    passed(pytest_run("--cassette=new"), 1)
    passed(pytest_run("--cassette=none"), 1)


def test_each_case_and_each_class_has_a_file_of_its_own(tmp_path: Path, pytest_run: Run) -> None:
    cases = "import pytest\n@pytest.mark.parametrize('word', ['a/b', 'a b', '..', 'x' * 300, 'plain'])\n"
    by_case = f"{cases}def test_it(cassette, word):\n    agent(cassette).run_sync(word)\n"
    by_class = "class TestA:\n    def test_it(self, cassette):\n        agent(cassette).run_sync('b')\n"
    folder = write(tmp_path, by_case + by_class)
    passed(pytest_run(), 6)
    names = {path.name for path in folder.iterdir()}
    assert len(names) == 6
    assert {"TestA.test_it.jsonl", "test_it[plain].jsonl"} <= names
    passed(pytest_run("--cassette=none"), 6)


def test_workers_side_by_side_record_and_answer(tmp_path: Path, pytest_run: Run) -> None:
    cases = "import pytest\n@pytest.mark.parametrize('word', [str(number) for number in range(12)])\n"
    folder = write(tmp_path, f"{cases}def test_it(cassette, word):\n    agent(cassette).run_sync(word)\n")
    passed(pytest_run("-p", "xdist", "-n", "2"), 12)
    assert len(list(folder.iterdir())) == 12
    passed(pytest_run("-p", "xdist", "-n", "2", "--cassette=none"), 12)


def test_redaction_is_a_fixture_that_is_overridden(tmp_path: Path, pytest_run: Run) -> None:
    override = (
        "import pytest\n@pytest.fixture\ndef cassette_redact():\n    return lambda t: t.replace('4929', '[card]')\n"
    )
    test = "def test_it(cassette):\n    agent(cassette, 'It is 4929.').run_sync('Mine is 4929.')\n"
    folder = write(tmp_path, override + test)
    passed(pytest_run(), 1)
    assert "4929" not in (folder / "test_it.jsonl").read_text()
    passed(pytest_run("--cassette=none"), 1)


CALLS = """
import pytest
from handrail.agent import Agent
from handrail.agent.errors import RealCallForbidden
from handrail.agent.providers.openai import OpenAIChat
real = Agent("real", model=OpenAIChat("small", base_url="http://127.0.0.1:9", api_key="any", retries=0))
"""


def test_real_calls_are_forbidden_by_a_fixture_and_an_option(tmp_path: Path, pytest_run: Run) -> None:
    body = "    with pytest.raises(RealCallForbidden, match='small'):\n        real.run_sync('Hi')\n"
    write(tmp_path, f"{CALLS}def test_it(forbid_real_calls):\n{body}")
    passed(pytest_run(), 1)
    write(tmp_path, f"{CALLS}def test_it():\n{body}")
    passed(pytest_run("--no-model-calls"), 1)
    assert "ModelUnavailable" in pytest_run().stdout


def test_a_fixture_without_its_options_says_what_to_write(tmp_path: Path, pytest_run: Run) -> None:
    (tmp_path / "conftest.py").write_text("from handrail.agent.testing import cassette, cassette_redact\n")
    write(tmp_path, "def test_it(cassette):\n    pass\n")
    outcome = pytest_run()
    assert outcome.returncode == 1
    assert 'pytest_plugins = ["handrail.agent.testing"]' in outcome.stdout
