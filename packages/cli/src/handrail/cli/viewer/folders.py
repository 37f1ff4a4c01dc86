"""A folder of sessions as pages: one for each, and one that lists them."""

import os
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path, PurePath

import msgspec

from handrail.cli.audits import Places
from handrail.cli.exits import one_line
from handrail.cli.keys import Keys
from handrail.cli.screens import Progress
from handrail.cli.viewer.pages import page
from handrail.cli.viewer.shapes import Sheet
from handrail.cli.viewer.sheets import sheet
from handrail.filters.messages import whole
from handrail.sessions import SessionError
from handrail.sessions.places import Where

_LIST = "index.html"


class Entry(msgspec.Struct, omit_defaults=True):
    """A session in the list: its page's place beside the list (empty where none could be made), and what it holds."""

    title: str
    file: str
    state: str
    ok: bool
    page: str = ""
    sealed: bool = False
    agents: list[str] = []
    messages: int = 0
    handoffs: int = 0
    tokens: int = 0
    errors: int = 0
    begun: int = 0
    problem: str = ""


class Listing(msgspec.Struct, omit_defaults=True):
    """The sessions of a folder, and how many of its files are none."""

    folder: str
    entries: list[Entry]
    passed_over: int = 0


def written(folder: str, places: Places, out: Path, keys: Keys, progress: Progress | None = None) -> Iterator[Entry]:
    """Writes a page for each session, and at the end `index.html`, into the folder `out`, which must be there; gives
    each session as its page stands. One that cannot be read is in the list, with the reason."""
    listing = Listing(folder, [], places.passed_over)
    done = 0
    inners = [os.path.relpath(place.name, folder) for place in places.sessions]
    for place, inner, name in zip(places.sessions, inners, page_names(inners), strict=True):
        entry = _entry(place.path, inner, out / name, name, keys)
        listing.entries.append(entry)
        done += place.size
        if progress is not None:
            progress(done)
        yield entry
    (out / _LIST).write_bytes(page("index", listing))


def page_names(inners: Sequence[str]) -> list[str]:
    """Where the page of each session is in the folder of pages: none is where another is, where the list is, or where
    a folder has to be, also not where upper and lower case are the same."""
    # A link cannot name bytes that are no UTF-8.
    spelled = [whole(inner) for inner in inners]
    moved = [f"_{inner}" if inner.casefold().startswith(f"{_LIST}{os.sep}") else inner for inner in spelled]
    taken = {_LIST} | {str(folder).casefold() for inner in moved for folder in PurePath(inner).parents}
    names = []
    for inner in moved:
        others = (f"{inner}-{number}.html" for number in count(2))
        wanted = chain((f"{inner.removesuffix('.jsonl')}.html", f"{inner}.html"), others)
        names.append(next(name for name in wanted if name.casefold() not in taken))
        taken.add(names[-1].casefold())
    return names


def _entry(path: Where, inner: str, target: Path, name: str, keys: Keys) -> Entry:
    try:
        found = sheet(path, inner, passphrase=keys.of(path, mixed=True))
    except (SessionError, OSError) as error:
        return Entry(inner, inner, "unreadable", False, problem=one_line(error))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(page("page", found))
    return described(found, name)


def described(found: Sheet, name: str) -> Entry:
    """A session as the list has it; `name` is that of its page."""
    sums, agents = found.totals, dict.fromkeys([lane.name for lane in found.lanes])
    verified = found.verified
    return Entry(
        title=found.title,
        file=found.file,
        state=verified.state,
        ok=verified.ok,
        page=name,
        sealed=verified.sealed,
        agents=list(agents),
        messages=sums.messages,
        handoffs=sums.handoffs,
        tokens=sums.input + sums.output,
        errors=sums.errors,
        begun=found.begun or found.written,
        problem="" if verified.ok else (verified.details or [""])[0],
    )
