"""Fan-out: several agents asked the same at once, and what comes of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import msgspec

from handrail.agent.errors import BuildError
from handrail.agent.subagents import INPUT_SCHEMA, AgentTool, asked
from handrail.filters.sensitivity import Tier
from handrail.sessions import Usage

if TYPE_CHECKING:
    from handrail.agent.agents import Agent
    from handrail.agent.fanning import FanOut
    from handrail.agent.limits import Limits

Way: TypeAlias = Literal["concat", "first_success", "judge"]
"""The ready ways to make one result of several answers."""
Merge: TypeAlias = "Way | Callable[[Sequence[Candidate]], Any]"
"""How answers become one result: a ready way, or a function, sync or async, that returns a text or a candidate."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one of the agents: its answer (`text`) where it completed, else what is told of it (`error`).

    One that did not end within its `timeout`, or reached a `limit`, its own or the common budget, says so in its
    status; `cancelled` are those that were not waited for. An answer of nothing is a failure. `seconds` is how long it
    ran, `sensitivity` the label of what it says.
    """

    agent: str
    status: Literal["completed", "failed", "timeout", "limit", "cancelled"]
    text: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    error: str = ""
    sensitivity: Tier | None = None


class FannedOut(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a fan-out: the result's text, what came of each agent in the order they were given, and the one
    whose answer is the result, where it is one's alone. `judge` is what the judge cost; `error` what was raised where
    that made the result an error."""

    text: str
    candidates: tuple[Candidate, ...]
    winner: Candidate | None = None
    judge: Usage = Usage()
    error: Exception | None = None


def fan_out(
    agents: Sequence[Agent | AgentTool],
    *,
    merge: Merge = "concat",
    max_concurrency: int = 4,
    budget: Limits | None = None,
    timeout: float | None = None,
    judge: Agent | AgentTool | None = None,
    separator: str = "\n\n---\n\n",
    name: str = "fan_out",
    description: str = "",
    **options: Any,
) -> FanOut:
    """A tool that asks several agents the same, at most `max_concurrency` at once, and makes one result of it.

    Each is a sub-agent of the caller; `options` say how each is asked, and are those of `to_tool` (`filter`, `returns`,
    `expose`, …). One that needs its own is given as `to_tool(agent, …)`. `timeout` is in seconds, for each agent.
    `budget` bounds all of them together, within the caller's: when it is reached, those that still run are stopped.
    Its `max_seconds` are for a judge or a merging function as well.
    One that fails does not trouble the others. `merge` says what the result is:

    - `concat`: the answers in list order with the `separator` between, and `[status: name]` in the place of the others.
    - `first_success`: the first answer; the others are stopped, and have ended when it is given.
    - `judge`: what the `judge` answers who is shown the answers, or the one that it picks with `{"pick": number}`.
    - a function of the candidates, sync or async: the text, or the candidate, that it returns.

    Where no agent answered the result is an error; a function is asked all the same. Raises `BuildError`.
    """
    from handrail.agent.fanning import FanOut
    from handrail.agent.teams import check_budget, check_count, check_function, edge_to, edge_to_judge

    if merge not in get_args(Way) and not callable(merge):
        raise BuildError(f"merge of {name} is one of {', '.join(get_args(Way))}, or a function, not {merge!r}")
    if callable(merge):
        check_function("merge", merge, ("candidates",), name)
    if (merge == "judge") != (judge is not None):
        raise BuildError(f"{name} needs a judge where merge='judge', and only there")
    if not isinstance(separator, str):
        raise BuildError(f"the separator of {name} is a text, not {separator!r}")
    check_count("max_concurrency", max_concurrency, name)
    check_budget(budget, name)
    team = tuple([edge_to(agent, name, timeout, options) for agent in agents])
    if not team:
        raise BuildError(f"{name} has no agents to ask")
    names = ", ".join(dict.fromkeys([edge.child.name for edge in team]))
    return FanOut(
        name=name,
        description=description or f"Ask these agents at once: {names}.",
        fn=asked,
        parameters=INPUT_SCHEMA,
        output_sensitivity=options.get("output_sensitivity"),
        team=team,
        merge=merge,
        judge=None if judge is None else edge_to_judge(judge, name, timeout, options),
        separator=separator,
        max_concurrency=max_concurrency,
        budget=budget,
    )
