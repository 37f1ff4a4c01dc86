"""Gates: no tool that needs approval is without a layer that asks, or runs in the place of one that was asked about;
and no layer keeps a tool that nobody has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.agent.errors import BuildError
from handrail.agent.kernel.middlewares import Middleware, layer_name
from handrail.agent.kernel.requests import ToolRequest

if TYPE_CHECKING:
    from handrail.agent.tools import Tool


def check_approved(agent: str, tools: Iterable[Tool], layers: Sequence[Middleware]) -> None:
    """Raises `BuildError` for a tool that needs approval where no layer of its agent asks for one."""
    if any(layer.approves for layer in layers):
        return
    for tool in tools:
        if tool.needs_approval is not False:
            raise BuildError(
                f"the tool {tool.name} of {agent} needs approval, and no layer of {agent} asks for it; "
                f"put one such as Approval(…) into its middleware"
            )


def may_run(request: ToolRequest, arguments: Mapping[str, Any]) -> bool:
    """Whether nothing has taken this tool past who would have been asked about it: it was granted, or nobody is to be
    asked. Where no layer keeps an account of what it granted, the tool that the call names has passed the one that
    asks."""
    run, tool, layers = request.run, request.tool, request.run.turn.bound.layers
    if run.granted is None:
        if tool is run.turn.bound.tools.get(request.call.name):
            return True
    elif any([each is tool for each in run.granted]):
        return True
    needs = tool.needs_approval
    if needs is True or any([layer.approves and tool.name in layer.gates for layer in layers]):
        return False
    try:
        return needs is False or needs(dict(arguments)) is False
    except Exception:  # noqa: BLE001  # a gate that fails is closed
        return False


def check_gates(agents: Iterable[tuple[str, Iterable[str], Sequence[Middleware]]]) -> None:
    """Raises `BuildError` for a layer that keeps a tool which none of its agents has; an agent is given as its name,
    the names of its tools, and its layers."""
    kept: dict[int, tuple[Middleware, list[str], set[str]]] = {}
    for agent, tools, layers in agents:
        for layer in layers:
            if layer.gates:
                _, names, known = kept.setdefault(id(layer), (layer, [], set()))
                names.append(agent)
                known.update(tools)
    for layer, names, known in kept.values():
        for name in sorted(set(layer.gates) - known):
            raise BuildError(
                f"{layer_name(layer)} keeps the tool {name!r}, but the tools of {', '.join(names)} are "
                f"{', '.join(sorted(known)) or 'none'}"
            )
