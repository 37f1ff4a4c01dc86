"""What is counted and recorded of a model call, however it ends."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from handrail.agent import Agent, FunctionModel
from handrail.sessions import ModelCallRecord, read


async def test_a_model_call_that_was_cancelled_is_counted_and_recorded_as_one_that_was_made(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def model(request: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    run = asyncio.ensure_future(Agent("X", model=FunctionModel(model)).run("go", session=tmp_path / "s"))
    await asked.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    [call] = [record for record in read(tmp_path / "s").records() if isinstance(record, ModelCallRecord)]
    assert (call.error, call.usage.requests) == ("cancelled", 1)
