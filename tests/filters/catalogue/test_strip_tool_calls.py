"""A conversation without its tools."""

from handrail.filters import (
    Image,
    Opaque,
    Reasoning,
    Text,
    assistant,
    call,
    strip_tool_calls,
    system,
    tool_result,
    user,
)
from handrail.filters.messages import canonical_json

SEARCH, HOLD = call("search", call_id="c1", city="Lyon"), call("hold", call_id="c2", place="Le Nord")


def test_every_call_result_and_hosted_part_goes_and_spoken_text_stays() -> None:
    history = (
        system("You book tables."),
        user("Table for two."),
        assistant(SEARCH),
        tool_result(SEARCH, "3 places"),
        assistant("I found two good ones.", HOLD),
        tool_result(HOLD, [Text("held"), Image(data="iVBORw0=", media_type="image/png")]),
        assistant(Opaque("openai", "web_search_call", '{"id":"w1"}', "tool"), "Held until eight."),
        user("Send the invoice."),
    )
    left = strip_tool_calls()(history)
    assert list(left) == [
        system("You book tables."),
        user("Table for two."),
        assistant("I found two good ones."),
        assistant("Held until eight."),
        user("Send the invoice."),
    ]
    written = b"".join(map(canonical_json, left))
    assert not [word for word in (b"c1", b"c2", b"w1", b"web_search") if word in written]


def test_a_message_that_held_only_thoughts_beside_its_calls_goes() -> None:
    assert strip_tool_calls()((assistant(Reasoning("hm"), SEARCH),)) == ()


def test_other_parts_of_a_provider_stay() -> None:
    said = assistant(Opaque("openai", "annotation", "{}", "other"))
    assert strip_tool_calls()((said,)) == (said,)


def test_calls_go_from_any_role_and_pins_do_not_help() -> None:
    assert strip_tool_calls()((user("a").replace(content=(Text("a"), HOLD)),)) == (user("a"),)
    assert strip_tool_calls()((assistant(HOLD, pinned=True), tool_result(HOLD, "held", pinned=True))) == ()
