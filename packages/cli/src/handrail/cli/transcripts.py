"""The messages in a file, whatever it is: a Handrail session, or a transcript that another tool wrote."""

import msgspec

from handrail.cli.errors import NoSuchTranscript, UnfitInput
from handrail.filters import History
from handrail.sessions import NotASession, Passphrase, PassphraseMissing, Session, parse_file, read
from handrail.sessions.interchange import identified
from handrail.sessions.places import Place, Where


class Found(msgspec.Struct, frozen=True):
    """The messages of one view or one transcript, and which one it is, in words."""

    messages: History
    which: str


def is_session(path: Where) -> bool:
    """Whether a file is a Handrail session. Raises `UnsupportedVersion` or `DamagedSession` for one that is not fit."""
    try:
        read(path)
    except NotASession:
        return False
    except PassphraseMissing:
        pass  # it is one, and what is in it is for who has the passphrase
    return True


def find_messages(
    path: Where, name: str, agent: str | None, pick: int | None, passphrase: Passphrase | None = None
) -> Found:
    """The messages of a session's view, or of a foreign transcript; `pick` counts transcripts from 1.

    Raises `UnknownView`, `NoSuchTranscript`, `UnfitInput` for a choice the file has no use for, or `FormatError`.
    """
    if isinstance(path, Place) or is_session(path):
        if pick is not None:
            raise UnfitInput(f"{name}: is one session, so there is nothing to --pick; --agent chooses a view")
        session = Session(path, passphrase=passphrase)
        chosen = agent or session.active_agent or next(iter(session.views), None)
        return Found(session.history(agent), f"the view of {chosen}")
    if agent is not None:
        raise UnfitInput(f"{name}: is no Handrail session, so it has no views; leave --agent out")
    _, transcripts = parse_file(path)
    if pick is None and len(transcripts) == 1:
        pick = 1
    if pick is None or not 1 <= pick <= len(transcripts):
        raise NoSuchTranscript(name, pick, len(transcripts))
    which = "the transcript" if len(transcripts) == 1 else f"transcript {pick} of {len(transcripts)}"
    return Found(History(identified(transcripts[pick - 1].messages, "assistant")), which)
