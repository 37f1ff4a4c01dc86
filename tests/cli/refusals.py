"""Places that refuse to be written to, for whoever runs the tests."""

import ctypes
import os
import resource

_DROP_FROM_BOUNDING_SET = 24
_OVERRIDES = (1, 2)


def obey_permissions() -> None:
    """Run before a command: even the superuser then may not write where permissions say so (Linux)."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in _OVERRIDES:
            if libc.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0) != 0:
                raise OSError(ctypes.get_errno(), "this process may not give up its rights")


def full_after(size: int) -> None:
    """Run before a command: no file of it can grow beyond this many bytes, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
