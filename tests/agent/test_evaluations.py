"""What an evaluator finds of an answer is read strictly: what cannot be read has found nothing."""

import math
from typing import Any

import pytest

from handrail.agent import Evaluation
from handrail.agent.evaluations import Iteration, as_evaluation, best, passes, read_evaluation


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"score": 0.5, "pass": false, "critique": "too long"}', Evaluation(0.5, False, "too long")),
        ('```json\n{"score": 3}\n```', Evaluation(3.0)),
        ('{"pass": true, "why": "fine"}', Evaluation(None, True)),
    ],
)
def test_an_agents_evaluation_is_json_also_within_a_fence(text: str, found: Evaluation) -> None:
    assert read_evaluation(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fine",
        "{}",
        "[1]",
        "0.9",
        '{"critique": "no"}',
        '{"score": "high"}',
        '{"score": 1e999}',
        '{"score": NaN}',
        '{"pass": 1}',
        'Here: {"score": 1}',
    ],
)
def test_what_is_no_evaluation_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_evaluation(text)


@pytest.mark.parametrize(
    ("value", "found"),
    [(True, Evaluation(1.0, True)), (False, Evaluation(0.0, False)), (7, Evaluation(7.0)), (0.5, Evaluation(0.5))],
)
def test_a_function_may_say_yes_or_no_or_a_number(value: Any, found: Evaluation) -> None:
    assert as_evaluation(value) == found


@pytest.mark.parametrize("value", [None, "yes", math.nan, math.inf])
def test_what_a_function_may_not_say_is_refused(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        as_evaluation(value)


@pytest.mark.parametrize(
    ("found", "threshold", "will_do"),
    [
        (Evaluation(passed=True), None, True),
        (Evaluation(passed=False), None, False),
        (Evaluation(0.9), None, False),
        (Evaluation(0.9), 0.9, True),
        (Evaluation(0.8), 0.9, False),
        (Evaluation(0.9, False), 0.9, False),
        (Evaluation(0.8, True), 0.9, False),
        (Evaluation(None, True), 0.9, False),
        (Evaluation(), None, False),
    ],
)
def test_an_answer_passes_where_something_says_so_and_nothing_says_no(
    found: Evaluation, threshold: float | None, will_do: bool
) -> None:
    assert passes(found, threshold) is will_do


def test_the_first_of_the_best_is_the_best_and_an_answer_without_a_score_is_none() -> None:
    scores = [None, -2.0, -1.0, -1.0, None]
    iterations = [Iteration(number=number, text="", score=score) for number, score in enumerate(scores, 1)]
    found = best(iterations)
    assert found is iterations[2]
    assert best(iterations[:1]) is None
