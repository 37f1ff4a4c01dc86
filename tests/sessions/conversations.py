"""A conversation of several agents, written down as a run writes it."""

import json
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from handrail.filters import (
    Filter,
    History,
    Message,
    Note,
    ToolCall,
    View,
    assistant,
    call,
    digest,
    edge_history,
    seal,
    tool_result,
)
from handrail.filters.messages import Messages
from handrail.sessions import (
    Cost,
    HandoffRecord,
    Journal,
    MessageRecord,
    Passphrase,
    Session,
    SubagentRecord,
    ToolResultRecord,
    Unknown,
    open_store,
)
from handrail.sessions.codec import decode, encode, unchained
from handrail.sessions.writer import Fsync

WORDS = "a-parcel-that-nobody-may-know-of"
CHEAP = Cost(n=1 << 10, p=1)


def secret(words: str = WORDS) -> Passphrase:
    """A passphrase whose key is quickly made, and of whose text nothing may be shown."""
    return Passphrase(words, cost=CHEAP)


def put(path: Path, data: bytes) -> None:
    """Makes the file anew. To write over one takes a hundred times as long where the file system keeps the old safe."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


@contextmanager
def opened(folder: Path, where: str, fsync: Fsync = "turn") -> Iterator[Session]:
    """A session of the store at `where` in the folder, or for `*.jsonl` in a file of its own; both are closed after."""
    with ExitStack() as stack:
        if where.endswith(".jsonl"):
            yield stack.enter_context(Session(folder / where, fsync=fsync))
        else:
            store = stack.enter_context(open_store(f"{folder}/{where}", fsync=fsync))
            yield stack.enter_context(store.open("desk"))


def rechained(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> Path:
    """A session beside this one, of its lines after a change, in a chain of their own."""
    made = path.with_name("rechained.jsonl")
    made.unlink(missing_ok=True)
    with Journal.create(made, fsync="never") as journal:
        lines = [unchained(decode(line)) for line in path.read_bytes().splitlines()[1:]]
        bodies = change([encode(record) for record in lines])
        journal.append(*[Unknown("", body) for body in bodies])
    return made


def times_open(path: Path) -> int:
    """How often this process has the file open."""
    links = [Path("/proc/self/fd", each) for each in os.listdir("/proc/self/fd")]
    return sum([link.exists() and link.samefile(path) for link in links])


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file grows over this size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class Conversation:
    """Keeps every agent's view as a loop does, and writes each record as it happens."""

    def __init__(self, path: Path, passphrase: Passphrase | None = None) -> None:
        self.session = Session(path, fsync="never", passphrase=passphrase)
        self.views = dict(self.session.views)
        self.count = len(self.session.log)

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def name(self) -> str:
        self.count += 1
        return f"m{self.count}"

    def history(self, path: str) -> History:
        view = self.views.get(path)
        return view.history if view is not None else History()

    def keep(self, path: str, messages: Messages) -> None:
        view = self.views.get(path, View(History()))
        self.views[path] = View(view.history.extend(messages), view.removed)

    def say(self, path: str, message: Message) -> Message:
        message = message.replace(id=self.name())
        self.session.append(MessageRecord(path=path, message=message))
        self.keep(path, [message])
        return message

    def use_tool(self, path: str, *names: str, backwards: bool = False) -> None:
        """One response with these calls; their results come in order, or from the last to the first."""
        calls = [call(name, call_id=f"c{self.count}-{place}") for place, name in enumerate(names)]
        self.say(path, assistant("Let me see.", calls, agent=path))
        results = [tool_result(each, f"{each.name} says yes", id=self.name()) for each in calls]
        for result in reversed(results) if backwards else results:
            self.session.append(ToolResultRecord(path=path, message=result))
        self.keep(path, results)

    def hand_over(
        self,
        source: str,
        target: str,
        filter: Filter | Callable[[Messages], Messages],
        reason: str = "Please help.",
        beside: str | None = None,
    ) -> None:
        """A handoff; `beside` is an ordinary tool called in the same response, after the transfer call."""
        transfer = ToolCall(f"h{self.count}", f"transfer_to_{target}", json.dumps({"reason": reason}), transfer=True)
        others = [call(beside, call_id=f"b{self.count}")] if beside is not None else []
        self.say(source, assistant([transfer, *others], agent=source))
        results = [tool_result(each, "done", id=self.name()) for each in others]
        for result in results:
            self.session.append(ToolResultRecord(path=source, message=result))
        view = self.history(source).extend(results)
        edge = edge_history(view, transfer.id, kind="handoff")
        notes = (Note("reason", reason),)
        sealed = seal(filter)
        seed = sealed.hand_over(edge.messages, notes, edge.view, asked_by=f"{source}\0{transfer.id}")
        said = tool_result(transfer, f"The conversation goes to {target}.", id=self.name())
        self.session.append(
            HandoffRecord(
                path=source,
                source=source,
                target=target,
                target_path=target,
                call_id=transfer.id,
                notes=notes,
                filter=sealed.descriptor,
                view=view.digest,
                view_length=len(view),
                crossed=edge.crossed(seed),
                seed=digest(seed),
                seed_length=len(seed),
            ),
            ToolResultRecord(path=source, message=said),
        )
        self.keep(source, [said, *results])
        known = self.views.get(target)
        self.views[target] = known.enter(seed) if known is not None else View(History(seed))

    def ask(self, caller: str, child: str, filter: Filter, input: str, answer: str) -> None:
        """A sub-agent is asked, says one thing, and answers."""
        asked = call(child, call_id=f"s{self.count}", input=input)
        self.say(caller, assistant(asked, agent=caller))
        self._start(caller, child, asked, filter, input)
        self._end(caller, child, asked, answer)
        self._answer(caller, asked, answer)

    def ask_all(self, caller: str, filter: Filter, input: str, **answers: str) -> None:
        """One call asks several sub-agents side by side; what they answer makes its result."""
        asked = call("fan_out", call_id=f"s{self.count}", input=input)
        self.say(caller, assistant(asked, agent=caller))
        parts = list(enumerate(answers.items(), 1))
        for part, (child, _) in parts:
            self._start(caller, child, asked, filter, input, part)
        for part, (child, answer) in reversed(parts):
            self._end(caller, child, asked, answer, part)
        self._answer(caller, asked, " | ".join(answers.values()))

    def _start(self, caller: str, child: str, asked: ToolCall, filter: Filter, input: str, part: int = 0) -> None:
        view = self.history(caller)
        edge = edge_history(view, asked.id, kind="subagent")
        notes, sealed = (Note("input", input),), seal(filter)
        key = f"{caller}\0{asked.id}\0{part}" if part else f"{caller}\0{asked.id}"
        seed = sealed.hand_over(edge.messages, notes, edge.view, asked_by=key)
        self.session.append(
            SubagentRecord(
                event="start",
                notes=notes,
                filter=sealed.descriptor,
                view=view.digest,
                view_length=len(view),
                crossed=edge.crossed(seed),
                seed=digest(seed),
                seed_length=len(seed),
                **self._place(caller, child, asked, part),
            )
        )

    def _end(self, caller: str, child: str, asked: ToolCall, answer: str, part: int = 0) -> None:
        place = self._place(caller, child, asked, part)
        said = assistant(answer, agent=child, id=self.name())
        self.session.append(MessageRecord(path=place["target_path"], message=said))
        label = "secret" if part else None
        self.session.append(SubagentRecord(event="end", status="completed", answer=answer, sensitivity=label, **place))

    def _place(self, caller: str, child: str, asked: ToolCall, part: int) -> dict[str, Any]:
        path = f"{caller}/{child}@{asked.id}@{part}" if part else f"{caller}/{child}@{asked.id}"
        same = {"path": caller, "source": caller, "target": child, "target_path": path, "call_id": asked.id}
        return {**same, "part": part}

    def _answer(self, caller: str, asked: ToolCall, answer: str) -> None:
        result = tool_result(asked, answer, id=self.name())
        self.session.append(ToolResultRecord(path=caller, message=result))
        self.keep(caller, [result])
