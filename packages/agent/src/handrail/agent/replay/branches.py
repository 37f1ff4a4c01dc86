"""Which part of a run rests on answers that nobody gave to what was asked."""

from handrail.sessions import SubagentRecord


class Branches:
    """The scopes of a run in which such an answer was used. What one sub-agent was told so is no matter of those beside
    it, but of its caller as soon as that goes on, and of all that is asked from there."""

    def __init__(self) -> None:
        self._unproven: set[tuple[str, str]] = set()
        self._ended: set[tuple[str, str]] = set()

    def doubt(self, path: str) -> None:
        """The agent at this path goes on with an answer that was given to something else."""
        self._unproven.add(_scope(path))

    def end(self, record: SubagentRecord) -> None:
        """A sub-agent's call, or that part of one, has ended."""
        self._ended.add(_scope(record.target_path))

    def is_proven(self, path: str) -> bool:
        """Whether what the agent at this path is about to ask rests on no such answer."""
        scope = _scope(path)
        if any([_is_within(other, scope) for other in self._unproven]):
            # It goes on, so what it asked others has come back.
            self._unproven.add(scope)
        while scope not in self._unproven:
            if any([_came_before(other, scope) for other in self._unproven & self._ended]):
                return False
            if not scope[0]:
                return True
            scope = _scope(scope[0])
        return False


def _scope(path: str) -> tuple[str, str]:
    """Whose call it is in, and which; of the outermost scope neither."""
    caller, _, own = path.rpartition("/")
    return caller, own.partition("@")[2] if caller else ""


def _is_within(inner: tuple[str, str], outer: tuple[str, str]) -> bool:
    while inner[0]:
        inner = _scope(inner[0])
        if inner == outer:
            return True
    return False


def _came_before(other: tuple[str, str], scope: tuple[str, str]) -> bool:
    # Parts of one call: a later one may have been asked because of what an earlier one said.
    same = other[0] == scope[0] and other[1].partition("@")[0] == scope[1].partition("@")[0]
    return same and int(other[1].partition("@")[2] or 0) < int(scope[1].partition("@")[2] or 0)
