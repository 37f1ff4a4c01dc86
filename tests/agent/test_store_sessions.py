"""Runs whose session is kept in a store."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from handrail.agent import Agent, ScriptedModel, handoff
from handrail.filters import ToolCall, assistant
from handrail.sessions import Store, open_store, verify
from sessions.conversations import secret


@pytest.fixture(params=["plain", "encrypted"])
def store(store_url: str, request: pytest.FixtureRequest) -> Iterator[Store]:
    with open_store(store_url, passphrase=secret() if request.param == "encrypted" else None) as store:
        yield store


def desk() -> Agent:
    """A desk that hands over to billing, which answers."""
    billing = Agent("Billing", model=ScriptedModel("Refunded.", "Again."))
    asked = assistant(ToolCall("c1", "transfer_to_billing"))
    return Agent("Desk", model=ScriptedModel(asked), handoffs=[handoff(billing)])


async def test_a_run_is_kept_with_its_handoff_and_the_next_goes_on_with_who_was_active(store: Store) -> None:
    agent = desk()
    first = await agent.run("I was charged twice.", session=store.open("refund"))
    assert (first.output, first.agent) == ("Refunded.", "Billing")
    with store.open("refund", lock_timeout=5) as session:
        assert [(record.source, record.target) for record in session.handoffs] == [("Desk", "Billing")]
        assert session.active_agent == "Billing"
        second = await agent.run("Thanks.", session=session)
    assert second.output == "Again."
    assert [message.text for message in store.open("refund").history("Billing")][-2:] == ["Thanks.", "Again."]
    verdict = verify(store.place("refund"), passphrase=store.passphrase)
    assert (verdict.state, verdict.run_again) == ("intact", 1)
    assert store.list()[0].agents == (("Desk", "Billing") if store.passphrase is None else ())


async def test_a_fork_of_a_run_goes_on_apart_from_it(store: Store) -> None:
    with store.open("refund") as session:
        await desk().run("I was charged twice.", session=session)
        answered = session.log[-1].id
    with store.fork("refund", at=answered, as_="fork") as fork:
        result = await Agent("Billing", model=ScriptedModel("Otherwise.")).run("And now?", session=fork)
    assert (result.output, result.recovered) == ("Otherwise.", "")
    assert [message.text for message in store.open("fork").history("Billing")][-3:] == [
        "Refunded.",
        "And now?",
        "Otherwise.",
    ]
    assert store.open("refund").log[-1].text == "Refunded."
    assert verify(store.place("fork"), passphrase=store.passphrase).ok


_ON = """
import sys
from handrail.agent import Agent, ScriptedModel
from handrail.sessions import open_store
with open_store(sys.argv[1]) as store, store.open("refund") as session:
    billing = Agent("Billing", model=ScriptedModel("From elsewhere."))
    print(billing.run_sync("Are you there?", session=session).output)
"""


async def test_a_second_process_goes_on_with_the_session(shared_url: str) -> None:
    with open_store(shared_url) as store:
        with store.open("refund") as session:
            await desk().run("I was charged twice.", session=session)
        told = subprocess.run([sys.executable, "-c", _ON, shared_url], capture_output=True, text=True, check=True)
        assert told.stdout == "From elsewhere.\n"
        texts = [message.text for message in store.open("refund").history("Billing")]
        assert texts[-3:] == ["Refunded.", "Are you there?", "From elsewhere."]
        assert verify(store.place("refund")).state == "intact"
