"""Session files of many messages: written, read and verified, each in a process of its own."""

import asyncio
import gc
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TypeAlias, TypeVar

import msgspec

from benchmarks.floors import files
from benchmarks.memory import apart, peak
from benchmarks.rows import Result, Scale, Target, row
from benchmarks.subjects import NO_LIMIT, add, asking
from handrail import agent, filters, sessions
from handrail.agent.kernel import ChatRequest

SMALL, MIDDLE, LARGE = 10_000, 100_000, 1_000_000
STRETCH = 100
"""Messages from one handoff to the next in a session whose handoffs are checked."""

CHUNK = 1_000
"""Messages made at a time, outside the clock, to be written."""

Work: TypeAlias = Callable[[Path, int], float]
"""Does its work on a file with so many messages, and gives the seconds it took."""
_Message = TypeVar("_Message")


def writing(count: int, make: Callable[[int], _Message], append: Callable[[_Message], object]) -> float:
    """The seconds it takes to append so many messages; that they exist is not in it."""
    seconds = 0.0
    for start in range(0, count, CHUNK):
        messages = [make(number) for number in range(start, start + CHUNK)]
        begin = perf_counter()
        for message in messages:
            append(message)
        seconds += perf_counter() - begin
    return seconds


def write(path: Path, count: int) -> float:
    """Every message by itself: one record, one write(2)."""
    path.unlink(missing_ok=True)
    with sessions.Journal.open(path, fsync="never") as journal:
        return writing(
            count,
            lambda number: filters.assistant(files.WORDS.format(number), id=f"m{number}", agent="Clerk"),
            lambda message: journal.append(sessions.MessageRecord(path="Clerk", message=message)),
        )


def write_bare(path: Path, count: int) -> float:
    with closing(files.BareFile(path)) as file:
        return writing(count, files.bare_message, file.append)


def write_typed(path: Path, count: int) -> float:
    with closing(files.TypedFile(path)) as file:
        return writing(count, files.typed_message, file.append)


def clocked(work: Callable[[Path], object]) -> Work:
    """A work that needs only the file."""

    def measured(path: Path, count: int) -> float:
        begin = perf_counter()
        work(path)
        return perf_counter() - begin

    return measured


def read(path: Path) -> None:
    for _ in sessions.read(path):
        pass


def verify(path: Path) -> None:
    _intact(sessions.verify(path, integrity_only=True))


def verify_filters(path: Path) -> None:
    _intact(sessions.verify(path))


def _intact(verdict: sessions.Verdict) -> None:
    if verdict.state != "intact":
        raise ValueError(f"the session is {verdict.state}")


def talk(path: Path, count: int) -> float:
    """Two agents that hand over to each other once in every stretch, until there are so many messages."""
    calls = iter(range(sys.maxsize))

    def model(request: ChatRequest) -> filters.Message | str:
        # A stretch is a question, 48 calls with their results, a transfer with its result, and an answer.
        number = next(calls)
        if number % 50 < 48:
            return asking(number)
        if number % 50 == 48:
            return filters.assistant(filters.ToolCall(f"transfer_{number}", request.tools[-1].name))
        return "done"

    rules = agent.FunctionModel(model)
    billing = agent.Agent("Billing", model=rules, tools=[add], handoffs=[agent.handoff("Desk")])
    desk = agent.Agent("Desk", model=rules, tools=[add], handoffs=[agent.handoff(billing)], limits=NO_LIMIT)
    begin = perf_counter()
    asyncio.run(_talk(desk, path, count))
    return perf_counter() - begin


async def _talk(first: agent.Agent, path: Path, count: int) -> None:
    with sessions.Session(path, fsync="never") as session:
        for _ in range(count // STRETCH):
            await first.run("And now?", session=session)


def exchange(path: Path, count: int) -> float:
    """The same, written without a run: a record a message, and a handoff in every stretch."""
    begin = perf_counter()
    path.unlink(missing_ok=True)
    views = {"Desk": filters.View(filters.History()), "Billing": filters.View(filters.History())}
    with sessions.Journal.open(path, fsync="never") as journal:
        for number in range(0, count, STRETCH):
            source, target = ("Desk", "Billing") if number // STRETCH % 2 == 0 else ("Billing", "Desk")
            _stretch(journal, views, source, target, number)
    return perf_counter() - begin


def _stretch(journal: sessions.Journal, views: dict[str, filters.View], source: str, target: str, number: int) -> None:
    said = [
        (filters.assistant if place % 2 else filters.user)(files.WORDS.format(place), id=f"m{place}")
        for place in range(number, number + STRETCH - 2)
    ]
    call = filters.ToolCall(f"t{number}", f"transfer_to_{target.lower()}", transfer=True)
    said.append(filters.assistant(call, id=f"c{number}", agent=source))
    result = filters.tool_result(call, "done", id=f"r{number}", agent=source)
    view = views[source].history.extend(said)
    edge, filter = filters.edge_history(view, call.id, kind="handoff"), filters.seal(filters.default_handoff_filter())
    seed = filter.hand_over(edge.messages, (), view)
    journal.append(*[sessions.MessageRecord(path=source, message=message) for message in said])
    journal.append(
        sessions.HandoffRecord(
            path=source,
            source=source,
            target=target,
            target_path=target,
            call_id=call.id,
            filter=filter.descriptor,
            view=view.digest,
            view_length=len(view),
            crossed=edge.crossed(seed),
            seed=filters.digest(seed),
            seed_length=len(seed),
        ),
        sessions.ToolResultRecord(path=source, message=result),
    )
    views[source] = filters.View(view.append(result))
    views[target] = views[target].enter(seed)


WORKS: dict[str, Work] = {
    "write": write,
    "read": clocked(read),
    "verify": clocked(verify),
    "verify filters": clocked(verify_filters),
    "talk": talk,
    "exchange": exchange,
    "bare write": write_bare,
    "bare read": clocked(files.read_bare),
    "bare verify": clocked(files.verify_bare),
    "typed write": write_typed,
    "typed read": clocked(files.read_typed),
    "typed verify": clocked(files.verify_typed),
}


class Took(msgspec.Struct, frozen=True):
    """What a work took in a process of its own: seconds, and the most memory it had resident, in bytes."""

    seconds: float
    peak: int


def took(work: str, path: Path, count: int, times: int = 1) -> Took:
    """The least of so many times, each in a new process."""
    found = [msgspec.convert(apart(__name__, work, str(path), str(count)), Took) for _ in range(times)]
    return Took(min([each.seconds for each in found]), min([each.peak for each in found]))


@row("session")
def session(scale: Scale) -> Iterator[Result]:
    large = MIDDLE if scale.quick else LARGE
    with TemporaryDirectory() as name:
        folder = Path(name)
        peaks: dict[str, dict[int, int]] = {"write": {}, "read": {}, "verify": {}}
        for count in (SMALL, large):
            times = 5 if count == SMALL else 1
            for work, limit in (("write", 4), ("read", 3), ("verify", 4)):
                ours = took(work, folder / f"{count}.jsonl", count, times)
                peaks[work][count] = ours.peak
                yield per_message(
                    f"{work} a session of {count:,} messages",
                    ours,
                    count,
                    limit,
                    {
                        floor: took(f"{floor} {work}", folder / f"{floor}.jsonl", count, times).seconds
                        for floor in ("bare", "typed")
                    },
                )
        for work, peak_at in peaks.items():
            grown = (peak_at[large] - peak_at[SMALL]) / 1e6
            what = f"{work}: peak memory at {large:,} above that at {SMALL:,}"
            yield Result(what, grown, "MB", grown, Target(4, "MB"))


@row("session-filters")
def session_filters(scale: Scale) -> Iterator[Result]:
    counts = (SMALL, MIDDLE) if scale.quick else (SMALL, MIDDLE, LARGE)
    with TemporaryDirectory() as name:
        peaks = {}
        for count in counts:
            path = Path(name) / "exchange.jsonl"
            took("exchange", path, count)
            ours = took("verify filters", path, count, {SMALL: 5, MIDDLE: 3}.get(count, 1))
            peaks[count] = ours.peak
            yield per_message(f"verify with filters, {count:,} messages, a handoff in {STRETCH}", ours, count, 8, {})
        path = Path(name) / "talk.jsonl"
        took("talk", path, MIDDLE)
        with path.open("rb") as lines:
            records = sum(1 for _ in lines)
        each = took("verify filters", path, MIDDLE, 2).seconds / records * 1e6
        what = f"the same on the journal of runs, {MIDDLE:,} messages, {records:,} records"
        yield Result(what, each, "µs", each, Target(8, "µs a record"))
    if LARGE in peaks:
        grown = (peaks[LARGE] - peaks[MIDDLE]) / (LARGE - MIDDLE)
        yield Result("verify with filters: memory a message", grown, "bytes", grown, Target(24, "bytes a message"))


def _make_ready() -> None:
    """Loads what the first session of a process loads, and lets the collector see it: neither is the cost of a
    message."""
    with TemporaryDirectory() as name:
        exchange(Path(name) / "s.jsonl", STRETCH)
        verify_filters(Path(name) / "s.jsonl")
    gc.collect()


def per_message(what: str, ours: Took, count: int, limit: float, floors: dict[str, float]) -> Result:
    each = {name: seconds / count * 1e6 for name, seconds in {"ours": ours.seconds, **floors}.items()}
    took = each.pop("ours")
    return Result(what, took, "µs", took, Target(limit, "µs a message"), each)


def main(work: str, path: str, count: str) -> None:
    _make_ready()
    seconds = WORKS[work](Path(path), int(count))
    print(json.dumps({"seconds": seconds, "peak": peak()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
