"""How a model is asked is checked where it is said, and written down whatever a service may be told besides."""

import math
from pathlib import Path
from typing import Any

import pytest

from handrail.agent import Agent, BuildError, ScriptedModel, Settings
from handrail.sessions import verify


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[(name, value) for name in ("temperature", "top_p") for value in (object(), "0.5", True, math.nan, -math.inf)],
        *[(name, value) for name in ("max_tokens", "seed") for value in (1.5, "3", False)],
        *[("stop", value) for value in ("END", [1], ("half \ud83d",))],
        *[("tool_choice", value) for value in (7, "\ud83d")],
        ("parallel_tool_calls", "no"),
        *[("extra", value) for value in ([1], {1: 2}, {"\ud83d": 1})],
    ],
)
def test_a_setting_of_another_kind_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(BuildError, match=rf"settings\.{name} is "):
        Settings(**{name: value})


@pytest.mark.parametrize("extra", [{"a": "half \ud83d"}, {"a": object()}, {"a": b"\xff"}, {"a": [10**30, math.nan]}])
async def test_a_session_is_written_whatever_a_service_is_told_besides(tmp_path: Path, extra: Any) -> None:
    agent = Agent("A", model=ScriptedModel("done"), settings=Settings(extra=extra))
    assert (await agent.run("go", session=tmp_path / "s.jsonl")).output == "done"
    assert verify(tmp_path / "s.jsonl").ok
