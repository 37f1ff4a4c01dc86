"""Whatever of a request is not as it was is found, whoever makes it otherwise: the agent, or a layer."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from handrail.agent import Agent, FunctionModel
from handrail.agent.kernel import Middleware
from handrail.agent.models import OutputSchema, Profile
from handrail.agent.replay import rerun


class Block(Middleware):
    """Brings a block of instructions."""

    def __init__(self, name: str) -> None:
        self.name, self.instructions = name, f"The {name}."


class Turned(Middleware):
    """Puts the blocks of instructions in the other order."""

    async def around_chat(self, request: Any, call_next: Any) -> Any:
        return await call_next(request.replace(instructions=dict(reversed(request.instructions.items()))))


class Asking(Middleware):
    """Asks for another answer, or for any."""

    def __init__(self, output: OutputSchema | None) -> None:
        self.output = output

    async def around_chat(self, request: Any, call_next: Any) -> Any:
        return await call_next(request.replace(output=self.output))


class Total(BaseModel):
    amount: int


def desk(*layers: Middleware, **fields: Any) -> Agent:
    model = FunctionModel(lambda request: '{"amount": 1}', profile=Profile(json_schema=True))
    return Agent("desk", model=model, instructions="You are the desk.", middleware=layers, **fields)


async def differing(path: Path, then: Agent, now: Agent) -> list[str]:
    """What of the first request differs between two agents; the first is the same as itself."""
    await then.run("go", session=str(path))
    replay = await rerun(path, then)
    assert replay.ok, str(replay)
    found = (await rerun(path, now)).divergence
    return [] if found is None else [found.what, *[each.where for each in found.differences]]


ORDERS = [
    ((Block("a"), Block("b")), (Block("b"), Block("a"))),
    ((Block("a"),), (Block("a"), Turned())),
    ((Block("a"), Turned()), (Block("a"),)),
]


@pytest.mark.parametrize(("then", "now"), ORDERS)
async def test_instructions_that_are_joined_in_another_order_are_others(tmp_path: Path, then: Any, now: Any) -> None:
    found = await differing(tmp_path / "s.jsonl", desk(*then), desk(*now))
    assert found == ["request", "the order of the instructions"]


async def test_blocks_that_a_layer_leaves_out_and_turns_around_are_as_they_were(tmp_path: Path) -> None:
    class First(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            kept = {name: text for name, text in request.instructions.items() if name != "a"}
            return await call_next(request.replace(instructions={"first": "Before all.", **kept}))

    then = desk(First(), Block("a"), Block("b"))
    assert await differing(tmp_path / "s.jsonl", then, desk(First(), Block("a"), Block("b"))) == []


OUTPUTS = [None, OutputSchema("other", {"type": "object"})]


@pytest.mark.parametrize("output", OUTPUTS)
async def test_another_schema_of_the_answer_that_a_layer_asks_for_is_found_on_either_side(
    tmp_path: Path, output: OutputSchema | None
) -> None:
    own, other = desk(output_type=Total), desk(Asking(output), output_type=Total)
    for name, then, now in (("a", own, other), ("b", other, own)):
        assert await differing(tmp_path / name, then, now) == ["request", "the schema of the answer"]
