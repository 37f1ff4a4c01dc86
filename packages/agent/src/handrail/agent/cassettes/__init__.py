"""Model calls recorded once and answered from the recording ever after."""

from handrail.agent.cassettes.cassettes import Cassette, Mode
from handrail.agent.cassettes.tapes import Recording

__all__ = ["Cassette", "Mode", "Recording"]
