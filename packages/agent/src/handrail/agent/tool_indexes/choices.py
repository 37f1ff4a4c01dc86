"""Which tools of an agent have to be found before they are shown."""

from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

from handrail.agent.contexts import RunContext
from handrail.agent.errors import BuildError, NameClash
from handrail.agent.tool_indexes.shelves import MOST, Shelves
from handrail.agent.tools import Tool


class Choice:
    """What a layer called `layer` was told: the tools to keep back (None: all of an agent's own), those to show always,
    and those to deny; `search` is the tool that finds them. Raises `BuildError` for what cannot be meant."""

    def __init__(
        self, layer: str, search: Tool, tools: Sequence[Tool | str] | None, always: Sequence[str], deny: Sequence[str]
    ) -> None:
        self.layer = layer
        self.search = search
        self._given = _by_name(layer, tools) if tools is not None else None
        self._always, self._deny = _names(f"{layer}.always", always), _names(f"{layer}.deny", deny)
        if both := (self._always | set(self._given or ())) & self._deny:
            raise BuildError(f"{layer} would both show and deny {', '.join(sorted(both))}")
        if search.name in {*(self._given or ()), *self._deny}:
            raise NameClash(search.name, f"the search tool of {layer}", "a tool that it keeps back or denies")
        self._agents: dict[int, Shelves] = {}

    def shelves(self, run: RunContext[Any]) -> Shelves:
        """The shelves of the agent whose turn it is, worked out once an agent.

        Raises `BuildError` where a name is that of no tool.
        """
        bound = run.turn.bound
        shelves = self._agents.get(id(bound))
        if shelves is None:
            self._check([other.tools for other in run.turn.run.graph.agents.values()])
            if len(self._agents) >= MOST:
                self._agents.clear()
            kept = self._kept(bound) - self._always - self._deny
            never = self._deny.intersection(bound.tools)
            # The shelves hold the agent, so that its id stays its own.
            shelves = self._agents[id(bound)] = Shelves(bound, bound.specs, kept, never, self.search.name)
        return shelves

    def _kept(self, bound: Any) -> frozenset[str]:
        if self._given is not None:
            return frozenset([name for name, tool in self._given.items() if _has(bound.tools, name, tool)])
        return frozenset([tool.name for tool in bound.agent.tools])

    def _check(self, agents: Sequence[Mapping[str, Tool]]) -> None:
        # A layer may stand in several agents, so a name is right where one of them has it.
        given = {**dict.fromkeys([*self._always, *self._deny]), **(self._given or {})}
        for name, tool in given.items():
            if not any([_has(tools, name, tool) for tools in agents]):
                known = ", ".join(sorted({each for tools in agents for each in tools}))
                taken = any([name in tools for tools in agents])
                problem = "another tool has that name" if taken else "there is none"
                raise BuildError(f"{self.layer} names the tool {name!r}, but {problem}; there are: {known}")


def _has(tools: Mapping[str, Tool], name: str, tool: Tool | None) -> bool:
    return name in tools and tool in (None, tools[name])


def _names(where: str, names: Sequence[str]) -> frozenset[str]:
    listed = isinstance(names, Collection) and not isinstance(names, str | bytes | Mapping)
    if not listed or not all([isinstance(name, str) for name in names]):
        raise BuildError(f"{where} is a list of names of tools, not {names!r}")
    return frozenset(names)


def _by_name(layer: str, tools: Sequence[Tool | str]) -> Mapping[str, Tool | None]:
    given: dict[str, Tool | None] = {}
    if not isinstance(tools, Sequence | Set) or isinstance(tools, str | bytes):
        raise BuildError(f"{layer}.tools is a list of tools or their names, not {tools!r}")
    for tool in tools:
        if not isinstance(tool, Tool | str):
            raise BuildError(f"{layer}.tools is a list of tools or their names, not {tool!r}")
        name = tool if isinstance(tool, str) else tool.name
        if name in given:
            raise NameClash(name, f"a tool of {layer}.tools", "another one there")
        given[name] = None if isinstance(tool, str) else tool
    return given
