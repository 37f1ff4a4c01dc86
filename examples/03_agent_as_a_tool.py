"""A sub-agent: another agent as a tool, which answers and gives control back."""

from handrail.agent import Agent, ScriptedModel, to_tool
from handrail.filters import call, none

research = Agent("research", model=ScriptedModel("Returns are free for 30 days."), description="It knows the rules.")

# It sees its question and nothing of the conversation.
ask_research = to_tool(research, filter=none())

support = Agent(
    "support",
    model=ScriptedModel(
        call("research", call_id="c1", input="How long may goods be returned?"),
        lambda request: f"I looked it up. {request.messages[-1].text}",
    ),
    tools=[ask_research],
)

result = support.run_sync("My name is Ada. Can I return my chair?")
print(result.output)
print("research was asked:", [message.text for message in result.handoffs[0].seed])
