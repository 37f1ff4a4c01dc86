"""How a command ends: the exit codes, and an error as one line that says what to do."""

import errno
import re
import sys
from contextvars import ContextVar

from handrail.cli.errors import CommandError
from handrail.filters import HandrailError

OK = 0
FAILED = 1
"""Drifted, damaged, tampered, or a run or filter that failed."""
MISUSED = 2
"""What was typed or given cannot be used."""
INTERRUPTED = 130

DEBUGGING: ContextVar[bool] = ContextVar("debugging", default=False)
"""Whether errors are told with their tracebacks."""

_NOT_PRINTED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_FULL = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO})
_ADVICE = {
    "DamagedSession": "`handrail verify` says what of it holds",
    "NothingToHandOver": "keep a user message, as last_n(10, keep_user=True) does",
    "CompressedSession": "on the command line: handrail run … --continue-from COPY --session NEW",
    "PassphraseMissing": "on the command line: --passphrase-file FILE, or HANDRAIL_PASSPHRASE",
    "SealedSession": "on the command line: handrail run … --continue-from COPY --session NEW",
    "UnknownSession": "`handrail sessions list` says which there are",
    "JournalFailed": "make room there, or choose another place",
}


def exit_code(error: BaseException) -> int:
    """The exit code for an error: 2 where other input would help, 130 for an interrupt, else 1."""
    from handrail.filters import InvalidDescriptor, InvalidExpression, InvalidFilter, PolicyInvalid
    from handrail.filters.errors import CounterMissing
    from handrail.sessions import (
        CompressedSession,
        EncryptionError,
        ForkRefused,
        FormatError,
        LineTooLong,
        NotASession,
        OutdatedSession,
        SealedSession,
        SessionExists,
        StoreFailed,
        UnknownSession,
        UnknownStore,
        UnknownView,
        UnsupportedStore,
        UnsupportedVersion,
    )

    match error:
        case KeyboardInterrupt():
            return INTERRUPTED
        case StoreFailed():
            return FAILED  # the same command may find it another time
        case OSError() if is_full(error):
            return FAILED
        case CommandError() | InvalidExpression() | InvalidFilter() | InvalidDescriptor() | PolicyInvalid() | OSError():
            return MISUSED
        case CounterMissing() | FormatError() | NotASession():
            return MISUSED
        case EncryptionError() | CompressedSession() | OutdatedSession() | LineTooLong():
            return MISUSED
        case ForkRefused() | UnknownSession() | UnknownStore() | UnsupportedStore():
            return MISUSED
        case SealedSession() | SessionExists() | UnknownView() | UnsupportedVersion():
            return MISUSED
        case _:
            return MISUSED if _built_wrong(error) else FAILED


def is_full(error: BaseException) -> bool:
    """Whether what was written to, standard output or a temporary file, took no more."""
    return isinstance(error, OSError) and error.filename is None and error.errno in _FULL


def _built_wrong(error: BaseException) -> bool:
    # Where agents were never imported, none was put together wrongly.
    agents = sys.modules.get("handrail.agent.errors")
    return agents is not None and isinstance(error, agents.BuildError | agents.ReplayRefused)


def one_line(error: BaseException) -> str:
    """What went wrong and what to do about it, in one line that is safe to print."""
    match error:
        case HandrailError():
            advice = _ADVICE.get(type(error).__name__, "")
            text = f"{error}; {advice}" if advice else str(error)
        case FileNotFoundError(filename=str() | bytes() as name):
            text = f"{name!s}: there is no such file or folder; name one that is there"
        case PermissionError(filename=str() | bytes() as name):
            text = f"{name!s}: may not be opened; see who owns it and what its permissions are"
        case IsADirectoryError(filename=str() | bytes() as name):
            text = f"{name!s}: is a folder; name a file"
        case OSError(filename=str() | bytes() as name):
            text = f"{name!s}: {error.strerror}"
        case OSError() if is_full(error):
            text = f"the output could not be written: {error.strerror}; make room there, or send it elsewhere"
        case _:
            text = f"{type(error).__name__}: {error}; --debug shows where"
    return printable(text)


def show_traceback() -> None:
    """The traceback of the error that is being handled, where it was asked for."""
    if DEBUGGING.get():
        import traceback

        traceback.print_exc()


def printable(text: str) -> str:
    """The text on one line, without what would move a terminal's cursor or turn its text around."""
    return _NOT_PRINTED.sub(" ", text).strip()
