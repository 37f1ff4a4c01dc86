"""`handrail run`: any agent of any module."""

import json
from pathlib import Path

import pytest

from cli.conftest import Run, one_line
from cli.processes import running
from handrail.sessions import Session, verify

SHOP = '''
import asyncio
from handrail.agent import Agent, FunctionModel, ScriptedModel, tool
from handrail.agent.models import Profile, TextDelta
from handrail.filters import call
from pydantic import BaseModel


@tool
def look(place: str) -> str:
    """Looks into a place."""
    raise OSError("it is dark")


billing = Agent("billing", model=FunctionModel(lambda request: f"Billing heard: {request.messages[-1].text}"))
leads = ["One moment. ", call("transfer_to_billing", call_id="h1")]
triage = Agent("triage", model=ScriptedModel(leads), handoffs=[billing])
seeker = Agent("seeker", model=ScriptedModel(call("look", call_id="c1", place="box"), "Nothing."), tools=[look])
class Parcel(BaseModel):
    city: str


finder = Agent("finder", model=ScriptedModel(call("final_answer", city="Porto")), output_type=Parcel)
lost = Agent("lost", model=ScriptedModel(), handoffs=["nobody"])
mute = Agent("mute", model=ScriptedModel())


class Endless:
    """A model that begins to speak, and never ends."""

    name, profile = "endless", Profile()

    async def stream(self, request):
        yield TextDelta("Well, ")
        await asyncio.Event().wait()

    async def complete(self, request):
        await asyncio.Event().wait()

    async def aclose(self):
        pass


talker = Agent("talker", model=Endless())


def crash(request):
    raise ZeroDivisionError("by zero")


broken = Agent("broken", model=FunctionModel(crash))
'''


@pytest.fixture(autouse=True)
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(SHOP)
    return path


def test_words_go_to_standard_output_and_handoffs_beside_them(handrail: Run) -> None:
    outcome = handrail("run", "shop:triage", "I was charged twice.")
    assert outcome.returncode == 0
    assert outcome.stdout == "One moment. \nBilling heard: One moment. \n"
    assert "[triage] triage -> billing: it starts from 2 messages" in outcome.stderr


def test_a_value_is_told_in_words_and_given_as_json(handrail: Run) -> None:
    assert handrail("run", "shop:finder", "Where is it?").stdout == '{"city":"Porto"}\n'
    assert json.loads(handrail("run", "shop:finder", "Where?", "--json").stdout)["output"] == {"city": "Porto"}


def test_input_may_come_from_standard_input(handrail: Run) -> None:
    assert handrail("run", "shop:billing", "-", input="Hello\n").stdout.startswith("Billing heard: Hello")


def test_a_tool_that_fails_is_told_beside_the_answer(handrail: Run) -> None:
    outcome = handrail("run", "shop:seeker", "Look.")
    assert outcome.stdout == "Nothing.\n"
    assert "look failed: OSError: it is dark" in outcome.stderr


def test_a_session_goes_on_at_the_agent_that_has_it(handrail: Run, tmp_path: Path) -> None:
    first = handrail("run", "shop:triage", "I was charged twice.", "--session", "a.jsonl")
    assert first.stderr.splitlines()[-1] == "The session is in a.jsonl"
    second = handrail("run", "shop:triage", "And now?", "--session", "a.jsonl")
    assert second.stdout == "Billing heard: And now?\n"
    assert verify(tmp_path / "a.jsonl").handoffs == 1


def test_a_session_may_start_at_the_agent_that_is_named(handrail: Run) -> None:
    handrail("run", "shop:triage", "I was charged twice.", "--session", "a.jsonl")
    again = handrail("run", "shop:triage", "And now?", "--session", "a.jsonl", "--start", "self")
    assert again.stdout.startswith("One moment.")


def test_as_json_the_result_is_one_object(handrail: Run) -> None:
    outcome = handrail("run", "shop:triage", "I was charged twice.", "--json")
    result = json.loads(outcome.stdout)
    assert (result["agent"], result["status"]) == ("billing", "completed")
    assert result["handoffs"][0]["filter"]["kind"] == "seal"
    assert result["messages"][0]["role"] == "user"
    assert outcome.stderr == ""


@pytest.mark.parametrize(
    ("place", "text", "code", "said"),
    [
        ("shop", "Hi", 2, "write module:agent"),
        ("shop:nobody", "Hi", 2, "agents there: billing, broken, finder, lost, mute, seeker, talker, triage"),
        ("no_such_module:agent", "Hi", 2, "there is no module no_such_module here"),
        ("shop:lost", "Hi", 2, "lost hands off to 'nobody', but only these agents are reachable: lost"),
        ("shop:billing", " ", 2, "there is nothing to say to the agent"),
        ("shop:mute", "Hi", 1, "the script of scripted has 0 answers"),
        ("shop:broken", "Hi", 1, "ZeroDivisionError: by zero; --debug shows where"),
    ],
)
def test_what_cannot_run_is_told_in_one_line(handrail: Run, place: str, text: str, code: int, said: str) -> None:
    assert said in one_line(handrail("run", place, text), code)


def test_a_module_that_cannot_be_imported_is_told_in_one_line(handrail: Run, shop: Path) -> None:
    shop.write_text("import handrail.agent\n\nhandrail.agent.Agnet('a')\n")
    said = one_line(handrail("run", "shop:triage", "Hi"), 2)
    assert "has no attribute 'Agnet'" in said
    assert "shop.py, line 3" in said


def test_a_run_that_fails_leaves_what_was_said_in_the_session(handrail: Run, tmp_path: Path) -> None:
    assert handrail("run", "shop:broken", "Hello?", "--session", "a.jsonl").returncode == 1
    assert [message.text for message in Session(tmp_path / "a.jsonl").log] == ["Hello?"]
    assert verify(tmp_path / "a.jsonl").state == "intact"


async def test_ctrl_c_in_the_middle_of_a_stream_leaves_the_session_whole(tmp_path: Path) -> None:
    async with running(tmp_path, "run", "shop:talker", "Hello?", "--session", "a.jsonl") as run:
        await run.hear("Well, ")
        code, out, err = await run.interrupted()
    assert (code, out, err) == (130, "Well, \n", "handrail: interrupted\n")
    assert verify(tmp_path / "a.jsonl").state == "intact"
    assert [message.text for message in Session(tmp_path / "a.jsonl").log] == ["Hello?"]


def test_a_sealed_copy_is_gone_on_with_in_a_new_file(handrail: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(ECHO)
    assert handrail("run", "shop:echo", "One.", "--session", "a.jsonl").returncode == 0
    assert handrail("export", "a.jsonl", "-o", "sealed.jsonl").returncode == 0
    refused = handrail("run", "shop:echo", "Two.", "--session", "sealed.jsonl")
    assert "--continue-from COPY --session NEW" in one_line(refused, 2)
    assert "say with --session which" in one_line(handrail("run", "shop:echo", "Two.", "--continue-from", "a.jsonl"), 2)
    gone_on = handrail("run", "shop:echo", "Two.", "--continue-from", "sealed.jsonl", "--session", "b.jsonl")
    assert gone_on.returncode == 0
    assert [message.text for message in Session(tmp_path / "b.jsonl").log][::2] == ["One.", "Two."]


ECHO = """
from handrail.agent import Agent, FunctionModel

echo = Agent("echo", model=FunctionModel(lambda request: "You said: " + request.messages[-1].text))
"""
