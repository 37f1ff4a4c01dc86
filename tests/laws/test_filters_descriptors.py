"""A filter and its descriptor are one thing."""

import json

from hypothesis import example, given

from handrail.filters import Filter, History, compose, from_descriptor, full, last_n, parse, registered, seal
from handrail.filters.messages import canonical_json
from laws.strategies import filters, histories, one_of_each


def written(filter: Filter, history: History) -> list[bytes]:
    return [canonical_json(message) for message in filter(history)]


@given(filters, histories)
def test_a_filter_is_rebuilt_from_its_descriptor_and_gives_the_same_bytes(filter: Filter, history: History) -> None:
    rebuilt = from_descriptor(json.dumps(filter.descriptor))
    assert rebuilt == filter
    assert repr(rebuilt) == repr(filter)
    assert rebuilt.descriptor == filter.descriptor
    assert written(rebuilt, history) == written(filter, history)


@given(filters)
def test_a_seal_is_rebuilt_from_its_descriptor(filter: Filter) -> None:
    assert from_descriptor(json.dumps(seal(filter).descriptor)) == seal(filter)


def test_every_registered_kind_is_tried() -> None:
    ours = {kind for kind, _ in registered() if "/" not in kind}
    assert {filter.kind for filter in (*one_of_each, compose(), seal(full()))} == ours


@given(filters)
@example(last_n(3, keep_user=True))
def test_what_a_filter_prints_is_an_expression_for_it(filter: Filter) -> None:
    if not any(step.kind == "custom" for step in filter.flat):
        assert parse(repr(filter)) == filter


@given(filters, histories)
def test_a_filter_changes_nothing_that_it_was_given(filter: Filter, history: History) -> None:
    before = [canonical_json(message) for message in history]
    filter(history)
    assert [canonical_json(message) for message in history] == before


@given(filters, histories)
def test_a_filter_gives_the_same_for_a_history_and_a_tuple(filter: Filter, history: History) -> None:
    assert written(filter, history) == [canonical_json(message) for message in filter(tuple(history))]


@given(filters, histories)
def test_a_report_accounts_for_every_message(filter: Filter, history: History) -> None:
    for step in filter.explain(history).steps:
        dropped = sum(change.what == "dropped" for change in step.changes)
        added = sum(change.what == "added" for change in step.changes)
        assert step.messages_in - dropped + added == step.messages_out
