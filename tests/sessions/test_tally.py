"""What is counted."""

from handrail.filters import tool_result, user
from handrail.sessions import (
    Footer,
    HandoffRecord,
    MessageRecord,
    ModelCallRecord,
    Tally,
    ToolCallRecord,
    ToolResultRecord,
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
            Unknown("state", b"{}"),
            Footer(counts={}, head=""),
        ]
    )
    assert tally.counts == {"message": 1, "model_call": 2, "tool_call": 1, "tool_result": 1, "handoff": 1, "state": 1}
    assert tally.messages == 2
    assert tally.roles == {"user": 1, "tool": 1}
    assert tally.usage == Usage(8, 4, requests=2)
    assert tally.usage.total_tokens == 12
    assert (tally.tools, tally.handoffs, tally.errors) == ({"look": 1}, {("a", "b"): 1}, 1)
