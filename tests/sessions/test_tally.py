"""What is counted."""

import msgspec

from handrail.filters import assistant, call, tool_result, user
from handrail.sessions import (
    Footer,
    HandoffRecord,
    MessageRecord,
    ModelCallRecord,
    SessionRecord,
    Tally,
    ToolCallRecord,
    ToolResultRecord,
    TurnRecord,
    Unknown,
    Usage,
)


def test_records_are_counted_by_kind_and_by_what_they_say() -> None:
    tally = Tally.of(
        [
            MessageRecord(path="a", message=user("Hi")),
            ModelCallRecord(path="a", step=1, usage=Usage(7, 3, requests=1)),
            ModelCallRecord(path="a", step=2, usage=Usage(1, 1, requests=1)),
            ToolCallRecord(path="a", call_id="c1", name="look"),
            ToolResultRecord(path="a", message=tool_result("c1", "no", is_error=True)),
            HandoffRecord(path="a", source="a", target="b", target_path="b"),
            Unknown("decision", b"{}"),
            Footer(counts={}, head=""),
        ]
    )
    assert tally.counts == {
        "message": 1,
        "model_call": 2,
        "tool_call": 1,
        "tool_result": 1,
        "handoff": 1,
        "decision": 1,
    }
    assert tally.messages == 2
    assert tally.roles == {"user": 1, "tool": 1}
    assert tally.usage == Usage(8, 4, requests=2)
    assert tally.usage.total_tokens == 12
    assert (tally.tools, tally.handoffs, tally.errors) == ({"look": 1}, {("a", "b"): 1}, 1)


def test_of_an_import_each_tool_result_counts_as_a_call_of_its_tool() -> None:
    looks = assistant(call("look", call_id="c1"), call("look", call_id="c2"))
    results = [ToolResultRecord(path="a", message=tool_result(each, "…")) for each in ("c1", "c2")]
    said = [MessageRecord(path="a", message=looks), *results]
    assert Tally.of([SessionRecord(source="openai-chat"), *said]).tools == {"look": 2}
    assert Tally.of(said).tools == {}


def test_the_usage_that_a_log_told_beside_its_messages_is_counted() -> None:
    beside = b'{"response": {"usage": {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": null}}}'
    tally = Tally.of([SessionRecord(source="openai-chat", beside=msgspec.Raw(beside))])
    assert tally.usage == Usage(12, 3, requests=1)
    assert Tally.of([SessionRecord(source="openai-chat", beside=msgspec.Raw(b'{"response": 1}'))]).usage == Usage()


def test_what_the_end_of_a_run_left_unanswered_is_no_second_error() -> None:
    ended = tool_result("h1", "The run ended before this call did.", is_error=True, synthetic=True)
    failed = TurnRecord(path="a", run="r", event="end", status="failed")
    assert Tally.of([ToolResultRecord(path="a", message=ended), failed]).errors == 1
    refused = tool_result("h1", "Invalid arguments", is_error=True, name="transfer_to_b")
    assert Tally.of([ToolResultRecord(path="a", message=refused)]).errors == 1


def test_a_failed_turn_is_an_error_and_within_a_sub_agent_it_is_that_of_the_tool() -> None:
    failed = [TurnRecord(path=path, run="r", event="end", status="failed") for path in ("a", "a/b@c1")]
    assert Tally.of(failed).errors == 1


def test_usages_together_are_what_they_are_one_by_one() -> None:
    usages = [Usage(7, 3, 1, 2, 1), Usage(1, 1), Usage(requests=2)]
    assert Usage.total(usages) == usages[0] + usages[1] + usages[2] == Usage(8, 4, 1, 2, 3)
    assert (Usage.total(usages[:1]), Usage.total([])) == (usages[0], Usage())
