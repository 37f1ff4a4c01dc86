"""Looking through a store: for plain sessions what is kept to be found by, for encrypted ones themselves where there is
a passphrase; those that stay locked are named."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from handrail.sessions.errors import EncryptionError
from handrail.sessions.passphrases import Passphrase
from handrail.sessions.scanning import scanned
from handrail.sessions.searching import Entry, Found, Hits, folded, holds

if TYPE_CHECKING:
    from handrail.sessions.storing import Store


def looked_through(
    store: Store, words: tuple[str, ...], limit: int | None, passphrase: Passphrase | None, locked: dict[str, None]
) -> Iterator[Found]:
    """The messages that hold all of these words, of which no more than `limit` are asked for; `locked` gets the ids of
    the sessions that were not looked into."""
    if not words:
        return
    if passphrase is None:
        locked.update(dict.fromkeys(store.encrypted()))
        yield from store.found(words)
        return
    plain: dict[str, list[Found]] = {}
    for each in islice(store.found(words), limit):
        plain.setdefault(each.session, []).append(each)
    for entry in store.entries():
        try:
            if entry.encrypted:
                yield from scanned(entry.id, store.place(entry.id), words, passphrase)
        except EncryptionError:
            locked[entry.id] = None
        yield from plain.pop(entry.id, ())


def listed(
    store: Store,
    tag: str | None,
    agent: str | None,
    words: tuple[str, ...],
    limit: int | None,
    passphrase: Passphrase | None,
) -> Hits[Entry]:
    """The entries that fit, last written to first; `locked` are those of which it cannot be seen whether they do."""
    locked = dict[str, None]()
    with_words = {found.session for found in looked_through(store, words, None, passphrase, locked)}
    kept: list[Entry] = []
    unknown: list[str] = []
    for entry in store.entries() if limit is None or limit > 0 else ():
        said = not words or entry.id in with_words or holds(folded(entry.title), words)
        spoke = agent is None or agent in entry.agents
        fits = (
            tag is None or tag in entry.tags,
            None if not said and entry.id in locked else said,
            None if not spoke and entry.encrypted else spoke,
        )
        if all(fits):
            kept.append(entry)
        elif False not in fits:
            unknown.append(entry.id)
        if len(kept) == limit:
            break
    return Hits(kept, unknown)
