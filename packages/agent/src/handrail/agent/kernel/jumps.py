"""Jumps: how a state hook says where the turn goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from handrail.agent.errors import BuildError

Target: TypeAlias = Literal["end", "tools", "model"]
TARGETS: tuple[str, ...] = get_args(Target)


class Jump(msgspec.Struct, frozen=True):
    """Where the turn goes on, with the state update that goes with it."""

    to: Target
    update: Mapping[str, Any] = {}


def jump(to: Target, update: Mapping[str, Any] | None = None) -> Jump:
    """What a state hook returns to send the turn elsewhere: to its `end`, to the `tools` whose calls are open, or back
    to the `model`. The hook's middleware declares its targets in `jumps`. Raises `BuildError` for another target."""
    if to not in TARGETS:
        raise BuildError(f"a jump goes to one of {', '.join(TARGETS)}, not {to!r}")
    return Jump(to, update or {})
