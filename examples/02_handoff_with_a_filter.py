"""A handoff: control passes to another agent, and a filter decides what goes with it."""

from handrail.agent import Agent, ScriptedModel, handoff
from handrail.filters import assistant, call, compose, last_n, strip_tool_calls, tool_result, user

billing = Agent(
    "billing",
    model=ScriptedModel("I see the two charges, and refund one."),
    instructions="You answer for invoices.",
)
triage = Agent(
    "triage",
    model=ScriptedModel(call("transfer_to_billing", call_id="h1", reason="charged twice")),
    instructions="You bring people to whoever can help.",
    handoffs=[handoff(billing, filter=compose(last_n(4), strip_tool_calls()))],
)

lookup = call("find_customer", call_id="c1", name="Ada")
result = triage.run_sync(
    [
        user("I am Ada."),
        assistant(lookup),
        tool_result(lookup, "Ada, 12 Byron Road"),
        assistant("Hello Ada."),
        user("I was charged twice."),
    ]
)

print(f"{result.agent}: {result.output}\n")
crossing = result.handoffs[0]
print(crossing)
print("crossed:", [message.text for message in crossing.seed])
print("stayed: ", [message.text or message.tool_calls[0].name for message in crossing.stayed])
print(crossing.report)
