"""An agent with a tool: the model asks for it, Handrail runs it, the model answers with what it said."""

from handrail.agent import Agent, FunctionModel, tool
from handrail.agent.kernel import ChatRequest
from handrail.filters import ToolCall, call


@tool(side_effects="read_only")
def opening_hours(day: str) -> str:
    """When the shop is open.

    Args:
        day: A day of the week.
    """
    return {"saturday": "10 to 14", "sunday": "closed"}.get(day.lower(), "9 to 18")


def answer(request: ChatRequest) -> str | ToolCall:
    # Rules in the place of a model, so that this runs offline; model="openai:NAME" is a real one.
    last = request.messages[-1]
    if last.role == "tool":
        return f"We are open {last.text}."
    return call("opening_hours", call_id="c1", day=last.text.split()[-1].rstrip("?"))


clerk = Agent("clerk", model=FunctionModel(answer), instructions="You tell opening hours.", tools=[opening_hours])

result = clerk.run_sync("When are you open on Saturday?")
print(result.output)
for message in result.new_messages:
    print(f"  {message.role:9} {message.text or message.tool_calls[0].arguments}")
