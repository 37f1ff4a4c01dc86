"""What a token costs on its way to who listens: with nothing in its way, and with transforms."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence

from benchmarks.measuring import alternate, clocked
from benchmarks.rows import Result, Scale, Target, row
from handrail import agent, filters
from handrail.agent.kernel import ChatRequest, Middleware, TokenTransform
from handrail.agent.middleware import HoldRelease, TokenRedact
from handrail.agent.models import Delta, TextDelta

SAID = "The quick brown fox jumps over the lazy dog, and then it goes home to Berlin; nobody said a word."
PIECES = [TextDelta(f"{word} ") for word in SAID.split(" ") * 100]
ANSWER = filters.assistant("".join([piece.text for piece in PIECES]))


class Reader(agent.FunctionModel):
    """A model that streams the same ordinary text each time."""

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Delta | agent.ChatResponse, None]:
        for piece in PIECES:
            yield piece
        yield agent.ChatResponse(ANSWER)


class Pass(Middleware):
    def token_transform(self, request: ChatRequest) -> TokenTransform:
        return TokenTransform()


class Elsewhere(Middleware):
    async def around_tool(self, request: object, call_next: object) -> object:  # type: ignore[override]
        raise AssertionError("no tool is called")


SUBJECTS: dict[str, tuple[str, Callable[[], Middleware], float]] = {
    "elsewhere": ("a token past a layer without a transform", Elsewhere, 0.1),
    "pass": ("a token through a transform that passes it on", Pass, 1.0),
    "email": ("a token of ordinary text through TokenRedact, e-mail", lambda: TokenRedact("email"), 6.0),
    "all": ("the same, every detector there is", lambda: TokenRedact(["secrets", "personal"]), 12.0),
    "pattern": ("the same, a pattern of one's own", lambda: TokenRedact(r"sk-\w+"), 6.0),
    "sentence": ("a token through HoldRelease, by sentence", lambda: HoldRelease(bool, by="sentence"), 6.0),
}


def heard(layers: Sequence[Middleware]) -> Callable[[], Awaitable[object]]:
    """A streamed run, every event read."""
    reader = agent.Agent("Reader", model=Reader(lambda request: ""), middleware=layers)

    async def run() -> None:
        async with reader.stream("go") as stream:
            async for _ in stream:
                pass

    return run


@row("token")
def token(scale: Scale) -> Iterator[Result]:
    subjects = {name: clocked(heard([make()])) for name, (_, make, _) in SUBJECTS.items()}
    times = asyncio.run(alternate(scale.rounds(40), {"without": clocked(heard([])), **subjects}))
    each = 1e6 / len(PIECES)
    for name, (what, _, limit) in SUBJECTS.items():
        more = times.more(name, "without") * each
        floors = {"no layer": times.least("without") * each}
        yield Result(what, more, "µs", more, Target(limit, "µs more a token"), floors)
