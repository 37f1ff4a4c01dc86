"""A run heard as it goes: words, tools and handoffs come as typed events."""

import asyncio

from handrail.agent import Agent, ScriptedModel, handoff
from handrail.agent.events import HandoffEnd, RunEnd, Text
from handrail.filters import call

billing = Agent("billing", model=ScriptedModel("Both charges are on one invoice. I refund one of them."))
triage = Agent(
    "triage",
    model=ScriptedModel(["One moment.", call("transfer_to_billing", call_id="h1")]),
    handoffs=[handoff(billing)],
)


async def main() -> None:
    async with triage.stream("I was charged twice.") as run:
        async for event in run:
            match event:
                case Text():
                    print(event.text, end="", flush=True)
                case HandoffEnd():
                    print(f"\n-- {event.source} hands over to {event.target} --")
                case RunEnd():
                    print(f"\n{event}")
                case _:
                    pass
    print(run.result.agent)


asyncio.run(main())
