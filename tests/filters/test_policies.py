"""Policies: what a file lets across, and what it does not."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.filters import (
    Filter,
    History,
    Message,
    Opaque,
    Policy,
    PolicyInvalid,
    PolicyViolation,
    Text,
    ToolCall,
    Violation,
    assistant,
    call,
    compose,
    custom,
    edge_history,
    full,
    last_n,
    seal,
    strip_tool_calls,
    tool_result,
    user,
)
from handrail.filters.messages import Messages
from handrail.filters.rules import Rule

ASKED = user("Where is my parcel?", id="m1")


def rule(**keys: Any) -> Policy:
    """A policy of one rule; JSON of texts, numbers and lists is TOML."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return Policy.from_toml("\n".join(["[[rule]]", *lines]))


def check(policy: Policy, *seed: Message, filter: Filter | None = None, **more: Any) -> list[Violation]:
    edge = {"source": "triage", "target": "billing", "kind": "handoff", **more}
    return policy.check(filter=seal(filter or full()), seed=seed, **edge)


def whys(policy: Policy, *seed: Message, **more: Any) -> list[str]:
    return [violation.why for violation in check(policy, *seed, **more)]


@pytest.mark.parametrize(
    ("keys", "holds"),
    [
        ({}, True),
        ({"source": "tri*", "target": ["b?lling", "x"]}, True),
        ({"source": "billing"}, False),
        ({"target": "triage"}, False),
        ({"kind": "handoff"}, True),
        ({"kind": ["subagent", "return"]}, False),
    ],
)
def test_a_rule_holds_for_the_crossings_that_it_speaks_of(keys: dict[str, Any], holds: bool) -> None:
    assert bool(check(rule(**keys, forbid_steps="full"), ASKED)) is holds


def test_an_answer_is_spoken_of_only_by_name() -> None:
    assert not check(rule(max_messages=1), ASKED, ASKED, kind="return")
    assert check(rule(max_messages=1, kind="return"), ASKED, ASKED, kind="return")


def test_a_violation_names_the_rule_its_line_the_message_the_part_and_why() -> None:
    policy = Policy.from_toml('# who\n\n[[rule]]\nname = "no secrets"\nmax_tier = "internal"')
    said = assistant(Text("Hello."), Text("Key 17.", sensitivity="secret"), id="m2")
    assert check(policy, ASKED, said) == [Violation("no secrets", 3, "m2", 1, "it is secret, above internal")]
    assert str(check(policy, said)[0]) == (
        "message m2, part 1: it is secret, above internal (rule 'no secrets', line 3)"
    )


@pytest.mark.parametrize(
    ("message", "over"),
    [
        (user("Hi", sensitivity="secret"), True),
        (user("Hi", sensitivity="confidental"), True),
        (user("card [REDACTED:secret:card]"), True),
        (user("Hi"), False),
        (tool_result("c1", [], sensitivity="secret"), True),
        (assistant(ToolCall("c1", "pay", "{}", sensitivity="secret")), True),
    ],
)
def test_the_tier_is_a_gate_for_labels_tokens_and_what_is_misspelled(message: Message, over: bool) -> None:
    assert bool(check(rule(max_tier="internal"), message)) is over


def test_what_has_no_label_counts_as_the_policy_says() -> None:
    assert whys(rule(max_tier="public"), ASKED) == ["it is internal, above public"]
    text = 'unlabelled = "public"\n[[rule]]\nmax_tier = "public"'
    assert not check(Policy.from_toml(text), ASKED)


@pytest.mark.parametrize("whole", [True, False])
def test_taking_a_label_off_takes_nothing_across(whole: bool) -> None:
    labelled = {"sensitivity": "secret"} if whole else {}
    part = Text("Key 17.", sensitivity=None if whole else "secret")
    before = History([ASKED, assistant(part, id="m2", **labelled)])
    bare = assistant("Key 17.", id="m2")
    edge = edge_history(before, kind="handoff")
    for source in (before, tuple(before), edge):
        found = whys(rule(max_tier="internal"), ASKED, bare, before=source)
        assert found == ["it was secret before a step took its label, above internal"]
    placeholder = assistant("[REDACTED:internal]", id="m2")
    assert not check(rule(max_tier="internal"), ASKED, placeholder, before=before)


def test_a_required_step_always_runs_and_a_forbidden_one_never_does() -> None:
    policy = rule(require_steps="strip-tool-calls", forbid_steps=["full"])
    assert not check(policy, ASKED, filter=compose(last_n(3), strip_tool_calls()))
    assert whys(policy, ASKED) == ["the filter has no step strip-tool-calls", "the filter has the step full"]
    assert not check(rule(require_steps=["strip-reasoning", "repair", "full@1"]), ASKED)
    assert check(rule(require_steps="acme/only"), ASKED)


def test_a_step_that_runs_only_now_and_then_is_forbidden_and_not_enough() -> None:
    step = {"kind": "strip-tool-calls", "version": 1}
    within = {"kind": "seal", "version": 1, "steps": [{"kind": "when", "version": 1, "steps": [step, step]}]}
    edge: dict[str, Any] = {"source": "a", "target": "b", "kind": "handoff", "seed": (ASKED,)}
    for keys in ({"require_steps": "strip-tool-calls"}, {"forbid_steps": "strip-tool-calls"}):
        assert rule(**keys).check(filter=within, **edge)


def test_a_filter_of_ones_own_is_required_by_its_name() -> None:
    def only_last(history: Messages) -> Messages:
        return history[-1:]

    policy = rule(require_steps="custom:desk/only-last")
    assert not check(policy, ASKED, filter=custom(only_last, name="desk/only-last"))
    assert check(policy, ASKED, filter=custom(only_last))


def test_what_a_hook_changed_has_not_passed_the_required_step() -> None:
    policy = rule(require_steps=["strip-tool-calls", "strip-reasoning"])
    found = whys(policy, ASKED, filter=strip_tool_calls(), edited=True)
    assert found == ["a hook changed what the step strip-tool-calls gave"]


def test_ceilings_count_messages_and_tokens() -> None:
    assert whys(rule(max_messages=1), ASKED, ASKED) == ["2 messages cross, more than 1"]
    assert not check(rule(max_messages=2), ASKED, ASKED)
    assert not check(rule(max_tokens=100, counter="estimate@1"), ASKED)
    assert "tokens cross (estimate@1), more than 1" in whys(rule(max_tokens=1, counter="estimate@1"), ASKED)[0]


def test_a_ceiling_that_cannot_be_counted_is_broken() -> None:
    policy = Policy(file="p", rules=(Rule(name="small", max_tokens=100, counter="nobody@1"),))
    assert whys(policy, ASKED)[0].startswith("it cannot be checked: ")


def test_neither_calls_nor_results_of_a_forbidden_tool_cross() -> None:
    refund = call("refund_card", call_id="c1")
    hosted = Opaque("openai", "web_search_call", "{}", family="tool")
    seed = (assistant("Now.", refund, id="m2"), tool_result("c1", "done", id="m3"), assistant(hosted, id="m4"))
    policy = rule(forbid_tools=["refund*", "web_search_call"])
    assert [(each.message, each.part) for each in check(policy, ASKED, *seed)] == [("m2", 1), ("m3", None), ("m4", 0)]
    assert not check(rule(forbid_tools=["refund"]), ASKED, *seed)


@pytest.mark.parametrize(
    "message",
    [
        user("It is K-17."),
        user("Said.", id="m9", agent="K-17"),
        assistant(ToolCall("c1", "look", r'{"deep": [{"of": "K\u002d17"}]}')),
        assistant(
            ToolCall("c1", "look", json.dumps({"wrapped": json.dumps({"again": "K-17"}).replace("-", r"\u002d")}))
        ),
        assistant(ToolCall("c1", "look", '{"a": "K-17", "a": "b"}')),
        assistant(ToolCall("c1", "look", '{"a": "K-17')),
        assistant(ToolCall("c1", "K-17")),
        assistant(Opaque("openai", "note", r'{"x": "K\u002D17"}', family="other")),
        user(Text("Hi", extra='{"title": "K-17"}')),
    ],
)
def test_a_pattern_is_found_however_it_is_spelled(message: Message) -> None:
    assert whys(rule(forbid_patterns=[r"K-\d+"]), message) == [r"it matches 'K-\\d+'"]


def test_a_pattern_that_does_not_come_to_an_end_counts_as_broken() -> None:
    found = whys(rule(forbid_patterns=["(?:a|aa)+$"]), user("a" * 100 + "b"))
    assert found == ["it cannot be checked: TimeoutError: regex timed out"]


def test_what_a_detector_finds_does_not_cross() -> None:
    policy = rule(forbid_findings=["email", "secrets"])
    assert whys(policy, user("Mail ann@example.org")) == ["the detector email finds something in it"]
    assert check(policy, assistant(call("login", call_id="c1", password="swordfish")))
    assert not check(policy, ASKED)


def test_targets_that_are_not_allowed_are_named() -> None:
    policy = rule(source="triage", allow_targets=["billing", "research*"])
    assert not check(policy, ASKED)
    assert whys(policy, ASKED, target="root") == ["root is no target that is allowed; possible: billing, research*"]
    assert check(rule(allow_targets=[]), ASKED)


def test_what_no_rule_speaks_of_is_allowed_or_refused() -> None:
    text = '[[rule]]\nsource = "x"\nmax_messages = 9\n'
    assert not check(Policy.from_toml(text), ASKED)
    refusing = Policy.from_toml(f'unmatched = "refuse"\n{text}')
    assert [violation.rule for violation in check(refusing, ASKED)] == ["unmatched"]
    with pytest.raises(PolicyViolation):
        refusing.enforce(source="a", target="b", kind="subagent", filter=seal(full()), seed=(ASKED,))
    assert not check(refusing, ASKED, source="x")


def test_enforcing_raises_with_every_violation_and_says_who_and_why() -> None:
    policy = rule(name="short", max_messages=1, forbid_patterns="parcel")
    edge: dict[str, Any] = {"source": "triage", "target": "billing", "kind": "handoff", "filter": seal(full())}
    policy.enforce(seed=(user("Hi"),), before=(), **edge)
    with pytest.raises(PolicyViolation, match=r"policy stops the handoff triage -> billing: 2 messages .* and 2 more"):
        policy.enforce(seed=(ASKED, user("That parcel.")), **edge)


def test_a_rule_that_cannot_be_checked_is_broken() -> None:
    class Unreadable(tuple[Message, ...]):
        def __iter__(self) -> Any:
            raise OSError("gone")

    seed = Unreadable((ASKED,))
    found = rule(max_tier="internal").check(source="a", target="b", kind="handoff", filter=seal(full()), seed=seed)
    assert [violation.why for violation in found] == ["it cannot be checked: OSError: gone"]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[[rule]]\n\nmax_teir = 'public'", 3, "a rule has no key 'max_teir'; did you mean 'max_tier'?"),
        ("# one\n[[rules]]\nmax_tier = 'public'", 2, "a policy has no key 'rules'; did you mean 'rule'?"),
        ("[rule]\nmax_tier = 'public'", 1, r"write \[\[rule\]\]"),
        ("[[rule]]\nname = 'x'\nmax_tier = 'sekret'", 3, "max_tier is not 'sekret'; did you mean 'secret'"),
        ("[[rule]]\nmax_messages = 1\n[[rule]]\n\nmax_messages = 0", 5, "at least 1, not 0"),
        ("[[rule]]\nmax_messages = true", 2, "a whole number"),
        ("[[rule]]\nmax_tokens = '9'", 2, "a whole number"),
        ("[[rule]]\nkind = 'handof'\nmax_messages = 1", 2, "did you mean 'handoff'"),
        ("[[rule]]\nforbid_steps = [\n  'last-n',\n  'last_m',\n]", 2, "'last_m'; did you mean"),
        ("[[rule]]\nforbid_steps = 'strip_tool_calls'", 2, "did you mean 'strip-tool-calls'"),
        ("[[rule]]\nforbid_patterns = ['a', '(']", 2, "no regular expression"),
        ("[[rule]]\nforbid_findings = 'emial'", 2, "did you mean 'email'"),
        ("[[rule]]\nsource = []\nmax_messages = 1", 2, "names no one"),
        ("[[rule]]\nsource = 3\nmax_messages = 1", 2, "a text or a list of texts, not 3"),
        ("\n\n[[rule]]\nname = 'empty'", 3, "says nothing of what may not cross; possible: allow_targets"),
        ("[[rule]]\nmax_messages = 1\ncounter = 'estimate@1'", 3, "counts for max_tokens"),
        (
            "[[rule]]\nmax_tokens = 9\ncounter = 'o200k-base'",
            3,
            "counter is not 'o200k-base'; did you mean 'o200k_base'",
        ),
        ("[[rule]]\nmax_tokens = 9\ncounter = 'nobody@7'", 3, "possible: cl100k_base, estimate@1, o200k_base"),
        ("[[rule]]\nforbid_steps='full'\nrequire_steps='full'", 2, "both required and forbidden"),
        ("[[rule]]\nmax_messages = 1\n[rule.when]\nx = 1", 3, "no key 'when'"),
        ("[[rule]]\nmax_messages = \n", 2, "invalid value"),
        ("[[rule]]\nx = 'open", 2, 'expected "\'"'),
        ("[[rule]]\na = 1\na = 2", 3, "overwrite"),
        ("unmatched = 'deny'\n[[rule]]\nmax_messages = 1", 1, "possible: allow, refuse"),
        ("", 1, "it has no rule"),
        ("x = " + "[" * 5000, 1, "nested too deep"),
        ("[[rule]]\nmax_messages = " + "9" * 5000, 2, "exceeds the limit"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_was_meant(text: str, line: int, said: str) -> None:
    with pytest.raises(PolicyInvalid, match=said) as caught:
        Policy.from_toml(text, "desk.toml")
    assert (caught.value.file, caught.value.line) == ("desk.toml", line)
    assert str(caught.value).startswith(f"desk.toml, line {line}: ")


def test_a_line_is_counted_past_strings_that_look_like_tables() -> None:
    text = '[[rule]]\nname = """\n[[rule]]\nmax_tier = 1 # "\n"""\nforbid_patterns = [ # [\n  "]",\n]\nmax_tire = "x"'
    with pytest.raises(PolicyInvalid, match="line 9"):
        Policy.from_toml(text)


def test_a_policy_is_loaded_from_a_file_whatever_its_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "desk.toml"
    path.write_bytes(b"\xef\xbb\xbf[[rule]]\r\nmax_messages = 3\r\n")
    policy = Policy.load(path)
    assert (policy.file, policy.rules[0].name, policy.rules[0].max_messages) == (str(path), "rule 1", 3)
    path.write_bytes(b"[[rule]]\nname = '\xff'")
    with pytest.raises(PolicyInvalid, match="line 2: it is not UTF-8"):
        Policy.load(path)
    with pytest.raises(FileNotFoundError):
        Policy.load(tmp_path / "none.toml")


def test_equal_texts_are_equal_policies() -> None:
    assert rule(max_messages=3) == rule(max_messages=3)
    assert rule(max_messages=3) != rule(max_messages=4)
