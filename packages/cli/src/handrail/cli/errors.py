"""What can go wrong between what was typed and what can be done.

HandrailError
└── CommandError                what was typed cannot be done
    ├── NoSuchTranscript        a place among the transcripts of a file, of which there are fewer
    ├── UnfitInput              input that is there, and is not what the command needs
    ├── ModuleNotLoaded         a module that is not there, or that fails while it is imported
    └── NoSuchAgent             `module:agent` does not lead to an agent
"""

from collections.abc import Sequence

from handrail.filters import HandrailError


class CommandError(HandrailError):
    """What was typed cannot be done; the message says what can."""


class NoSuchTranscript(CommandError):
    """A file of several transcripts, and none of them chosen, or one that is not there. Places count from 1."""

    def __init__(self, source: str, picked: int | None, count: int) -> None:
        self.source = source
        self.picked = picked
        self.count = count
        asked = "which one is not said" if picked is None else f"there is no number {picked}"
        super().__init__(f"{source}: holds {count} transcripts, and {asked}; pass --pick 1 to {count}")


class UnfitInput(CommandError):
    """Input that is there, and is not what the command needs."""


class ModuleNotLoaded(CommandError):
    """A module that is not there, or that fails while it is imported."""

    def __init__(self, module: str, problem: str) -> None:
        self.module = module
        self.problem = problem
        super().__init__(problem)


class NoSuchAgent(CommandError):
    """`module:agent` does not lead to an agent; `known` are the agents that the module does hold."""

    def __init__(self, place: str, problem: str, known: Sequence[str] = ()) -> None:
        self.place = place
        self.known = tuple(known)
        hint = f"; agents there: {', '.join(known)}" if known else ""
        super().__init__(f"{place}: {problem}{hint}")
