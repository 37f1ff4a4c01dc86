"""Kinds of filters, and filters from descriptors."""

import json
from importlib.metadata import EntryPoint

import pytest

from handrail.filters import (
    Filter,
    FilterNotRunnable,
    InvalidDescriptor,
    Message,
    compose,
    constructor,
    filter_kind,
    from_descriptor,
    last_n,
    parse,
    registered,
    user,
)
from handrail.filters.messages import Messages


@filter_kind("acme/only-from", version=2)
class OnlyFrom(Filter, frozen=True):
    """What some agents said."""

    agents: tuple[str, ...]

    def __call__(self, history: Messages) -> Messages:
        return [message for message in history if message.agent in self.agents]


@filter_kind("acme/either")
class Either(Filter, frozen=True):
    """What one of two filters keeps."""

    first: Filter
    second: Filter
    swap: bool = False

    def __call__(self, history: Messages) -> Messages:
        return (self.second if self.swap else self.first)(history)


@constructor
def only_from(*agents: str) -> OnlyFrom:
    """What these agents said."""
    return OnlyFrom(agents)


def test_a_filter_of_another_package_is_a_filter_like_ours() -> None:
    filter = only_from("Billing")
    assert registered()["acme/only-from", 2] is OnlyFrom
    assert from_descriptor(json.dumps(filter.descriptor)) == filter
    assert parse("only_from('Billing') | last_n(1)") == compose(filter, last_n(1))
    said = [Message("assistant", (), agent="Billing"), user("Hi")]
    assert list(filter(said)) == said[:1]


def test_a_filter_of_another_package_prints_under_its_kind() -> None:
    assert repr(only_from("Billing")) == "acme/only-from(agents=('Billing',))"
    assert repr(last_n(3)) == "last_n(n=3, keep_user=False)"


def test_a_list_in_a_descriptor_becomes_what_the_field_holds() -> None:
    written = {"kind": "acme/only-from", "version": 2, "params": {"agents": ["A", "B"]}}
    assert from_descriptor(written) == OnlyFrom(("A", "B"))


def test_filters_in_fields_are_nested_steps() -> None:
    filter = Either(last_n(1), compose(last_n(2)), swap=True)
    assert [step["kind"] for step in filter.descriptor["steps"]] == ["last-n", "compose"]
    assert from_descriptor(filter.descriptor) == filter


def test_a_kind_is_registered_once() -> None:
    with pytest.raises(ValueError, match=r"'last-n' version 1 is already handrail\.filters\.catalogue\.last_n\.LastN"):
        filter_kind("last-n")(OnlyFrom)
    with pytest.raises(ValueError, match="'last_n' is already"):
        constructor(OnlyFrom, "last_n")


@pytest.mark.parametrize(
    "written",
    [
        '{"kind":"acme/redact-iban","version":1,"params":{"keep":4}}',
        '{"kind":"last-n","version":99,"params":{"n":3,"newer":[null,1.5]}}',
    ],
)
def test_an_unknown_kind_or_version_loads_prints_and_comes_back_but_does_not_run(written: str) -> None:
    filter = from_descriptor(written)
    assert filter.descriptor == json.loads(written)
    assert from_descriptor(filter.descriptor) == filter
    assert json.loads(written)["kind"] in repr(filter)
    with pytest.raises(FilterNotRunnable, match=r"is not registered; known: .*last-n@1") as raised:
        filter([user("Hi")])
    assert raised.value.descriptor == json.loads(written)


def test_an_unknown_step_stays_where_it_was() -> None:
    written = {"kind": "compose", "version": 1, "steps": [{"kind": "acme/x", "version": 7}, {"kind": "full"}]}
    assert [step["kind"] for step in from_descriptor(written).descriptor["steps"]] == [
        "acme/x",
        "full",
        "strip-reasoning",
    ]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("{", "not JSON"),
        ("[]", "not an object but list"),
        ('{"version":1}', "its kind is not a name but None"),
        ('{"kind":"last-n","version":"1"}', "its version is not a whole number"),
        ('{"kind":"last-n","params":[]}', "its params are an object"),
        ('{"kind":"last-n","params":{"m":3}}', "it has no field for m; possible: n, keep_user"),
        ('{"kind":"last-n","params":{"n":"3"}}', "n: Expected `int`"),
        ('{"kind":"last-n","params":{"n":0}}', "at least 1, not 0"),
        ('{"kind":"summary"}', "text"),
        ('{"kind":"full","steps":[{"kind":"full"}]}', "1 steps more than it has fields"),
        ('{"kind":"seal"}', "the step for 'filter' is missing"),
        ('{"kind":"compose","steps":[3]}', "not an object but int"),
    ],
)
def test_a_descriptor_that_does_not_fit_says_why(written: str, problem: str) -> None:
    with pytest.raises(InvalidDescriptor, match=problem) as raised:
        from_descriptor(written)
    assert problem in raised.value.problem


def test_an_expression_in_place_of_a_descriptor_is_told_who_reads_it() -> None:
    with pytest.raises(InvalidDescriptor, match=r"^the filter descriptor is not valid: .*; parse reads expressions"):
        from_descriptor("last_n(3)")


def test_a_descriptor_nested_without_end_is_refused() -> None:
    nested: dict[str, object] = {"kind": "full"}
    for _ in range(5_000):
        nested = {"kind": "seal", "steps": [nested]}
    with pytest.raises(InvalidDescriptor, match="nested too deep"):
        from_descriptor(nested)


def test_an_entry_point_names_a_module_that_registers_its_kinds() -> None:
    entry = EntryPoint("catalogue", "handrail.filters.catalogue.full", "handrail.filters")
    assert entry.load().Full.kind == "full"
