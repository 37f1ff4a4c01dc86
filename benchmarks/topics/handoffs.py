"""What a handoff costs after a long conversation, with its record and digests.

It is held against two runs without one: where the first agent answers at once (so the other agent's turn counts as
part of the handoff), and where it calls a tool and answers then (so both runs have two model calls).
"""

import asyncio
import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.floors import bare, edges, typed
from benchmarks.measuring import Sample, alternate, clocked
from benchmarks.rows import Result, Scale, Target, row
from benchmarks.subjects import add
from handrail import agent, filters, sessions

PRIOR = 1_000
RUNS = 20
"""Runs in one sample, each on a conversation of its own."""


def desk(answers: Sequence[filters.ToolCall | str]) -> agent.Agent:
    """An agent that answers so, over and over, and may hand over to one that is done at once."""
    given = cycle(answers)
    billing = agent.Agent("Billing", model=agent.FunctionModel(lambda request: "done"))
    model = agent.FunctionModel(lambda request: next(given))
    return agent.Agent("Desk", model=model, tools=[add], handoffs=[agent.handoff(billing)])


TRANSFER = filters.ToolCall("t1", "transfer_to_billing")
ADD = filters.ToolCall("t1", "add", '{"a":1,"b":2}')


def conversation() -> list[filters.Message]:
    """Questions, tool calls, results and answers, as they are after many runs."""
    messages: list[filters.Message] = []
    for turn in range(PRIOR // 4):
        call = filters.ToolCall(f"c{turn}", "lookup", f'{{"order":{turn}}}')
        messages += [
            filters.user(f"Where is order {turn}?", id=f"u{turn}"),
            filters.assistant(call, id=f"a{turn}", agent="Desk"),
            filters.tool_result(call, f"Order {turn} left the depot.", id=f"r{turn}"),
            filters.assistant(f"Order {turn} is on its way.", id=f"s{turn}", agent="Desk"),
        ]
    return messages


def fresh(message: filters.Message) -> filters.Message:
    """An equal message whose digest nobody has asked for."""
    return message.replace(id=message.id)


def run_on(ours: agent.Agent, history: Callable[[], filters.History], folder: Path) -> Sample:
    """Runs on conversations that their sessions hold already; making those ready is not in the time."""

    async def sample() -> float:
        with ExitStack() as stack:
            ready = [stack.enter_context(holding(folder / f"{number}.jsonl", history())) for number in range(RUNS)]
            gc.collect()
            start = perf_counter()
            for session in ready:
                await ours.run("My invoice is wrong.", session=session)
            return (perf_counter() - start) / RUNS

    return sample


def holding(path: Path, history: filters.History) -> sessions.Session:
    """A new session in whose first agent's view a conversation stands."""
    path.unlink(missing_ok=True)
    session = sessions.Session(path, fsync="never")
    session.append(sessions.SessionRecord(title="an invoice"))
    session.views["Desk"] = filters.View(history)
    return session


def floors(folder: Path) -> dict[str, Sample]:
    file = os.open(folder / "floor.jsonl", os.O_WRONLY | os.O_CREAT)
    dicts = [bare.answer("yes") if place % 2 else bare.user("what?") for place in range(PRIOR)]
    ledger = edges.Ledger([typed.answer("yes").message if place % 2 else typed.user("what?") for place in range(PRIOR)])
    return {"bare": _many(lambda: edges.bare_handoff(dicts, file)), "typed": _many(lambda: ledger.handoff(file))}


def _many(work: Callable[[], object]) -> Sample:
    async def once() -> None:
        work()

    return clocked(once, 50)


@row("handoff")
def handoff(scale: Scale) -> Iterator[Result]:
    messages = conversation()

    def known() -> filters.History:
        history = filters.History(messages)
        history.survey()
        assert history.digest
        assert history.position("nobody") is None
        return history

    def new() -> filters.History:
        return filters.History([fresh(message) for message in messages])

    for what, history, limit in (("digests known", known, 100), ("all new", new, 2_000)):
        with TemporaryDirectory() as name:
            folder = Path(name)
            subjects = {
                "with": run_on(desk([TRANSFER]), history, folder),
                "answer": run_on(desk(["done"]), known, folder),
                "tool": run_on(desk([ADD, "done"]), known, folder),
                **floors(folder),
            }
            times = asyncio.run(alternate(scale.rounds(60), subjects))
        for beside, other in (("beside an answer", "answer"), ("beside a tool call", "tool")):
            more = times.more("with", other) * 1e6
            yield Result(
                f"a handoff after 1,000 messages, {what}, {beside}",
                times.least("with") * 1e6,
                "µs",
                more,
                Target(limit, "µs more"),
                {name: times.least(name) * 1e6 for name in (other, "bare", "typed")},
            )


@row("boundary")
def boundary(scale: Scale) -> Iterator[Result]:
    """The handoff as the floors have it, without the turn and the model call that follow it in a run."""
    messages = conversation()
    sealed = filters.seal(filters.default_handoff_filter())
    called = filters.assistant(filters.ToolCall("t1", "transfer_to_billing", transfer=True), id="t", agent="Desk")

    def crossed(journal: sessions.Journal, history: filters.History) -> None:
        view = history.append(called)
        edge = filters.edge_history(view, "t1", kind="handoff")
        seed = sealed.hand_over(edge.messages, (), edge.view, asked_by="Desk\0t1")
        record = sessions.HandoffRecord(
            path="Desk",
            source="Desk",
            target="Billing",
            target_path="Billing",
            call_id="t1",
            filter=descriptor,
            view=view.digest,
            view_length=len(view),
            crossed=edge.crossed(seed),
            seed=filters.digest(seed),
            seed_length=len(seed),
        )
        journal.append(record)
        filters.View(filters.History()).enter(seed)

    descriptor = sealed.descriptor
    with TemporaryDirectory() as name, sessions.Journal.open(Path(name) / "s.jsonl", fsync="never") as journal:
        for what, limit, times in (("digests known", 100, 50), ("all new", 2_000, 1)):
            taken: list[float] = []
            for _ in range(scale.rounds(60)):
                history = filters.History(messages if what == "digests known" else [fresh(each) for each in messages])
                if what == "digests known":
                    history.survey()
                    assert history.digest
                    assert history.position("nobody") is None
                gc.collect()
                start = perf_counter()
                for _ in range(times):
                    crossed(journal, history)
                taken.append((perf_counter() - start) / times)
            took = sorted(taken)[len(taken) // 4] * 1e6
            ledger = floors(Path(name))["typed"]
            floor = asyncio.run(alternate(10, {"typed": ledger})).least("typed") * 1e6
            what = f"the boundary alone after 1,000 messages, {what}"
            yield Result(what, took, "µs", took, Target(limit, "µs"), {"typed": floor})
