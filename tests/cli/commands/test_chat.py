"""`handrail chat`: a conversation that goes on where it stopped, piped in or typed at a terminal."""

import asyncio
import json
import os
import pty
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from select import select

import pytest

from cli.conftest import COMMAND, Run, one_line, quiet_environment
from cli.processes import running
from handrail.sessions import Session, open_store, verify
from servers.wire import sse, wire

SHOP = '''
import asyncio
from handrail.agent import Agent, FunctionModel
from handrail.agent.models import ChatResponse, Profile, TextDelta
from handrail.cli.desk import support_desk
from handrail.filters import assistant


def answer(request):
    text = request.messages[-1].text
    if text == "crash":
        raise ZeroDivisionError("by zero")
    return f"You said: {text}"


class Endless:
    """A model that begins to speak, and ends only where it was asked to be brief."""

    name, profile = "endless", Profile()

    async def stream(self, request):
        yield TextDelta("Well, ")
        if request.messages[-1].text != "Briefly!":
            await asyncio.Event().wait()
        yield ChatResponse(assistant("Well, "))

    async def complete(self, request):
        await asyncio.Event().wait()

    async def aclose(self):
        pass


desk = support_desk()
echo = Agent("echo", model=FunctionModel(answer))
talker = Agent("talker", model=Endless())
'''
LOUD = """
from handrail.agent import Agent, ScriptedModel

loud = Agent("loud", model=ScriptedModel("\\x1b[2Jred\\x07"))
"""
TALK = "Where is parcel 8841?\nWas I charged twice on invoice 1042?\n"


@pytest.fixture(autouse=True)
def shop(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)


def test_each_line_is_answered_and_what_crosses_is_shown(handrail: Run, tmp_path: Path) -> None:
    outcome = handrail("chat", "shop:desk", "--session", "a.jsonl", input=TALK)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith("a.jsonl: a new conversation; triage begins.")
    assert "· triage uses track_parcel(number='8841')" in outcome.stdout
    assert "━━ triage → billing: a double charge, invoice 1042 (4 of 6 messages crossed, 0 made) ━━" in outcome.stdout
    assert "stayed   triage: result of track_parcel  (tool calls and their results do not cross)" in outcome.stdout
    assert "billing> Invoice 1042" in outcome.stdout
    assert verify(tmp_path / "a.jsonl").ok


@pytest.mark.parametrize("name", ["a.jsonl", "chats.db#customer-17", "sqlite:///chats.db#a b", "chats/#customer-17"])
def test_another_process_goes_on_with_whoever_had_the_conversation(handrail: Run, name: str) -> None:
    handrail("chat", "shop:desk", "--session", name, input=TALK)
    outcome = handrail("chat", "shop:desk", "--session", name, input="yes, refund it\n")
    assert outcome.stdout.startswith(f"{name}: 16 messages so far; billing goes on.")
    assert "I have given the second payment back." in outcome.stdout
    assert "16 messages" in outcome.stdout
    assert handrail("verify", name).returncode == 0


def test_a_session_may_be_named_by_its_id_in_a_store(handrail: Run, tmp_path: Path) -> None:
    outcome = handrail("chat", "shop:echo", "--id", "a", input="Hello\n")
    assert "The session is in handrail.db#a" in outcome.stdout
    handrail("chat", "shop:echo", "--id", "a", "--store", "other.db", input="Hello\n")
    for name in ("handrail.db", "other.db"):
        with open_store(tmp_path / name) as store:
            assert [message.text for message in store.open("a").log] == ["Hello", "You said: Hello"]


def test_without_a_session_a_new_one_is_kept_where_it_says(handrail: Run) -> None:
    outcome = handrail("chat", "shop:echo", input="Hello\n")
    place = Path(outcome.stdout.splitlines()[-1].removeprefix("The session is in "))
    assert [message.text for message in Session(place).log] == ["Hello", "You said: Hello"]
    place.unlink()
    place.parent.rmdir()


def test_where_nothing_is_said_nothing_is_left_behind(handrail: Run) -> None:
    outcome = handrail("chat", "shop:echo", input="/help\n\n/quit\nnot read\n")
    place = Path(outcome.stdout.partition(": a new conversation")[0])
    assert outcome.returncode == 0
    assert outcome.stdout.endswith("Nothing was said.\n")
    assert not place.parent.exists()


def test_a_model_that_fails_leaves_the_chat_alive(handrail: Run, tmp_path: Path) -> None:
    outcome = handrail("chat", "shop:echo", "--session", "a.jsonl", input="crash\nStill there?\n")
    assert one_line(outcome, 1) == "handrail: ZeroDivisionError: by zero; --debug shows where"
    assert "echo> You said: Still there?" in outcome.stdout
    assert [message.text for message in Session(tmp_path / "a.jsonl").log][:2] == ["crash", "Still there?"]


def test_debug_shows_where_a_model_failed(handrail: Run) -> None:
    outcome = handrail("--debug", "chat", "shop:echo", "--session", "a.jsonl", input="crash\n")
    assert "shop.py" in outcome.stderr
    assert "Traceback" in outcome.stderr


def test_a_chat_that_was_watched_replays_with_nothing_left_uncompared(handrail: Run) -> None:
    handrail("chat", "shop:desk", "--session", "a.jsonl", input=TALK)
    outcome = handrail("replay", "a.jsonl", "shop:desk")
    assert outcome.returncode == 0
    assert outcome.stdout.endswith(": no divergence\n")


def test_history_and_agent_say_who_sees_what(handrail: Run) -> None:
    outcome = handrail(
        "chat", "shop:desk", "--session", "a.jsonl", input=f"/agent\n/history\n{TALK}/agent\n/history 1\n"
    )
    assert "* triage: sees nothing so far\n" in outcome.stdout
    assert "Nothing was said so far.\n" in outcome.stdout
    assert "  triage: sees 7 messages\n* billing: sees 10 messages\n" in outcome.stdout
    assert outcome.stdout.count("assistant (billing) [") == 1


def test_save_makes_a_sealed_copy_and_never_writes_over_one(handrail: Run, tmp_path: Path) -> None:
    outcome = handrail(
        "chat", "shop:echo", "--session", "a.jsonl", input="Hi\n/save 'my copy.jsonl'\n/save 'my copy.jsonl'\nAgain\n"
    )
    assert "my copy.jsonl: a sealed copy, with 2 messages" in outcome.stdout
    assert "my copy.jsonl: there is a file already" in one_line(outcome, 1)
    assert verify(tmp_path / "my copy.jsonl").sealed
    assert verify(tmp_path / "a.jsonl").state == "intact"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/nope", "there is no /nope here; /help says what there is"),
        ("/history all", "/history takes how many messages, not 'all'"),
        ("/save", "/save takes the name of one new file"),
        ("/save no/such/folder", "there is no folder no/such"),
    ],
)
def test_a_command_that_cannot_be_done_is_told_and_not_said(handrail: Run, line: str, said: str) -> None:
    outcome = handrail("chat", "shop:echo", "--session", "a.jsonl", input=f"{line}\n")
    assert said in one_line(outcome, 1)
    assert outcome.stdout.endswith("Nothing was said.\n")


def test_two_slashes_say_one(handrail: Run) -> None:
    assert "echo> You said: /quit\n" in handrail("chat", "shop:echo", "--session", "a.jsonl", input="//quit\n").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["shop:nobody"], "agents there: desk, echo, talker"),
        (["shop:echo", "--session", "talk.txt"], "talk.txt: not a Handrail session"),
        (["shop:echo", "--session", "a.jsonl", "--id", "b"], "--session and --id both name a session"),
        (["shop:echo", "--store", "b.db"], "say with --id which"),
        (["shop:echo", "--session", "no/such.jsonl"], "there is no folder no"),
        (["shop:echo", "--session", "no/such.db#a"], "there is no folder no"),
        (["shop:echo", "--session", "memory:#a"], "ends with the program that has it"),
        (["shop:echo", "--session", "redis://host#a"], "no store is named by redis:"),
        (["shop:echo", "--model", "parrot:polly"], "no model is called 'parrot:polly'"),
    ],
)
def test_what_cannot_work_is_told_before_anybody_types(
    handrail: Run, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "talk.txt").write_text("Dear diary\n")
    before = sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__")
    assert said in one_line(handrail("chat", *arguments, input="Hello\n"), 2)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == before


def test_a_session_of_another_agent_is_told_before_anybody_types(handrail: Run) -> None:
    handrail("chat", "shop:desk", "--session", "a.jsonl", input=TALK)
    outcome = handrail("chat", "shop:echo", "--session", "a.jsonl", input="Hello\n")
    assert "the session's active agent is 'billing', but only these are reachable: echo" in one_line(outcome, 1)


async def test_another_model_answers_in_place_of_each_agents_own(tmp_path: Path) -> None:
    words = [json.dumps({"choices": [{"index": 0, "delta": {"content": "Hello from afar."}}]})]
    end = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    async with (
        wire(sse(*words, end, "[DONE]")) as server,
        running(tmp_path, "chat", "shop:desk", "--model", "openai:any", "--base-url", server.base_url) as chat,
    ):
        out, err = await chat.process.communicate(b"Hello?\n")
    assert (chat.process.returncode, err) == (0, b"")
    assert b"triage> Hello from afar." in out


async def test_a_chat_that_is_killed_leaves_a_session_that_goes_on(handrail: Run, tmp_path: Path) -> None:
    async with running(tmp_path, "chat", "shop:talker", "--session", "chats.db#a") as chat:
        assert chat.process.stdin is not None
        chat.process.stdin.write(b"Hello?\n")
        await chat.hear("Well, ")
        chat.process.kill()
        await chat.process.wait()
    outcome = handrail("chat", "shop:talker", "--session", "chats.db#a", input="Briefly!\n")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.startswith("chats.db#a: 1 message so far; talker goes on.")
    assert handrail("verify", "chats.db#a").returncode == 0


async def test_a_session_that_another_chat_has_is_told_at_once(handrail: Run, tmp_path: Path) -> None:
    async with running(tmp_path, "chat", "shop:echo", "--session", "chats.db#a") as chat:
        await chat.hear("a new conversation")
        outcome = handrail("chat", "shop:echo", "--session", "chats.db#a", input="Hello\n")
        assert "chats.db#a" in one_line(outcome, 1)
        assert "Hello" not in outcome.stdout


async def test_ctrl_c_ends_what_is_piped_in_and_keeps_what_was_said(tmp_path: Path) -> None:
    async with running(tmp_path, "chat", "shop:talker", "--session", "a.jsonl") as chat:
        assert chat.process.stdin is not None
        chat.process.stdin.write(b"Hello?\n")
        await chat.hear("Well, ")
        code, _, err = await chat.interrupted()
    assert (code, err) == (130, "handrail: interrupted\n")
    assert [message.text for message in Session(tmp_path / "a.jsonl").log] == ["Hello?"]


class Terminal:
    """A chat at a terminal of its own, and all that was on the screen."""

    def __init__(self, process: "asyncio.subprocess.Process", keyboard: int) -> None:
        self.process = process
        self.keyboard = keyboard
        self.screen = self.passed = ""

    @property
    def shown(self) -> str:
        """All that was on the screen so far."""
        return self.passed + self.screen

    def _past(self, text: str) -> None:
        end = self.screen.index(text) + len(text)
        self.passed, self.screen = self.passed + self.screen[:end], self.screen[end:]

    async def sees(self, text: str) -> None:
        """Waits until this stands on the screen, after what was waited for before."""
        async with asyncio.timeout(30):
            while text not in self.screen:
                self.screen += (await asyncio.to_thread(os.read, self.keyboard, 1 << 16)).decode(errors="replace")
        self._past(text)

    async def sees_after(self, key: str, text: str) -> None:
        """Presses the key until this stands on the screen. A signal that comes between the prompt and the reading of
        the line is looked at with the next key only, whatever program reads it."""
        async with asyncio.timeout(30):
            while text not in self.screen:
                self.types(key)
                while text not in self.screen and (await asyncio.to_thread(select, [self.keyboard], [], [], 2.0))[0]:
                    self.screen += os.read(self.keyboard, 1 << 16).decode(errors="replace")
        self._past(text)

    def types(self, keys: str) -> None:
        """Presses these keys; `\\x03` is Ctrl-C, `\\x04` is Ctrl-D."""
        os.write(self.keyboard, keys.encode())


@asynccontextmanager
async def at_a_terminal(folder: Path, *arguments: str) -> AsyncIterator[Terminal]:
    keyboard, screen = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "chat",
        *arguments,
        cwd=folder,
        env=quiet_environment(),
        stdin=screen,
        stdout=screen,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: _take_terminal(screen),
    )
    os.close(screen)
    try:
        yield Terminal(process, keyboard)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(keyboard)


def _take_terminal(screen: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(screen, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)


async def test_at_a_terminal_ctrl_c_stops_the_answer_and_ctrl_d_ends_the_chat(tmp_path: Path) -> None:
    async with at_a_terminal(tmp_path, "shop:talker", "--session", "a.jsonl") as chat:
        await chat.sees("you> ")
        chat.types("Hello?\n")
        await chat.sees("Well, ")
        chat.types("\x03")
        await chat.sees("(stopped; what was said is kept)")
        await chat.sees("you> ")
        chat.types("Briefly!\n")
        await chat.sees("Well, ")
        await chat.sees("you> ")
        chat.types("half a line")
        # Ctrl-C throws away what the terminal has not handed over yet, and one within a key is not looked at.
        await chat.sees("half a line")
        await chat.sees_after("\x03", "(Ctrl-D or /quit ends the conversation)")
        await chat.sees("you> ")
        chat.types("\x04")
        await chat.sees("The session is in a.jsonl")
        assert await asyncio.wait_for(chat.process.wait(), 30) == 0
        assert chat.process.stderr is not None
        assert await chat.process.stderr.read() == b""
    assert [message.text for message in Session(tmp_path / "a.jsonl").log] == ["Hello?", "Briefly!", "Well, "]


async def test_a_terminal_obeys_nothing_that_an_answer_holds(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(LOUD)
    async with at_a_terminal(tmp_path, "bad:loud", "--session", "a.jsonl") as chat:
        await chat.sees("you> ")
        chat.types("Hi\n")
        await chat.sees("loud> [2Jred")
        chat.types("/quit\n")
        await chat.sees("The session is in a.jsonl")
        assert [sign for sign in ("\x1b[2J", "\x07") if sign in chat.shown] == []
    assert Session(tmp_path / "a.jsonl").log[-1].text == "\x1b[2Jred\x07"
