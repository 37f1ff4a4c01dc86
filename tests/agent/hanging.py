"""A program whose run does not end by itself: a child's tool waits for ever, or the disk is full.

Called with the path of a session and what to do: `wait` says `begun` and waits to be killed, `fill` may write no more
than some bytes to a file and says what error that makes of the run.
"""

import asyncio
import sys
from typing import Any

from handrail.agent import Agent, FunctionModel, ScriptedModel
from handrail.filters import call
from handrail.sessions import Session

FULL = 6000


async def ok() -> str:
    return "ok" * 50


async def wait() -> None:
    print("begun", flush=True)
    await asyncio.Event().wait()


def waiting(model: Any) -> Agent:
    """A boss whose child waits, beside a tool that ends."""
    child = Agent(
        "Child", model=ScriptedModel([call("wait", call_id="w1"), call("ok", call_id="w2")]), tools=[wait, ok]
    )
    return Agent("Boss", model=model, tools=[ok, child.to_tool()])


def main(path: str, what: str) -> None:
    """Does what it is told, in a session file."""
    if what == "wait":
        model = ScriptedModel([call("ok", call_id="c1"), call("child", call_id="t1", input="x")])
        waiting(model).run_sync("go", session=path)
        return
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL, FULL))
    agent = Agent("X", model=FunctionModel(lambda request: [call("ok"), call("ok")]), tools=[ok])
    try:
        with Session(path) as session:
            agent.run_sync("go", session=session)
    except Exception as error:  # noqa: BLE001  # it says which one it was
        print(type(error).__name__, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
