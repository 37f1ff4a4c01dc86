"""Histories that a boundary must stand: what importers, providers, crashes and careless code have come up with."""

from handrail.filters.messages import (
    File,
    Image,
    Message,
    Messages,
    Opaque,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    assistant,
    call,
    system,
    tool_result,
    user,
)


def awkward_histories() -> list[tuple[str, Messages]]:
    """Each history with its title; the same every time."""
    return [*_talk(), *_calls(), *_thoughts(), *_contents()]


def _ask(text: str = "I was charged twice.", id: str = "m1", **fields: object) -> Message:
    return user(text, id=id, **fields)


def _talk() -> list[tuple[str, Messages]]:
    many = [
        _ask(f"Question {turn}?", f"q{turn}")
        if speaker
        else assistant(f"Answer {turn}.", id=f"a{turn}", agent="triage")
        for turn in range(60)
        for speaker in (True, False)
    ]
    return [
        ("nothing at all", ()),
        ("one question", (_ask(),)),
        ("a long talk", tuple(many)),
        ("nobody asked", (system("Be brief.", id="m1"), assistant("Hello.", id="m2"))),
        ("only system messages", (system("Be brief.", id="m1"), system("Be kind.", id="m2"))),
        ("a system message in the middle", (_ask(), system("Be brief.", id="m2"), assistant("Yes.", id="m3"))),
        ("messages without ids", (user("Hello."), assistant("Hello."), user("Hello."))),
        ("pinned messages", (_ask(pinned=True), *many, assistant("Noted.", id="p1", pinned=True))),
        ("several agents", (_ask(), assistant("To billing.", id="m2", agent="triage"), _by_billing())),
    ]


def _by_billing() -> Message:
    return assistant("It is refunded.", id="m3", agent="billing", sensitivity="internal")


def _calls() -> list[tuple[str, Messages]]:
    first, second = call("find", call_id="c1", name="Ada"), call("find", call_id="c2", name="Bob")
    both = assistant(first, second, id="m2")
    one = assistant("Let me look.", first, id="m2")
    found = tool_result(first, "12 Byron Road", id="m3")
    other = tool_result(second, "nobody", id="m4", is_error=True)
    transfer = ToolCall("h1", "transfer_to_billing", "{}", transfer=True)
    return [
        ("a call and its result", (_ask(), one, found, assistant("Found.", id="m4"))),
        ("two calls at once", (_ask(), both, found, other)),
        ("results in another order", (_ask(), both, other, found)),
        ("a call without a result", (_ask(), one)),
        ("one of two calls without a result", (_ask(), both, found, _ask("And?", "m5"))),
        ("a result without a call", (_ask(), found)),
        ("a result before its call", (found, _ask(), one)),
        ("a result that comes late", (_ask(), one, _ask("Well?", "m5"), found)),
        ("two results of one call", (_ask(), one, found, found.replace(id="m9"))),
        ("an id that comes back", (_ask(), one, found, one.replace(id="m5"), found.replace(id="m6"))),
        ("one id for two calls", (_ask(), assistant(first, first, id="m2"), found)),
        ("a call in a user message", (user([Text("Hm."), first], id="m1"), found)),
        ("arguments that are no JSON", (_ask(), assistant(ToolCall("c1", "find", '{"name": '), id="m2"), found)),
        ("a transfer call", (_ask(), assistant(transfer, id="m2"), tool_result(transfer, "It goes.", id="m3"))),
        ("a synthetic result", (_ask(), one, found.replace(synthetic=True, is_error=True))),
        ("a result that says nothing", (_ask(), one, found.replace(content=()))),
    ]


def _thoughts() -> list[tuple[str, Messages]]:
    thought = Reasoning("He looks risky.", "openai", '{"encrypted_content":"gAAAA"}')
    signed = ToolCall("c1", "find", "{}", extra='{"thought_signature":"EpwB"}')
    return [
        ("reasoning", (_ask(), assistant(thought, "Hello.", id="m2"))),
        ("reasoning and nothing else", (_ask(), assistant(thought, id="m2"))),
        ("reasoning on other roles", (user([thought, Text("Hm.")], id="m1"), system([thought], id="m2"))),
        ("think tags", (_ask(), assistant("<think>Risky.</think>Hello.", id="m2"))),
        ("think tags within one another", (_ask(), assistant("<thi<think>a</think>nk>b</think>c", id="m2"))),
        ("a think tag that stays open", (_ask(), assistant("Hello. <think>Risky.", id="m2"))),
        ("a signature on a call", (_ask(), assistant(signed, id="m2"), tool_result(signed, "12", id="m3"))),
        ("an unknown part of a provider", (_ask(), assistant(Opaque("x", "mystery", "{}"), "Hello.", id="m2"))),
    ]


def _contents() -> list[tuple[str, Messages]]:
    searched = Opaque("openai", "web_search_call", '{"status":"done"}', family="tool")
    picture = Image(url="https://shop.example/a.png", media_type="image/png")
    card = tool_result("c1", "4929 8801 2210 7781", id="m3", name="find_card", sensitivity="secret")
    asked = assistant(call("find_card", call_id="c1"), id="m2")
    return [
        ("empty messages", (_ask(), assistant(id="m2"), user("", id="m3"), assistant("", id="m4"))),
        ("an empty question and no other", (user("", id="m1"),)),
        ("pictures and files", (user([picture, File(data="aGk=", name="a.txt")], id="m1"),)),
        ("a hosted tool", (_ask(), assistant(searched, "Found.", id="m2"))),
        ("a refusal", (_ask(), assistant(Refusal("No."), id="m2"))),
        ("secret results", (_ask(), asked, card, assistant("Found.", id="m4"))),
        ("labels that are none", (_ask(sensitivity="confidental"), asked, card.replace(sensitivity="?"))),
        ("redaction tokens", (_ask("My card is [REDACTED:secret:card]."), assistant("[REDACTED]", id="m2"))),
        ("half a surrogate pair", (_ask("a\ud83dz"), assistant("\udc00", id="m2"))),
        ("control characters", (_ask("a\x00b\r\n\u2028c\u202e"), assistant("\x1b[2J", id="m2"))),
        ("a very long id", (_ask(id="m" * 10_000), assistant("Hello.", id="m2"))),
    ]
