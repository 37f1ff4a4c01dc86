"""What can go wrong when agents are built and run.

HandrailError
├── BuildError                  an agent, tool, handoff or middleware that cannot work as it was put together
│   ├── NameClash               two things would have one name
│   ├── UnfitName               a name that a provider would refuse
│   └── UnknownTarget           a handoff to a name that is not among the reachable agents
└── RunError                    a run that did not end with an answer; carries the partial transcript and usage
    ├── InvalidInput            what a run was given is no message, or nothing that could be answered
    ├── HandoffRefused          a handoff by code to an agent that waits, or that is not available
    ├── LimitExceeded           a limit on steps, tool calls or handoffs was reached
    ├── ActiveAgentUnknown      a session's active agent is not among the reachable agents
    ├── ScriptError             a scripted model was asked for more than its script, or for less
    ├── InvalidAnswer           a hook or a model returned what is not an answer
    └── ModelError              a model call failed
        ├── ModelRefused        the service refused the request (a 4xx)
        ├── ModelUnavailable    the service could not be reached, or failed by itself (429, 5xx)
        ├── ModelTimeout        the service did not answer in time
        ├── InvalidResponse     the service answered with what cannot be read
        └── StreamBroken        a stream ended before its answer did
"""

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

    def __init__(self, limit: str, value: int, path: Sequence[str] = (), budget: object = None) -> None:
        self.budget = budget
        self.limit = limit
        self.value = value
        self.path = path
        way = f" ({' -> '.join(path)})" if path else ""
        super().__init__(f"the run reached {limit}={value}{way}; raise the limit, or go on from error.messages")


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
