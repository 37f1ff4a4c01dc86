"""A recorded boundary runs the version of its filter that was recorded, whatever versions came later."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path

from handrail.filters import Filter, History, last_n, user
from handrail.filters.messages import Messages
from handrail.filters.registry import filter_kind
from handrail.sessions import verify
from sessions.conversations import Conversation


def record(path, filter):
    with Conversation(path) as talk:
        for words in ("one", "two", "three"):
            talk.say("triage", user(words))
        talk.hand_over("triage", "billing", filter)
        print(path.name, [message.text for message in talk.history("billing")])


folder = Path(sys.argv[1])
record(folder / "old.jsonl", last_n(2))


@filter_kind("last-n", version=2)
class Newer(Filter, frozen=True):
    "The same name, and another behaviour: the first ones."

    n: int = 1

    def __call__(self, history: Messages) -> Messages:
        return history[: self.n]


record(folder / "new.jsonl", Newer(2))
for name in ("old.jsonl", "new.jsonl"):
    verdict = verify(folder / name)
    print(name, verdict.state, verdict.boundaries)
"""


def test_a_session_recorded_before_last_n_got_a_second_version_still_verifies_beside_newer_ones(tmp_path: Path) -> None:
    tests = Path(__file__).parent.parent
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tests)!r})\n{PROGRAM}", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines() == [
        "old.jsonl ['two', 'three']",
        "new.jsonl ['one', 'two']",
        "old.jsonl intact 1 boundary run again",
        "new.jsonl intact 1 boundary run again",
    ]
    # Without the second version the newer session cannot run here, and the older one still does.
    check = "import sys; from handrail.sessions import verify; print(*[verify(path).state for path in sys.argv[1:]])"
    names = [str(tmp_path / name) for name in ("old.jsonl", "new.jsonl")]
    again = subprocess.run([sys.executable, "-c", check, *names], capture_output=True, text=True, check=True)
    assert again.stdout == "intact not runnable\n"
