"""Memory and time of a piece of work in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")


def peak() -> int:
    """The most memory that this process ever had resident, in bytes."""
    if STATUS.exists():
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def apart(module: str, *arguments: str) -> Any:
    """What `python -m module arguments` prints, read as JSON."""
    command = [sys.executable, "-m", module, *arguments]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
