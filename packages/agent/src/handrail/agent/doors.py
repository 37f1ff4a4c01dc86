"""What stands between agents and the services that their models ask: real calls forbidden, and models stood in for.

It holds for the whole process, for as long as a block lasts: for tests, which run one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from handrail.agent.errors import RealCallForbidden

if TYPE_CHECKING:
    from handrail.agent.models import Model

StandIn: TypeAlias = "Callable[[Model], Model]"

_reasons: list[str] = []
stand_ins: list[StandIn] = []
"""What models are stood in for by now, the innermost block's last: for a look before `met` is asked."""


@contextmanager
def real_calls_forbidden(reason: str) -> Iterator[None]:
    """No request leaves for a model's service while the block lasts: it raises `RealCallForbidden` in its place, with
    the reason and the model's name. Models that answer in the process go on."""
    _reasons.append(reason)
    try:
        yield
    finally:
        _reasons.remove(reason)


def check_door(where: object) -> None:
    """Called where a request is about to leave. Raises `RealCallForbidden` where that is not allowed."""
    if _reasons:
        raise RealCallForbidden(str(where), _reasons[-1])


@contextmanager
def stood_in(stand_in: StandIn) -> Iterator[None]:
    """Whatever model an agent asks while the block lasts, what `stand_in` makes of it is asked in its place."""
    stand_ins.append(stand_in)
    try:
        yield
    finally:
        stand_ins.remove(stand_in)


def met(model: Model) -> Model:
    """The model that is asked where this one was to be."""
    return stand_ins[-1](model) if stand_ins else model
