"""Middleware: layers around model calls, tools and handoffs; one that looks on, and one that answers by itself."""

import time

from handrail.agent import Agent, ChatResponse, FunctionModel, Middleware
from handrail.agent.kernel import CallChat, ChatRequest
from handrail.filters import assistant


class Timed(Middleware):
    """Says how long each model call took."""

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        start = time.perf_counter()
        response = await call_next(request)
        took = time.perf_counter() - start
        print(f"  step {request.run.step} of {request.run.agent}: {took * 1000:.1f} ms")
        return response


class Remembered(Middleware):
    """Gives the answer that was given to the same words before, without asking the model."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        asked = request.messages[-1].text
        if asked in self.known:
            return ChatResponse(assistant(self.known[asked]))
        response = await call_next(request)
        self.known[asked] = response.message.text
        return response


calls: list[str] = []


def answer(request: ChatRequest) -> str:
    calls.append(request.messages[-1].text)
    return "Hello."


agent = Agent("greeter", model=FunctionModel(answer), middleware=[Timed(), Remembered()])
for _ in range(2):
    print(agent.run_sync("Hi").output)
print(f"The model was asked {len(calls)} time.")
print(agent.describe())
