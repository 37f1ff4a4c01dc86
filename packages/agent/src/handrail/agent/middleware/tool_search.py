"""Tool search: of many tools the model is shown one that finds the others, and then those that it found."""

from collections.abc import Sequence
from typing import Any, Literal

from handrail.agent.errors import BuildError
from handrail.agent.kernel import CallChat, CallTool, ChatRequest, Middleware, ToolRequest, ToolResponse
from handrail.agent.kernel.middlewares import layer_name
from handrail.agent.models import ChatResponse, ToolSpec
from handrail.agent.tool_indexes import Hit, ToolIndex
from handrail.agent.tool_indexes.choices import Choice
from handrail.agent.tool_indexes.finders import Finder
from handrail.agent.tools import Tool

LONGEST_QUERY = 1024

_ABOUT = "Finds tools by what they are for. Most are not shown until they are found, and can be called from then on."
_SUFFIX = (
    "You have more tools than you are shown. Before you say that something cannot be done, "
    "look for a tool that does it with {name}."
)


class ToolSearch(Middleware):
    """Shows the model a tool that finds tools in the place of those it finds, which are shown once they were found.

    - `tools`: which of the agent's tools are to be found, as values or names; None is all of its own. Handoffs, other
      layers' tools and those in `always` are shown as ever; those in `deny` are neither shown nor run.
    - `index`: `keyword`, `regex`, or a `ToolIndex`; a search brings at most `max_results` tools.
    - `accumulate`: what was found stays for the session; False: only what the latest search found is shown.
    - `strict`: a call to a tool that was not found is refused; else it runs.
    - `suffix`: True adds instructions to search, a text adds that text.

    Raises `BuildError`, for a name that is no tool at the first model call.
    """

    scope = "session"

    def __init__(
        self,
        tools: Sequence[Tool | str] | None = None,
        *,
        index: Literal["keyword", "regex"] | ToolIndex[Any] = "keyword",
        max_results: int = 5,
        accumulate: bool = True,
        tool_name: str = "tool_search",
        strict: bool = False,
        always: Sequence[str] = (),
        deny: Sequence[str] = (),
        suffix: bool | str = False,
        name: str = "ToolSearch",
    ) -> None:
        self.name = name
        for option, value in (("accumulate", accumulate), ("strict", strict)):
            if type(value) is not bool:
                raise BuildError(f"{option} of {layer_name(self)} is True or False, not {value!r}")
        if not isinstance(suffix, bool | str):
            raise BuildError(f"suffix of {layer_name(self)} is True, False or a text, not {suffix!r}")
        self._strict = strict
        self._finder = Finder(name, index, max_results)
        self._tool = _search_tool(tool_name, self._finder.index.hint, name)
        self._choice = Choice(name, self._tool, tools, always, deny)
        self.tools = (self._tool,)
        self.instructions = suffix if isinstance(suffix, str) else _SUFFIX.format(name=tool_name) if suffix else ""
        self.reducers = {"found": _appended if accumulate else _latest}

    def init_state(self) -> dict[str, Any]:
        """The names that were found, in order, and the mark of the tools that were offered last."""
        return {"found": [], "offered": ""}

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        """Shows what may be shown; a call for anything but an answer goes on as it is."""
        if request.purpose != "answer" or not request.tools:
            return await call_next(request)
        shelf = self._choice.shelves(request.run).of(request.tools)
        if request.state["offered"] != shelf.mark:
            request.state["offered"] = shelf.mark
        return await call_next(request.replace(tools=shelf.showing(request.state["found"])))

    async def around_tool(self, request: ToolRequest, call_next: CallTool) -> ToolResponse:
        """Answers a search, and refuses what may not be called."""
        if request.tool is self._tool:
            return await self._search(request)
        shelves, name = self._choice.shelves(request.run), request.tool.name
        if name in shelves.never:
            return _failed("denied", f"{name} is not available.")
        if self._strict and name in shelves.kept and name not in request.state["found"]:
            return _failed("denied", f"{name} cannot be called before {self._tool.name} has found it.")
        return await call_next(request)

    async def _search(self, request: ToolRequest) -> ToolResponse:
        query = request.arguments.get("query")
        if not isinstance(query, str) or len(query) > LONGEST_QUERY:
            return _failed("invalid_arguments", f"query is a text of at most {LONGEST_QUERY} characters.")
        if not (query := query.strip()):
            return ToolResponse([])
        shelf = self._choice.shelves(request.run).marked(request.state["offered"])
        try:
            hits = await self._finder.find(shelf, query)
            told = [_told(hit, shelf.kept[hit.name]) for hit in hits]
        except Exception as error:  # noqa: BLE001  # whatever an index raises, the model is told, as of any tool
            return _failed("timeout" if isinstance(error, TimeoutError) else "failed", f"The search failed: {error}")
        names = [hit.name for hit in hits]
        request.state.add("found", names)
        request.run.tell("tools_found", query=query, names=names)
        return ToolResponse(told)


def _told(hit: Hit, spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "score": round(hit.score, 3),
        "matched": list(hit.matched),
    }


def _search_tool(name: str, hint: str, layer: str) -> Tool:
    async def alone(query: str) -> None:
        raise RuntimeError(f"{name} is answered by the layer {layer}, which this agent does not have")

    query = {"type": "string", "description": hint, "maxLength": LONGEST_QUERY}
    schema = {"type": "object", "properties": {"query": query}, "required": ["query"], "additionalProperties": False}
    return Tool.from_json_schema(name, _ABOUT, schema, alone, side_effects="pure")


def _failed(error_class: str, text: str) -> ToolResponse:
    return ToolResponse(content=text, is_error=True, error_class=error_class)


def _appended(found: Sequence[str], more: Sequence[str]) -> list[str]:
    return [*found, *[name for name in more if name not in found]]


def _latest(_: Sequence[str], latest: Sequence[str]) -> Sequence[str]:
    return latest
