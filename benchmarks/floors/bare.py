"""The *bare* floor: an asyncio loop over dicts and function calls, and nothing else."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]
Model: TypeAlias = Callable[[Sequence[Message]], Awaitable[Message]]
Tool: TypeAlias = Callable[..., Awaitable[Any]]


async def add(a: int, b: int) -> int:
    return a + b


TOOLS: Mapping[str, Tool] = {"add": add}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def answer(text: str) -> Message:
    return {"role": "assistant", "content": text}


def asking(number: int) -> Message:
    call = {"id": f"call_{number}", "function": {"name": "add", "arguments": '{"a":1,"b":2}'}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


async def run(model: Model, text: str, history: Sequence[Message] = (), tools: Mapping[str, Tool] = TOOLS) -> str:
    """Model, tools, model, until it only talks."""
    messages = [*history, user(text)]
    while True:
        said = await model(messages)
        messages.append(said)
        if not (calls := said.get("tool_calls")):
            return str(said["content"])
        for call in calls:
            function = call["function"]
            value = await tools[function["name"]](**json.loads(function["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": str(value)})
