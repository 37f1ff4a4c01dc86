"""Finding the agent that `module:agent` names, and the model that stands in for theirs."""

from types import ModuleType

from handrail.agent import Agent, Model
from handrail.agent.models import find_model
from handrail.agent.teams import TeamTool
from handrail.cli.errors import ModuleNotLoaded, NoSuchAgent, UnfitInput
from handrail.cli.modules import load_module


def find_agent(place: str) -> Agent:
    """The agent at `module:agent`; modules of the current folder are found too.

    Raises `NoSuchAgent` for a place that leads to none, naming the agents that the module does hold.
    """
    found, module = _found(place)
    if not isinstance(found, Agent):
        raise NoSuchAgent(place, f"this is no agent but {type(found).__name__}", _agents(module))
    found.check()
    return found


def find_agent_or_team(place: str) -> Agent | TeamTool:
    """The same, where what `fan_out` or `evaluate_and_retry` made will do as well."""
    found, _ = _found(place)
    return found if isinstance(found, TeamTool) else find_agent(place)


def _found(place: str) -> tuple[object, ModuleType]:
    name, colon, attribute = place.partition(":")
    if not name or not colon or not attribute:
        raise NoSuchAgent(place, "write module:agent, as in shop.desk:triage")
    try:
        module = load_module(name)
    except ModuleNotLoaded as error:
        raise NoSuchAgent(place, error.problem) from error
    found: object = module
    for step in attribute.split("."):
        if not hasattr(found, step):
            raise NoSuchAgent(place, f"there is no {attribute!r} in the module {name}", _agents(module))
        found = getattr(found, step)
    return found, module


def model_called(name: str, base_url: str) -> Model | None:
    """The model called `service:name`, at an address of its own where one is given; None where none is asked for.

    Raises `UnfitInput` or `BuildError`.
    """
    if base_url and not name.startswith("openai:"):
        raise UnfitInput("--base-url says where a model is; pass --model openai:NAME as well")
    if not base_url:
        return find_model(name) if name else None
    from handrail.agent.providers.openai import OpenAIChat

    return OpenAIChat(name.removeprefix("openai:"), base_url=base_url)


def _agents(module: ModuleType) -> list[str]:
    return sorted(name for name, value in vars(module).items() if isinstance(value, Agent))
