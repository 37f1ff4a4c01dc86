"""What filters, the seal, reports, tokens and audits cost, on long histories."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.measuring import Times, alternate, clocked
from benchmarks.rows import Result, Scale, Target, row
from handrail import filters, sessions
from handrail.filters import tokens

LONG = 100_000
SHORT = 10_000


def conversation(length: int) -> filters.History:
    """Questions and answers, with a tool call and its result in every five messages."""
    messages: list[filters.Message] = []
    for turn in range(length // 5):
        call = filters.ToolCall(f"c{turn}", "lookup", f'{{"order":{turn}}}')
        messages += [
            filters.user(f"Where is order {turn}, and when will it be here?", id=f"u{turn}"),
            filters.assistant(call, id=f"a{turn}"),
            filters.tool_result(call, f"Order {turn} left the depot.", id=f"r{turn}"),
            filters.assistant(f"Order {turn} is on its way.", id=f"s{turn}"),
            filters.user("Thank you.", id=f"t{turn}"),
        ]
    return filters.History(messages)


def timed(work: Mapping[str, Callable[[], object]], rounds: int, times: int = 1) -> Times:
    """The times of some calls, taken in turn."""

    def once(call: Callable[[], object]) -> Callable[[], object]:
        async def run() -> None:
            call()

        return run

    subjects = {name: clocked(once(call), times) for name, call in work.items()}  # type: ignore[arg-type]
    return asyncio.run(alternate(rounds, subjects))


@row("window")
def window(scale: Scale) -> Iterator[Result]:
    history = conversation(LONG)
    history.survey()
    last, sealed = filters.last_n(10), filters.seal(filters.last_n(10))
    work = {
        "floor": lambda: tuple([history[place] for place in range(LONG - 10, LONG)]),
        "filter": lambda: last(history),
        "seal": lambda: sealed.hand_over(history, (), history),
    }
    times = timed(work, scale.rounds(60), 200)
    floors = {"ten by place": times.least("floor") * 1e6}
    for what, name, limit in (("last_n(10)", "filter", 50), ("seal(last_n(10))", "seal", 150)):
        took = times.least(name) * 1e6
        yield Result(f"{what} on a history of {LONG:,}", took, "µs", took, Target(limit, "µs"), floors)


@row("seal")
def seal(scale: Scale) -> Iterator[Result]:
    history = conversation(SHORT)
    history.survey()
    for filter in (filters.full(), filters.strip_tool_calls(), filters.default_handoff_filter()):
        sealed = filters.seal(filter)
        crossing = len(sealed.hand_over(history, (), history))
        times = timed(
            {"filter": lambda: filter(history), "seal": lambda: sealed.hand_over(history, (), history)},  # noqa: B023
            scale.rounds(20),
        )
        more = (times.least("seal") - 1.5 * times.least("filter")) * 1e6 / crossing
        floors = {"filter": times.least("filter") * 1e6}
        what = f"the seal of {filter!r} on {SHORT:,}, over 1.5 times the filter"
        yield Result(what[:90], times.least("seal") * 1e6, "µs", more, Target(2, "µs a message that crosses"), floors)


@row("explain")
def explain(scale: Scale) -> Iterator[Result]:
    history = conversation(SHORT)
    counter = tokens.best_counter()
    tokens.total(history, counter)
    filter = filters.default_handoff_filter()
    times = timed(
        {"filter": lambda: filter(history), "explain": lambda: filter.explain(history, counter)}, scale.rounds(20)
    )
    took = times.least("explain") * 1e6 / SHORT
    floors = {"filter": times.least("filter") * 1e6 / SHORT}
    yield Result(
        f"explain on {SHORT:,}, counted by {counter} before", took, "µs", took, Target(2, "µs a message"), floors
    )


@row("tokens")
def count(scale: Scale) -> Iterator[Result]:
    counter = tokens.best_counter()
    history = conversation(SHORT)
    tokens.total(history, counter)
    grown = history.append(filters.user("One more question, if I may.", id="last"))

    def fresh() -> object:
        last = grown[SHORT].replace(id="last")
        return tokens.count(last, counter)

    new = timed({"new": fresh, "whole": lambda: tokens.total(grown, counter)}, scale.rounds(20))
    a_message = new.least("whole") * 1e6 / SHORT
    floors = {"a new message": new.least("new") * 1e6}
    what = f"counting {SHORT:,} messages by {counter} again, one of them new"
    yield Result(what, new.least("whole") * 1e6, "µs", a_message, Target(0.5, "µs a message counted before"), floors)


@row("audit")
def audit(scale: Scale) -> Iterator[Result]:
    from handrail.cli.audits import Place
    from handrail.cli.audits import audit as audited
    from handrail.cli.keys import Keys

    size = 20_000 if scale.quick else LONG
    policy = filters.Policy.from_toml(
        "[[rule]]\nname = 'tiers'\nmax_tier = 'internal'\nforbid_patterns = ['PIN [0-9]+']"
    )
    with TemporaryDirectory() as name:
        path = Path(name) / "s.jsonl"
        written(path, size)
        best = 1e9
        for _ in range(3):
            start = perf_counter()
            assert audited(Place("s", path, path.stat().st_size), policy, Keys(None)).messages == size
            best = min(best, perf_counter() - start)
    rate = size / best
    yield Result(f"audit of {size:,} messages", best * 1e3, "ms", rate, Target(50_000, "messages a second", True))


def written(path: Path, size: int) -> None:
    """A session with a handoff after every thousand messages."""
    history = filters.History()
    sealed = filters.seal(filters.default_handoff_filter())
    billing = filters.View(filters.History())
    with sessions.Journal.open(path, fsync="never") as journal:
        for number, message in enumerate(conversation(size), 1):
            result = message.role == "tool"
            record = sessions.ToolResultRecord if result else sessions.MessageRecord
            journal.append(record(path="desk", message=message))
            history = history.append(message)
            if number % 1000 == 0:
                edge = filters.edge_history(history, None, kind="handoff")
                seed = sealed.hand_over(edge.messages, (), edge.view)
                billing = billing.enter(seed)
                journal.append(
                    sessions.HandoffRecord(
                        path="desk",
                        source="desk",
                        target="billing",
                        target_path="billing",
                        filter=sealed.descriptor,
                        view=history.digest,
                        view_length=len(history),
                        crossed=edge.crossed(seed),
                        seed=filters.digest(seed),
                        seed_length=len(seed),
                    )
                )
