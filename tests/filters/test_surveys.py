"""What one pass over messages finds."""

from handrail.filters import History, ToolCall, assistant, system, tool_result, user

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
