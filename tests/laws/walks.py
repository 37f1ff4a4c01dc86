"""Walks: conversations that wander among three agents, with what every request of them must hold and must not.

As a program it goes on with walks in a process of its own: a line of JSON in for each, a line of what was wrong out.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from handrail.agent import Agent, FunctionModel, LimitExceeded, handoff
from handrail.agent.kernel import ChatRequest
from handrail.filters import (
    Filter,
    FilterError,
    Reasoning,
    Text,
    ToolCall,
    assistant,
    breaches,
    from_descriptor,
)
from handrail.sessions import Session

NAMES = ("A", "B", "C")
EDGES = [(source, target) for source in NAMES for target in NAMES if source != target]


async def ok() -> str:
    return "ok"


async def bad() -> str:
    raise ValueError("bad")


class Walk:
    """Agents that make these moves one after the other, whoever has control."""

    def __init__(
        self, filters: Sequence[Filter], moves: Sequence[Sequence[str]], returns: Filter | None = None
    ) -> None:
        self.moves = iter(moves)
        self.asked: list[ChatRequest] = []
        model = FunctionModel(self.answer)
        child = Agent("Child", instructions="INSTR-Child", model=FunctionModel(self.help))
        tools: list[Any] = [ok, bad, child.to_tool(filter=filters[0], returns=returns or filters[1])]
        edges = dict(zip(EDGES, filters, strict=True))

        def found(name: str) -> Any:
            return lambda: agents[name]

        agents = {
            name: Agent(
                name,
                instructions=f"INSTR-{name}",
                model=model,
                tools=tools,
                handoffs=[handoff(found(other), filter=edges[name, other]) for other in NAMES if other != name],
            )
            for name in NAMES
        }
        self.root = agents["A"]

    def answer(self, request: ChatRequest) -> Any:
        self.asked.append(request)
        return self.say(request.run.agent, next(self.moves, ["end"]))

    def help(self, request: ChatRequest) -> Any:
        self.asked.append(request)
        return self.say("Child", ["text"])

    def say(self, agent: str, move: Sequence[str]) -> Any:
        """A move as that agent's answer: thoughts of its own, and words or calls."""
        marked = f'{{"thought_signature":"THINK-{agent}"}}'
        calls = [
            ToolCall(f"{each}-{place}", each, arguments(each), extra=marked)
            for place, each in enumerate(move)
            if each not in ("text", "end", "silent")
        ]
        words = [Text(f"{agent} speaks. <think>THINK-{agent}</think>")] if "text" in move else []
        if "end" in move:
            words = [Text(f"{agent} is done.")]
        return assistant(Reasoning(f"THINK-{agent}", "test", marked), words, calls)

    def wrong(self) -> list[str]:
        """What the requests held and should not, or lacked."""
        return [problem for request in self.asked for problem in faults(request)]


def arguments(name: str) -> str:
    """What a call of this name is given."""
    if name == "child":
        return '{"input":"Help."}'
    return '{"reason":"Because."}' if name.startswith("transfer_to_") else "{}"


def faults(request: ChatRequest) -> list[str]:
    """What is wrong with one request."""
    agent = request.run.agent
    held = msgspec.json.encode(list(request.messages)).decode()
    wrong = [str(breach) for breach in breaches(request.messages)]
    wrong += [
        f"{agent} sees what {other} thought"
        for other in (*NAMES, "Child")
        if other != agent and f"THINK-{other}" in held
    ]
    if "INSTR-" in held or list(request.instructions.values()) != [f"INSTR-{agent}"]:
        wrong.append(f"{agent} sees other instructions than its own")
    if not any(message.role == "user" for message in request.messages):
        wrong.append(f"{agent} has nothing to answer")
    if not all(message.id for message in request.messages):
        wrong.append(f"{agent} sees a message without an id")
    return wrong


async def go_on(path: str, filters: Sequence[Filter], moves: Sequence[Sequence[str]]) -> list[str]:
    """One run of a walk, gone on with from its file; what was wrong. A boundary may refuse, which ends the run."""
    walk = Walk(filters, moves)
    with Session(path, fsync="never") as session:
        try:
            result = await walk.root.run("Go.", session=session)
        except (FilterError, LimitExceeded):
            return walk.wrong()
    again = Session(path).history(result.agent)
    return walk.wrong() if again == result.messages else [*walk.wrong(), "the file holds another view than the run"]


def main() -> None:
    """Goes on with the walks on standard input."""
    from laws import strategies  # noqa: F401  # its filters are to be known here too

    for line in sys.stdin:
        path, descriptors, moves = json.loads(line)
        wrong = asyncio.run(go_on(path, [from_descriptor(each) for each in descriptors], moves))
        print(json.dumps(wrong), flush=True)


if __name__ == "__main__":
    main()
