"""One rule of a policy: which crossings it speaks of, and what may not be among what crosses there."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Literal, TypeAlias

import msgspec

from handrail.filters.base import Filter
from handrail.filters.edges import Edge
from handrail.filters.histories import History
from handrail.filters.messages import Message, Messages, Opaque, Part, ToolCall
from handrail.filters.sensitivity import Tier, highest, judge, label, rank, tier

Kind: TypeAlias = Literal["handoff", "subagent", "return"]
"""How something crosses: with the conversation, to an agent called as a tool, or as such an agent's answer."""

Found: TypeAlias = tuple[str, int | None, str]
"""A message's id (empty for the crossing as a whole), the place of its part from 0 (or None), and why."""

Said: TypeAlias = tuple[Message, int | None, str, str]
"""A text that crosses: its message, the place of its part, the text, and the key it stands under in JSON."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """What may not cross between some agents. Agents, targets and tools are named by globs; steps are kinds of filters
    (`last-n`, `last-n@1`, `custom:NAME`); a rule without `kind` speaks of handoffs and sub-agents, not of answers."""

    name: str
    line: int = 0
    source: tuple[str, ...] = ("*",)
    target: tuple[str, ...] = ("*",)
    kind: tuple[Kind, ...] = ("handoff", "subagent")
    max_tier: Tier | None = None
    require_steps: tuple[str, ...] = ()
    forbid_steps: tuple[str, ...] = ()
    max_tokens: int | None = None
    counter: str = "o200k_base"
    max_messages: int | None = None
    forbid_tools: tuple[str, ...] = ()
    forbid_patterns: tuple[str, ...] = ()
    forbid_findings: tuple[str, ...] = ()
    allow_targets: tuple[str, ...] | None = None

    def speaks_of(self, source: str, target: str, kind: str) -> bool:
        """Whether the rule holds for this crossing."""
        return kind in self.kind and _named(source, self.source) and _named(target, self.target)

    def broken_by(self, crossing: "Looked") -> Iterator[Found]:
        """What of the crossing may not be. The reasons quote nothing of what was said."""
        for breaches in _CHECKS:
            yield from breaches(self, crossing)


class Looked:
    """A crossing as the rules look at it; what several of them need is worked out once."""

    __slots__ = ("_steps", "_texts", "before", "edited", "filter", "seed", "target", "unlabelled")

    def __init__(
        self,
        *,
        target: str,
        filter: Filter | Mapping[str, Any],
        seed: Messages,
        before: "Messages | Edge",
        edited: bool,
        unlabelled: Tier,
    ) -> None:
        self.target = target
        self.seed = seed
        self.before = before
        self.edited = edited
        self.unlabelled = unlabelled
        self.filter = filter
        self._steps: tuple[frozenset[str], frozenset[str]] | None = None
        self._texts: list[Said] | None = None

    def steps(self) -> tuple[frozenset[str], frozenset[str]]:
        """The names of the steps that always run, and of all that may run."""
        if self._steps is None:
            self._steps = steps_of(self.filter.descriptor if isinstance(self.filter, Filter) else self.filter)
        return self._steps

    def texts(self) -> list[Said]:
        """Every text that crosses, however it is spelled."""
        if self._texts is None:
            self._texts = [said for message in self.seed for said in _said(message)]
        return self._texts

    def originals(self) -> Callable[[Message], Message | None]:
        """What gives the message that a message of the seed was before the filter; None where it was none."""
        before = self.before
        if isinstance(before, Edge):
            view = before.view
            return lambda message: None if (place := view.position(message.id)) is None else before.at(place)
        if isinstance(before, History):
            return lambda message: None if (place := before.position(message.id)) is None else before[place]
        known = {message.id: message for message in before if message.id}
        return lambda message: known.get(message.id)


def steps_of(descriptor: Mapping[str, Any]) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the steps that always run, and of all that may run, of a filter's descriptor."""
    sure: set[str] = set()
    every: set[str] = set()
    waiting: list[tuple[Mapping[str, Any], bool]] = [(descriptor, True)]
    while waiting:
        step, always = waiting.pop()
        kind, names = step.get("kind"), _names(step)
        every |= names
        sure |= names if always else set()
        through = always and kind in ("seal", "compose")
        waiting += [(inner, through) for inner in step.get("steps", ())]
        if kind == "seal" and always:
            sure |= _SEALED
            every |= _SEALED
    return frozenset(sure), frozenset(every)


_SEALED = frozenset({"repair", "repair@1", "strip-reasoning", "strip-reasoning@1"})


def _names(step: Mapping[str, Any]) -> set[str]:
    kind, name = step.get("kind"), step.get("params", {}).get("name")
    custom = {f"custom:{name}"} if kind == "custom" and name else set()
    return {str(kind), f"{kind}@{step.get('version', 1)}", *custom}


@cache
def _named(name: str, globs: tuple[str, ...]) -> bool:
    return any([fnmatchcase(name, glob) for glob in globs])


def _targets(rule: Rule, crossing: Looked) -> Iterator[Found]:
    if rule.allow_targets is not None and not _named(crossing.target, rule.allow_targets):
        possible = ", ".join(rule.allow_targets) or "none"
        yield "", None, f"{crossing.target} is no target that is allowed; possible: {possible}"


def _steps(rule: Rule, crossing: Looked) -> Iterator[Found]:
    if not rule.require_steps and not rule.forbid_steps:
        return
    sure, every = crossing.steps()
    for step in rule.require_steps:
        if step not in sure:
            yield "", None, f"the filter has no step {step}"
        elif crossing.edited and step not in _SEALED:
            yield "", None, f"a hook changed what the step {step} gave"
    for step in rule.forbid_steps:
        if step in every:
            yield "", None, f"the filter has the step {step}"


def _sizes(rule: Rule, crossing: Looked) -> Iterator[Found]:
    if rule.max_messages is not None and len(crossing.seed) > rule.max_messages:
        yield "", None, f"{len(crossing.seed)} messages cross, more than {rule.max_messages}"
    if rule.max_tokens is not None:
        from handrail.filters.tokens import count

        tokens = sum([count(message, rule.counter) for message in crossing.seed])
        if tokens > rule.max_tokens:
            yield "", None, f"{tokens} tokens cross ({rule.counter}), more than {rule.max_tokens}"


def _tiers(rule: Rule, crossing: Looked) -> Iterator[Found]:
    if rule.max_tier is None:
        return
    limit, unlabelled = rank(rule.max_tier), crossing.unlabelled
    original = crossing.originals()
    for message in crossing.seed:
        was = original(message)
        if not message.content and message.sensitivity is not None and rank(message.sensitivity) > limit:
            yield message.id, None, f"it is {tier(message.sensitivity)}, above {rule.max_tier}"
        for place, part in enumerate(message.content):
            held = judge(message, part, unlabelled)
            if rank(held) > limit:
                yield message.id, place, f"it is {held}, above {rule.max_tier}"
            elif was is not None and was is not message and rank(lost := _lost_label(was, part)) > limit:
                yield message.id, place, f"it was {lost} before a step took its label, above {rule.max_tier}"


def _lost_label(was: Message, part: Part) -> Tier:
    """The label that the same content had before, where a filter put another in its place."""
    bare = _bare(part)
    return highest(*[label(was, old) for old in was.content if _bare(old) == bare]) or "public"


def _bare(part: Part) -> Part:
    return part if part.sensitivity is None else msgspec.structs.replace(part, sensitivity=None)


def _tools(rule: Rule, crossing: Looked) -> Iterator[Found]:
    if not rule.forbid_tools:
        return
    called: dict[str, str] = {}
    for message in crossing.seed:
        if message.role == "tool":
            name = message.name or called.get(message.call_id or "", "")
            if _named(name, rule.forbid_tools):
                yield message.id, None, f"it is a result of the tool {name}"
        for place, part in enumerate(message.content):
            if isinstance(part, ToolCall):
                called[part.id] = part.name
            used = part.name if isinstance(part, ToolCall) else _hosted(part)
            if used is not None and _named(used, rule.forbid_tools):
                yield message.id, place, f"it is a call of the tool {used}"


def _hosted(part: Part) -> str | None:
    return part.type if isinstance(part, Opaque) and part.family == "tool" else None


def _patterns(rule: Rule, crossing: Looked) -> Iterator[Found]:
    for written in rule.forbid_patterns:
        from handrail.filters.redaction import SECONDS, compiled

        pattern = compiled(written)

        def finds(text: str, _: str, search: Any = pattern.search) -> object:
            return search(text, timeout=SECONDS + len(text) / 1e6)

        yield from _where(crossing, finds, f"it matches {written!r}")


def _findings(rule: Rule, crossing: Looked) -> Iterator[Found]:
    for name in rule.forbid_findings:
        from handrail.filters.detectors import find, find_by_key

        def finds(text: str, key: str, names: tuple[str, ...] = (name,)) -> object:
            return find(text, names) or find_by_key(key, text, names)

        yield from _where(crossing, finds, f"the detector {name} finds something in it")


def _where(crossing: Looked, finds: Callable[[str, str], Any], why: str) -> Iterator[Found]:
    told: set[tuple[int, int | None]] = set()
    for message, place, text, key in crossing.texts():
        if (id(message), place) not in told and finds(text, key):
            told.add((id(message), place))
            yield message.id, place, why


def _said(message: Message) -> Iterator[Said]:
    from handrail.filters.strings import strings

    for name in (message.agent, message.name, message.call_id):
        if name:
            yield message, None, name, ""
    for place, part in enumerate(message.content):
        if isinstance(part, ToolCall | Opaque):
            # As one text as well: a pattern may reach from a key to its value.
            yield message, place, part.arguments if isinstance(part, ToolCall) else part.data, ""
        for text, key in strings(part):
            yield message, place, text, key


_CHECKS: Sequence[Callable[[Rule, Looked], Iterator[Found]]] = (
    _targets,
    _steps,
    _sizes,
    _tiers,
    _tools,
    _patterns,
    _findings,
)
