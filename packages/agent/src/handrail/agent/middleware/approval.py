"""The layer that asks before a tool runs, and takes nothing but a plain yes for one."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import TypeAlias

from handrail.agent.errors import BuildError
from handrail.agent.executing import Arguments
from handrail.agent.kernel.middlewares import CallTool, Middleware
from handrail.agent.kernel.requests import ToolRequest, ToolResponse
from handrail.agent.seconds import check_seconds
from handrail.agent.threads import in_thread
from handrail.agent.tools import InvalidArguments

Ask: TypeAlias = Callable[[ToolRequest], bool | str | Awaitable[bool | str]]
"""Answers True for yes, False for no, or no with a reason for the model."""
Chooses: TypeAlias = Callable[[ToolRequest], bool | Awaitable[bool]]
"""Says whether a call is to be asked about."""


class Approval(Middleware):
    """Asks before each call of a tool that needs approval, or that `tools` (names, or a function) chooses.

    `ask` is given the request with its checked arguments, and has `timeout` seconds; a sync one runs in a thread. A no
    is an error result of class `denied`, and the loop goes on. Whatever is neither yes nor no (an exception, None,
    another value, no answer in time) is a no; each is told as `denied`. A call whose arguments do not fit the tool is
    refused without asking. The yes is for that tool (`request.run.grant`): another that a layer inside calls in its
    place does not run where somebody was to be asked about it. Raises `BuildError`.
    """

    approves = True

    def __init__(
        self,
        ask: Ask,
        *,
        tools: Collection[str] | Chooses | None = None,
        timeout: float | None = None,
        name: str = "Approval",
    ) -> None:
        if not callable(ask):
            raise BuildError(f"Approval asks a function, not {ask!r}")
        names = () if tools is None or callable(tools) else tools
        is_list = isinstance(names, Collection) and not isinstance(names, str)
        if not is_list or not all([isinstance(each, str) for each in names]):
            raise BuildError(f"the tools of Approval are a list of names, or a function, not {tools!r}")
        check_seconds(timeout, "Approval(timeout=)")
        self.name = name
        self.gates = frozenset(names)
        self._ask = ask
        self._chooses = tools if callable(tools) else None
        self._timeout = timeout

    async def around_tool(self, request: ToolRequest, call_next: CallTool) -> ToolResponse:
        """Asks where that is needed; without a yes the tool does not run."""
        tool = request.tool
        request.run.grant()
        if tool.needs_approval is False and self._chooses is None and tool.name not in self.gates:
            return await call_next(request)
        try:
            shown = request.replace(arguments=tool.prepared.check(_text(request)))
        except (InvalidArguments, ValueError, RecursionError) as error:
            problem = str(error) if isinstance(error, InvalidArguments) else "they are not a JSON object"
            return _error("invalid_arguments", f"Invalid arguments: {problem}")
        refused = await self._refusal(shown)
        if refused is None:
            return await call_next(request)
        text, why = refused
        request.run.note("denied", tool=tool.name, call_id=request.call.id, why=why)
        return _error("denied", text)

    async def _refusal(self, request: ToolRequest) -> tuple[str, str] | None:
        """None for yes; else what the model is told, and what those who listen are."""
        tool = request.tool.name
        try:
            async with asyncio.timeout(self._timeout) as deadline:
                is_asked_about = await self._is_asked_about(request)
                world = request.run.turn.run.world
                if is_asked_about and world is not None:
                    said: tuple[str, str] | None = world.refusal(request)
                    if said is not None:
                        return said
                answer = await _asked(self._ask, request) if is_asked_about and world is None else True
            if _is_late(deadline):
                raise TimeoutError
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Who was asked gave up, and nobody cancelled the run.
            return f"{tool} did not run: it could not be approved.", "CancelledError"
        except Exception as error:  # noqa: BLE001  # a gate that cannot say yes says no
            if isinstance(error, TimeoutError) and _is_late(deadline):
                return f"{tool} did not run: nobody approved it in time.", "timeout"
            return f"{tool} did not run: it could not be approved.", type(error).__name__
        if answer is True:
            if is_asked_about:
                request.run.grant(request.tool)
            return None
        if answer is False or isinstance(answer, str):
            return f"{tool} was not approved{f': {answer}' if answer else '.'}", "no"
        return f"{tool} did not run: it could not be approved.", f"answered with {type(answer).__name__}"

    async def _is_asked_about(self, request: ToolRequest) -> bool:
        needs = request.tool.needs_approval
        if request.tool.name in self.gates or needs is True:
            return True
        if callable(needs) and _is_yes(needs(request.arguments)):
            return True
        if self._chooses is None:
            return False
        chosen = self._chooses(request)
        return _is_yes(await chosen if inspect.isawaitable(chosen) else chosen)

    def __repr__(self) -> str:
        return f"Approval({self._ask!r})"


def _is_late(deadline: asyncio.Timeout) -> bool:
    # A loop that was busy past the time has not been told of it yet.
    ends = deadline.when()
    return deadline.expired() or (ends is not None and asyncio.get_running_loop().time() >= ends)


async def _asked(ask: Ask, request: ToolRequest) -> object:
    if inspect.iscoroutinefunction(ask) or inspect.iscoroutinefunction(getattr(ask, "__call__", None)):  # noqa: B004
        answer = ask(request)
    else:
        answer = await in_thread(partial(ask, request), {})
    return await answer if inspect.isawaitable(answer) else answer


def _is_yes(answer: object) -> bool:
    if not isinstance(answer, bool):
        raise TypeError(f"whether a call is asked about is True or False, not {answer!r}")
    return answer


def _text(request: ToolRequest) -> str:
    given = request.arguments
    return given.text if isinstance(given, Arguments) else json.dumps(dict(given), ensure_ascii=False)


def _error(error_class: str, text: str) -> ToolResponse:
    return ToolResponse(content=text, is_error=True, error_class=error_class)
