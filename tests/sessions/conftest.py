"""What stops a session's work in the middle."""

import signal
from collections.abc import Callable, Iterator

import pytest


class Stop(BaseException):
    """Comes at any moment, as Ctrl-C does."""


@pytest.fixture
def stopped() -> Iterator[Callable[[float, Callable[[], object]], bool]]:
    """Does something over and over for so many seconds, and tells whether it was stopped in the middle."""

    def stop(*_: object) -> None:
        raise Stop

    def over_and_over(seconds: float, work: Callable[[], object]) -> bool:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            while signal.getitimer(signal.ITIMER_REAL)[0]:
                work()
            work()
        except Stop:
            return True
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return False

    before = signal.signal(signal.SIGALRM, stop)
    yield over_and_over
    signal.signal(signal.SIGALRM, before)
