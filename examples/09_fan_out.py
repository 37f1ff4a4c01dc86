"""Several agents at once: three are asked the same, and an agent that sees their answers picks one."""

from handrail.agent import Agent, ModelUnavailable, ScriptedModel, evaluate_and_retry, fan_out
from handrail.filters import call

maps = Agent("maps", model=ScriptedModel("Left, then over the bridge."))
signs = Agent("signs", model=ScriptedModel(ModelUnavailable("no connection")))
neighbour = Agent("neighbour", model=ScriptedModel("Over the old bridge, it is two minutes."))
judge = Agent("judge", model=ScriptedModel('{"pick": 3}'), instructions="Pick the answer that a stranger can follow.")

# Those that have not answered after ten seconds are cancelled; one that fails does not trouble the others.
ask_around = fan_out([maps, signs, neighbour], merge="judge", judge=judge, timeout=10)

guide = Agent(
    "guide",
    model=ScriptedModel(
        call("fan_out", call_id="c1", input="Which way to the harbour?"),
        lambda request: f"I asked around. {request.messages[-1].text}",
    ),
    tools=[ask_around],
)
result = guide.run_sync("How do I get to the harbour?")
print(result.output)
print("asked:", ", ".join([crossing.target for crossing in result.handoffs]))

# One that answers until the answer will do, without an agent that calls it.
writer = Agent("writer", model=ScriptedModel("The harbour lies over the bridge.", "Cross the bridge."))
again = evaluate_and_retry(writer, lambda text, iteration: len(text.split()) <= 4, max_iterations=3)
result = again.run_sync("Tell the way in four words at most.")
print(result.output, f"({result.report.reason}, {len(result.report.iterations)} answers)")
