"""A conversation that goes on in a process of its own, and says what it found there: state, memory and view.

Called with the path of a session and what to say.
"""

import json
import operator
import sys
from typing import Annotated, Any, TypedDict

from handrail.agent import Agent, FunctionModel
from handrail.agent.kernel import ChatRequest, Middleware, State, channel


class Shared(TypedDict):
    """What these agents keep between them."""

    heard: Annotated[list[str], operator.add]
    scratch: Annotated[list[str], channel(operator.add, private=True)]


class Remembers(Middleware):
    """Keeps what was said in the shared state, and counts the turns in a memory of its own."""

    scope = "session"
    channels = Shared

    def init_state(self) -> dict[str, Any]:
        return {"turns": 0}

    async def before_agent(self, state: State, run: Any) -> Any:
        state.private["turns"] += 1
        said = state.messages[-1].text
        return {"heard": [said], "scratch": [said]}


def answer(request: ChatRequest) -> str:
    return f"answer {len(request.messages)}"


def goer() -> Agent:
    """An agent that remembers, in whichever process."""
    return Agent("A", model=FunctionModel(answer), middleware=[Remembers()])


def main(path: str, said: str) -> None:
    """One turn more."""
    result = goer().run_sync(said, session=path)
    from handrail.sessions import Session

    kept = Session(path).private_states
    found = {
        "state": result.state,
        "turns": [values["turns"] for values in kept.values()],
        "view": [message.text for message in result.messages],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
