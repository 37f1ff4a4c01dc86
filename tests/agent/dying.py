"""A conversation of two agents with tools and handoffs, had by a process that is killed while it has it."""

import asyncio
from itertools import count
from random import Random
from tempfile import TemporaryDirectory
from typing import cast

from handrail.agent import Agent, FunctionModel, Limits, Model, ScriptedModel, handoff
from handrail.agent.kernel import ChatRequest
from handrail.filters import ToolCall, call, full
from handrail.sessions import Session
from handrail.sessions.writer import Fsync
from sessions.conversations import secret
from sessions.crashes.killing import Tell


async def look(n: int) -> str:
    """Looks something up."""
    return f"{n} is there" * 200


def pair(model: Model, tell: Tell) -> Agent:
    """A desk and a billing department that hand over to each other."""

    async def pay(n: int) -> str:
        """Pays somebody."""
        tell(f"paid {n}")
        return "paid"

    billing = Agent("Billing", model=model, tools=[look, pay], handoffs=["Desk"])
    return Agent("Desk", model=model, tools=[look, pay], handoffs=[handoff(billing, filter=full())])


def warm_up() -> None:
    """Does everything once."""
    with TemporaryDirectory() as folder:
        for passphrase in (None, secret()):
            model = ScriptedModel(call("pay", n=1), call("transfer_to_billing"), "Done.")
            with Session(f"{folder}/{passphrase is None}", passphrase=passphrase) as session:
                asyncio.run(pair(model, lambda _: None).run("Please see to it.", session=session))


def talk(tell: Tell, path: str, fsync: str, words: str, seed: str) -> None:
    """Goes on with a conversation; says what a model heard, what a tool is about to do, and what a run has answered."""
    dice = Random(seed)
    numbers = count(dice.getrandbits(48))

    def answer(request: ChatRequest) -> str | list[ToolCall]:
        last = request.messages[-1]
        tell(f"heard {last.id}")
        if last.role == "user" or dice.random() < 0.3:
            return [call(dice.choice(("look", "pay")), n=next(numbers)) for _ in range(dice.randrange(1, 4))]
        others = {"transfer_to_desk", "transfer_to_billing"} & {tool.name for tool in request.tools}
        return [call(others.pop())] if others and dice.random() < 0.5 else "Done."

    agent = pair(FunctionModel(answer), tell)
    tell("begun")
    with Session(path, fsync=cast(Fsync, fsync), passphrase=secret(words) if words else None) as session:
        while True:
            result = asyncio.run(agent.run("Please see to it.", session=session, limits=Limits.only()))
            tell(f"answered {result.messages[-1].id}")
