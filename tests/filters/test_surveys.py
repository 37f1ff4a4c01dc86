"""What one pass over messages finds."""

from random import Random

import pytest

from handrail.filters import History, Message, ToolCall, assistant, system, tool_result, user

TRANSFER = ToolCall("h1", "transfer_to_billing", transfer=True)


def test_a_survey_knows_where_what_matters_stands() -> None:
    history = History([system("s"), user("a", pinned=True), assistant(TRANSFER), tool_result(TRANSFER, "ok")])
    survey = history.survey()
    assert (survey.systems, list(survey.users), survey.pinned, survey.transfers) == ([0], [1], [1], [2, 3])
    assert (survey.lawful, survey.unnamed, survey.seen) == (True, True, 4)


def test_an_id_that_comes_back_in_an_ordinary_call_is_no_transfer() -> None:
    ordinary = ToolCall("h1", "track")
    history = History(
        [assistant(TRANSFER), tool_result(TRANSFER, "ok"), assistant(ordinary), tool_result(ordinary, "")]
    )
    assert history.survey().transfers == [0, 1]


def test_the_first_breach_is_remembered_by_its_place() -> None:
    history = History([user("a"), assistant(), tool_result("c9", "x")])
    assert history.survey().broken_at == 1
    assert history.prefix(1).survey().lawful
    assert not history.prefix(2).survey().lawful


def _said(random: Random, number: int) -> list[Message]:
    calls = [
        ToolCall(f"c{number}.{place}" if random.random() < 0.8 else "again", "add", transfer=random.random() < 0.4)
        for place in range(random.choice((0, 0, 1, 1, 2, 3)))
    ]
    words = ["done"] if not calls or random.random() < 0.5 else []
    told = [assistant(words, calls, id=f"a{number}", pinned=random.random() < 0.2)]
    told += [tool_result(each, "ok", id=f"r{number}.{place}") for place, each in enumerate(calls)]
    before = random.choice((user, system))("go on", id=f"m{number}" if random.random() < 0.99 else "")
    return [before, *told] if random.random() < 0.97 else [before, *told[:-1]]


@pytest.mark.parametrize("seed", range(40))
def test_what_is_known_without_the_transfers_is_what_a_walk_would_find(seed: int) -> None:
    random, history = Random(seed), History()
    for number in range(20):
        rounds = random.choice((1, 1, 8))
        said = [message for part in range(rounds) for message in _said(random, number * 10 + part)]
        cut = random.randrange(len(said) + 1)
        for some in (said[:cut], said[cut:]):
            history = history.extend(some)
            plain = history.without_transfers()[0]
            assert _known(plain) == _known(History(list(plain)))
        if random.random() < 0.2:
            history = history.prefix(len(history) - 1)


def _known(history: History) -> dict[str, object]:
    survey = history.survey()
    return {name: getattr(survey, name) for name in survey.__slots__}
