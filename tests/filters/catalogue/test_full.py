"""Everything crosses."""

from handrail.filters import History, assistant, breaches, call, full, seal, system, tool_result, user


def test_full_keeps_everything_and_walks_nothing() -> None:
    history = History([system("s"), user("a"), assistant("b")])
    assert full()(history) is history


def test_a_stray_result_in_the_middle_does_not_cross() -> None:
    asked = call("stock", call_id="c1", item="A")
    history = History(
        [
            system("You are Triage."),
            user("Check stock of A and B."),
            assistant(asked),
            tool_result(asked, "4 left"),
            tool_result("c9", "7 left"),
            assistant("A has 4."),
            user("And B?"),
        ]
    )
    seed = seal(full())(history)
    assert list(seed) == [message for message in history if message.text != "7 left"]
    assert breaches(seed) == []
