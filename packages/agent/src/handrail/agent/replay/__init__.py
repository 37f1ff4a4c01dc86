"""Recorded runs once more: as they were, to see whether anything diverges, or with something changed."""

from handrail.agent.replay.comparisons import Comparison
from handrail.agent.replay.differences import Difference
from handrail.agent.replay.divergences import Divergence
from handrail.agent.replay.reruns import Ran, Replay, rerun, rerun_sync
from handrail.agent.replay.what_ifs import WhatIf, what_if, what_if_sync

__all__ = [
    "Comparison",
    "Difference",
    "Divergence",
    "Ran",
    "Replay",
    "WhatIf",
    "rerun",
    "rerun_sync",
    "what_if",
    "what_if_sync",
]
