"""Gates: no tool that needs approval is without a layer that asks, and no layer keeps a tool that nobody has."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from handrail.agent.errors import BuildError
from handrail.agent.kernel.middlewares import Middleware, layer_name

if TYPE_CHECKING:
    from handrail.agent.tools import Tool


def check_approved(agent: str, tools: "Iterable[Tool]", layers: Sequence[Middleware]) -> None:
    """Raises `BuildError` for a tool that needs approval where no layer of its agent asks for one."""
    if any(layer.approves for layer in layers):
        return
    for tool in tools:
        if tool.needs_approval is not False:
            raise BuildError(
                f"the tool {tool.name} of {agent} needs approval, and no layer of {agent} asks for it; "
                f"put one such as Approval(…) into its middleware"
            )


def check_gates(agents: "Iterable[tuple[str, Iterable[str], Sequence[Middleware]]]") -> None:
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
