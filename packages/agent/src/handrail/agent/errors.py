"""What can go wrong when agents are built and run.

HandrailError
├── BuildError                  an agent, tool, handoff or middleware that cannot work as it was put together
│   ├── NameClash               two things would have one name
│   ├── UnfitName               a name that a provider would refuse
│   └── UnknownTarget           a handoff to a name that is not among the reachable agents
├── ReplayRefused               a session that cannot be run again, or not as it was asked
└── RunError                    a run that did not end with an answer; carries the partial transcript and usage
    ├── InvalidInput            what a run was given is no message, or nothing that could be answered
    ├── HandoffRefused          a handoff by code to an agent that waits, or that is not available
    ├── LimitExceeded           a limit on steps, tool calls, handoffs, tokens, money or time was reached
    │   ├── LoopDetected        the run went on without anything new
    │   └── TurnTimeout         a turn did not end in the time that it had
    ├── UnknownPrice            money is limited, and the price of a model is not known
    ├── ActiveAgentUnknown      a session's active agent is not among the reachable agents
    ├── ScriptError             a scripted model was asked for more than its script, or for less
    ├── InvalidAnswer           a hook or a model returned what is not an answer
    ├── InvalidJump             a state hook jumped where it may not, or where there is nothing to do
    ├── StateError              a state that JSON cannot carry, or a value that does not fit its channel
    │   ├── StateConflict       two calls of one response wrote what only one may write
    │   └── UnknownChannel      a write to a channel that the agent does not know
    ├── MissingDeps             the run was not given what a middleware or agent requires
    ├── ToolFailed              a tool failed, and its agent's policy says that this ends the run
    ├── RealCallForbidden       a request was about to leave for a model's service, and none may
    ├── CassetteError           a cassette that cannot be read, or was not used up
    │   └── NotRecorded         a cassette has no answer to a request
    ├── InvalidOutput           no answer fitted the output type in as many attempts as there were
    └── ModelError              a model call failed
        ├── ModelRefused        the service refused the request (a 4xx)
        ├── ModelUnavailable    the service could not be reached, or failed by itself (429, 5xx)
        ├── ModelTimeout        the service did not answer in time
        ├── InvalidResponse     the service answered with what cannot be read
        └── StreamBroken        a stream ended before its answer did
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from handrail.filters import HandrailError
from handrail.sessions import Usage

NOTHING_SPENT = Usage()


class BuildError(HandrailError):
    """An agent, tool, handoff or middleware that cannot work as it was put together."""


class NameClash(BuildError):
    """Two things would have one name."""

    def __init__(self, name: str, first: str, second: str) -> None:
        self.name = name
        self.first = first
        self.second = second
        super().__init__(f"the name {name!r} would stand for both {first} and {second}; give one of them another name")


class UnfitName(BuildError):
    """A name that a provider would refuse: it must be 1 to 64 of letters, digits, `_` and `-`."""

    def __init__(self, name: str, what: str) -> None:
        self.name = name
        super().__init__(
            f"{what} would have the tool name {name!r}, which must be 1 to 64 of letters, digits, '_' and '-' "
            "(and more than '_'); pass name="
        )


class UnknownTarget(BuildError):
    """A handoff to a name that is not among the reachable agents."""

    def __init__(self, name: str, source: str, known: Sequence[str]) -> None:
        self.name = name
        self.source = source
        self.known = known
        super().__init__(f"{source} hands off to {name!r}, but only these agents are reachable: {', '.join(known)}")


class ReplayRefused(HandrailError):
    """A session that cannot be run again, or not as it was asked; the message says what would be possible."""


class RunError(HandrailError):
    """A run that did not end with an answer; it carries the partial transcript, as every `HandrailError` then does."""

    usage: Usage = NOTHING_SPENT


class InvalidInput(RunError, ValueError):
    """What a run was given is no message, or nothing that could be answered."""


class HandoffRefused(RunError):
    """A handoff by code to an agent that waits for an answer, or that its edge says is not available."""


class LimitExceeded(RunError):
    """A limit was reached. `limit` is its name, `value` what it was set to, `path` the handoffs so far, `budget` the
    account that refused: the run's, or that of one agent within it."""

    def __init__(self, limit: str, value: float, path: Sequence[str] = (), budget: object = None) -> None:
        self.budget = budget
        self.limit = limit
        self.value = value
        self.path = path
        way = f" ({' -> '.join(path)})" if path else ""
        whose = getattr(budget, "owner", "the run")
        super().__init__(f"{whose} reached {limit}={value}{way}; raise the limit, or go on from error.messages")


class LoopDetected(LimitExceeded):
    """The run went on without anything new: `reason` says how."""

    def __init__(self, value: int, reason: str, budget: object = None) -> None:
        super().__init__("max_repeats", value, budget=budget)
        self.reason = reason
        self.args = (f"the run goes in a circle: {reason}, {value} steps in a row; it was stopped by max_repeats",)


class TurnTimeout(LimitExceeded):
    """A turn of `source` did not end in the `value` seconds that it had; what it had begun was cancelled."""

    def __init__(self, source: str, seconds: float) -> None:
        super().__init__("turn_seconds", seconds)
        self.source = source
        self.args = (f"the turn of {source} did not end within {seconds} seconds; its work was cancelled",)


class UnknownPrice(RunError):
    """Money is limited, and the price of `model` is not known, so the call was not made. For an empty `model`, the cost
    of what a session's earlier runs used."""

    def __init__(self, model: str, problem: str = "") -> None:
        self.model = model
        found = problem or f"the price of the model {model!r} is not known"
        super().__init__(f"max_cost limits the run, and {found}; on_unpriced='ignore' counts it as free of charge")


class ActiveAgentUnknown(RunError):
    """A session's active agent is not among the reachable agents."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = known
        super().__init__(
            f"the session's active agent is {name!r}, but only these are reachable: {', '.join(known)}; "
            "run the agent that leads to it, or pass start='self'"
        )


class ScriptError(RunError):
    """A scripted model was asked for more than its script holds, for something else, or for less."""


class InvalidAnswer(RunError):
    """A hook or a model returned what is not an answer."""


class CancelSwallowed(asyncio.CancelledError):
    """The run was cancelled, and a layer or tool of `agent` caught that and went on; the run ends as cancelled all the
    same. It is no `HandrailError`, since to whoever cancelled it is the cancel."""

    def __init__(self, agent: str, layers: Sequence[str]) -> None:
        self.agent = agent
        self.layers = tuple(layers)
        among = f"one of its layers ({', '.join(layers)}) or tools" if layers else "one of its tools"
        super().__init__(f"{agent} was cancelled, and {among} caught the cancel and went on; let CancelledError pass")


class InvalidJump(RunError):
    """A state hook jumped where its middleware does not declare to, or to tools where no call is open."""


class StateError(RunError):
    """A state that JSON cannot carry, or a value that does not fit its channel; `owner` and `key` say whose."""

    def __init__(self, owner: str, key: str, problem: str) -> None:
        self.owner = owner
        self.key = key
        super().__init__(f"{owner}: {key!r} {problem}")


class StateConflict(StateError):
    """Two calls of one response wrote what only one may write; `calls` are their ids."""

    def __init__(self, owner: str, key: str, calls: Sequence[str]) -> None:
        self.calls = tuple(calls)
        both = " and ".join(calls)
        super().__init__(owner, key, f"was written by the calls {both} at once; declare a reducer for it")


class UnknownChannel(StateError):
    """A write to a channel that the agent and its middleware do not declare; `known` are those they do."""

    def __init__(self, owner: str, key: str, known: Sequence[str]) -> None:
        self.known = tuple(known)
        super().__init__(owner, key, f"is no channel of this agent; its channels: {', '.join(known) or 'none'}")


class MissingDeps(RunError):
    """The run was not given what `owner` requires: `name` is missing from its deps, or of another type."""

    def __init__(self, owner: str, name: str, problem: str) -> None:
        self.owner = owner
        self.name = name
        super().__init__(f"{owner} requires {name!r} in the deps of the run, which {problem}")


class ToolFailed(RunError):
    """A tool failed, and its agent's policy says that a failure of this class ends the run. What the tool raised is
    the cause."""

    def __init__(self, tool: str, error_class: str, text: str) -> None:
        self.tool = tool
        self.error_class = error_class
        super().__init__(f"the tool {tool} failed ({error_class}): {text}")


class InvalidOutput(RunError):
    """No answer fitted the output type, or passed a validating layer, in as many attempts as there were. `reason` is
    what was wrong with the last one, `answer` its text."""

    def __init__(self, by: str, attempts: int, reason: str, answer: str = "") -> None:
        self.by = by
        self.attempts = attempts
        self.reason = reason
        self.answer = answer
        super().__init__(f"{by}: no valid answer in {attempts} attempt{'s' if attempts != 1 else ''}; {reason}")


class RealCallForbidden(RunError):
    """A request was about to leave for `where`, a model's service, and none may; `reason` says by whose word."""

    def __init__(self, where: str, reason: str) -> None:
        self.where = where
        self.reason = reason
        super().__init__(f"{where} was about to be asked, and real calls are forbidden by {reason}")


class CassetteError(RunError):
    """A cassette (`path`) that cannot be read or written, or that holds answers nobody asked for."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        super().__init__(f"{path}{problem}")


class NotRecorded(CassetteError):
    """A cassette has no answer to a request. `nearest` is the number of the recording that is most like it, from 1 (0
    for none), `differs` the fields in which it is another."""

    def __init__(self, path: str, problem: str, nearest: int = 0, differs: Sequence[str] = ()) -> None:
        self.nearest = nearest
        self.differs = tuple(differs)
        super().__init__(path, problem)


class ModelError(RunError):
    """A model call failed. `retryable` says whether the same call may succeed later.

    `status` is the HTTP status, `code` the service's own error code, `kind` its error type; `partial` is the text that
    had arrived, `spent` the usage that had been reported, `retry_after` seconds that the service asked to wait.
    """

    retryable = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | int | None = None,
        kind: str | None = None,
        partial: str = "",
        spent: Usage = NOTHING_SPENT,
        retry_after: float | None = None,
        retryable: bool | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.kind = kind
        self.partial = partial
        self.spent = spent
        self.retry_after = retry_after
        if retryable is not None:
            self.retryable = retryable
        super().__init__(message)


class ModelRefused(ModelError):
    """The service refused the request (a 4xx other than 429)."""


class ModelUnavailable(ModelError):
    """The service could not be reached, or failed by itself (429 and 5xx)."""

    retryable = True


class ModelTimeout(ModelError):
    """The service did not answer in time."""

    retryable = True


class InvalidResponse(ModelError):
    """The service answered with what cannot be read."""


class StreamBroken(ModelError):
    """A stream ended before its answer did, or said that it failed."""

    retryable = True


def tell(error: BaseException) -> dict[str, Any]:
    """What a record may say of an error: its type, and the message where it is one of Handrail's own."""
    return {"type": type(error).__name__, "message": str(error) if isinstance(error, HandrailError) else ""}
