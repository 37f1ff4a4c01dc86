"""A model is held to a schema where it can be, and is given a tool to answer with where it cannot."""

from typing import Any

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict

from handrail.agent import Agent, BuildError, NameClash, Output, ScriptedModel, tool
from handrail.agent.kernel import Middleware
from handrail.agent.models import Profile
from handrail.agent.outputs import prepare
from handrail.agent.strategies import Plan, plan

NATIVE = Profile(json_schema=True)


class Parcel(BaseModel):
    """Where a parcel is."""

    city: str
    days: int


class Lost(BaseModel):
    model_config = ConfigDict(title="It's lost!")
    why: str


def planned(kind: Any, profile: Profile = NATIVE, *, tools: bool = False) -> Plan:
    return plan(prepare(kind, "X"), profile, tools=tools, agent="X")


SIZE = len(msgspec.json.encode(Parcel.model_json_schema()))


@pytest.mark.parametrize(
    ("profile", "tools", "mode", "reason"),
    [
        (NATIVE, True, "native", "supported"),
        (Profile(), False, "tool", "provider_not_supported"),
        (Profile(json_schema=True, json_schema_with_tools=False), True, "tool", "tools_not_supported"),
        (Profile(json_schema=True, json_schema_with_tools=False), False, "native", "supported"),
        (Profile(json_schema=True, max_schema_bytes=SIZE), False, "native", "supported"),
        (Profile(json_schema=True, max_schema_bytes=SIZE - 1), False, "tool", "schema_too_large"),
        (Profile(json_schema=True, max_schema_properties=2), False, "native", "supported"),
        (Profile(json_schema=True, max_schema_properties=1), False, "tool", "schema_too_many_properties"),
    ],
)
def test_a_native_answer_is_asked_for_where_the_model_can_give_it(
    profile: Profile, tools: bool, mode: str, reason: str
) -> None:
    found = planned(Parcel, profile, tools=tools)
    assert (found.mode, found.reason) == (mode, reason)
    assert (found.schema is None) == bool(found.tools) == (mode == "tool")


@pytest.mark.parametrize("profile", [Profile(), Profile(json_schema=True, max_schema_properties=1)])
def test_a_native_answer_that_cannot_be_had_is_refused_when_the_agent_is_built(profile: Profile) -> None:
    with pytest.raises(BuildError, match=r"X asks for a native answer, which its model cannot give: \w+_\w+"):
        Agent("X", model=ScriptedModel(profile=profile), output_type=Output(Parcel, mode="native"))


def test_tools_that_a_layer_brings_count_as_tools() -> None:
    class Bringing(Middleware):
        tools = (tool(name="look")(lambda: "all"),)

    profile = Profile(json_schema=True, json_schema_with_tools=False)
    with pytest.raises(BuildError, match="tools_not_supported"):
        Agent(
            "X",
            model=ScriptedModel(profile=profile),
            output_type=Output(Parcel, mode="native"),
            middleware=[Bringing()],
        )


def test_a_tool_asked_for_is_a_tool() -> None:
    found = planned(Output(Parcel, mode="tool"))
    assert (found.mode, found.reason, list(found.tools)) == ("tool", "asked_for", ["final_answer"])


def test_each_variant_has_a_tool_with_a_fit_name_of_its_own() -> None:
    class Second(BaseModel):
        model_config = ConfigDict(title="Parcel")
        x: int

    found = planned(Output(Parcel | Second | Lost | int | None | str, mode="tool"))
    assert list(found.tools) == [
        "final_answer_parcel",
        "final_answer_parcel_2",
        "final_answer_it_s_lost",
        "final_answer_int",
        "final_answer_none",
    ]
    assert [spec.name for spec in found.specs] == list(found.tools)


def test_a_long_title_still_makes_names_of_at_most_64_characters() -> None:
    class First(BaseModel):
        model_config = ConfigDict(title="long " * 30)

    class Second(First):
        pass

    names = list(planned(Output(First | Second, mode="tool")).tools)
    assert [len(name) <= 64 for name in names] == [True, True]
    assert names[0] != names[1]


def test_a_name_and_a_description_are_what_the_model_reads() -> None:
    told = Output(Parcel, mode="tool", name="report", description="The latest news.")
    (spec,) = planned(told).specs
    assert spec.name == "report"
    assert spec.description.endswith("The latest news.")
    native = planned(Output(Parcel, name="report", description="The latest news.")).schema
    assert native is not None
    assert (native.name, native.schema["description"]) == ("report", "The latest news.")


def test_a_docstring_tells_what_the_tool_is_for() -> None:
    (spec,) = planned(Output(Parcel, mode="tool")).specs
    assert "Where a parcel is." in spec.description


@pytest.mark.parametrize("kind", [int, list[Parcel], Parcel | Lost, Parcel | None])
def test_a_native_schema_is_an_object_at_its_root(kind: Any) -> None:
    schema = planned(kind).schema
    assert schema is not None
    assert (schema.schema["type"], list(schema.schema["properties"])) == ("object", ["value"])


def test_an_output_tool_may_not_have_the_name_of_another_tool_or_handoff() -> None:
    @tool
    def final_answer() -> str:
        """Something else."""
        return ""

    with pytest.raises(NameClash, match="the output of X"):
        Agent("X", model=ScriptedModel(), tools=[final_answer], output_type=Parcel)
    other = Agent("B", model=ScriptedModel())
    with pytest.raises(NameClash, match="the output of X"):
        Agent("X", model=ScriptedModel(), handoffs=[other], output_type=Output(Parcel, name="transfer_to_b"))
    Agent("X", model=ScriptedModel(profile=NATIVE), tools=[final_answer], output_type=Parcel)


def test_the_plan_is_described() -> None:
    agent = Agent("X", model=ScriptedModel(), output_type=Parcel | Lost)
    assert (
        "  output Parcel | Lost (tool final_answer_parcel, final_answer_it_s_lost: provider_not_supported), "
        "2 retries, then raise"
    ) in agent.describe()
    native = Agent("X", model=ScriptedModel(profile=NATIVE), output_type=Output(int, retries=0, on_exhausted="return"))
    assert "  output int (native: supported), 0 retries, then return" in native.describe()
