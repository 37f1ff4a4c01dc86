"""A conversation in a file: it goes on in another process, and can be verified later."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from handrail.agent import Agent, FunctionModel, handoff
from handrail.agent.kernel import ChatRequest
from handrail.filters import ToolCall, call, last_user
from handrail.sessions import Session, verify


def triage_answer(request: ChatRequest) -> ToolCall:
    return call("transfer_to_billing", call_id=f"h{len(request.messages)}")


def billing_answer(request: ChatRequest) -> str:
    return f"This is billing, in process {os.getpid()}. I have {len(request.messages)} messages before me."


billing = Agent("billing", model=FunctionModel(billing_answer))
triage = Agent("triage", model=FunctionModel(triage_answer), handoffs=[handoff(billing, filter=last_user())])

if sys.argv[1:2] == ["again"]:
    # The second process: the session says that billing has the conversation, and what billing has seen of it.
    print(triage.run_sync("And the other one?", session=sys.argv[2]).output)
    sys.exit()

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "desk.session.jsonl"
    print(triage.run_sync("I was charged twice.", session=str(path)).output, flush=True)
    subprocess.run([sys.executable, __file__, "again", str(path)], check=True)

    session = Session(path)
    print("active agent:", session.active_agent)
    print("billing's view:", [message.text for message in session.history("billing")])
    print(verify(path))
