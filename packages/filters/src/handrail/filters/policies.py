"""Policies: what may cross between which agents, said in a file, held at run time and checked afterwards."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from handrail.filters.base import Filter
from handrail.filters.edges import Edge
from handrail.filters.errors import PolicyViolation
from handrail.filters.messages import Messages
from handrail.filters.sensitivity import Tier

if TYPE_CHECKING:
    from handrail.filters.rules import Found, Looked, Rule

_EDGES = 4096


class Violation(msgspec.Struct, frozen=True):
    """What a rule does not let across: `message` is its id, `part` the place of its part from 0; the id is empty and
    the part None where the crossing as a whole is meant. `line` is that of the rule in its file. No text is quoted."""

    rule: str
    line: int
    message: str
    part: int | None
    why: str

    def __str__(self) -> str:
        part = "" if self.part is None else f", part {self.part}"
        where = f"message {self.message}{part}: " if self.message or self.part is not None else ""
        return f"{where}{self.why} (rule {self.rule!r}, line {self.line})"


class Policy(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Rules; every rule that speaks of a crossing has to hold. `unlabelled` is the tier of what has no label;
    `unmatched` says whether handoffs and sub-agents that no rule speaks of are allowed."""

    file: str
    rules: tuple[Rule, ...] = ()
    unlabelled: Tier = "internal"
    unmatched: Literal["allow", "refuse"] = "allow"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """The policy in a TOML file. Raises `PolicyInvalid` with the line of a mistake, or `OSError`."""
        from handrail.filters.policy_files import read_policy

        with open(path, "rb") as file:
            return cls(file=os.fspath(path), **read_policy(file.read(), os.fspath(path)))

    @classmethod
    def from_toml(cls, text: str, name: str = "policy") -> Policy:
        """The policy in a TOML text. Raises `PolicyInvalid` with the line of a mistake.

        >>> policy = Policy.from_toml('[[rule]]\\nname = "no secrets"\\nmax_tier = "internal"')
        >>> policy.rules[0].max_tier
        'internal'
        """
        from handrail.filters.policy_files import read_policy

        return cls(file=name, **read_policy(text.encode("utf-8", "surrogatepass"), name))

    def rules_for(self, source: str, target: str, kind: str) -> tuple[Rule, ...]:
        """The rules that speak of this crossing."""
        known: dict[tuple[str, str, str], tuple[Rule, ...]] = self.__dict__.setdefault("_known", {})
        edge = source, target, kind
        rules = known.get(edge)
        if rules is None:
            rules = tuple([rule for rule in self.rules if rule.speaks_of(*edge)])
            if len(known) >= _EDGES:
                known.clear()
            known[edge] = rules
        return rules

    def check(
        self,
        *,
        source: str,
        target: str,
        kind: str,
        filter: Filter | Mapping[str, Any],
        seed: Messages,
        before: Messages | Edge = (),
        edited: bool = False,
    ) -> list[Violation]:
        """What of a crossing the policy does not let across; nothing where all of it may.

        `kind` is `handoff`, `subagent` or `return`; `filter` is the filter or its descriptor; `seed` is what crosses,
        `before` what the filter was given; `edited` says that a hook changed what the filter gave. A rule that cannot
        be checked counts as broken.
        """
        from handrail.filters.rules import Looked

        rules = self.rules_for(source, target, kind)
        if not rules:
            return self._unmatched(kind)
        crossing = Looked(
            target=target, filter=filter, seed=seed, before=before, edited=edited, unlabelled=self.unlabelled
        )
        return [Violation(rule.name, rule.line, *found) for rule in rules for found in _broken(rule, crossing)]

    def _unmatched(self, kind: str) -> list[Violation]:
        if self.unmatched == "allow" or kind == "return":
            return []
        return [Violation("unmatched", 1, "", None, "no rule speaks of it, and what no rule speaks of is refused")]

    def enforce(
        self,
        *,
        source: str,
        target: str,
        kind: str,
        filter: Filter | Mapping[str, Any],
        seed: Messages,
        before: Messages | Edge = (),
        edited: bool = False,
    ) -> None:
        """Raises `PolicyViolation` where `check` finds anything; to be called before the next agent starts."""
        if self.unmatched == "allow" and not self.rules_for(source, target, kind):
            return
        violations = self.check(
            source=source, target=target, kind=kind, filter=filter, seed=seed, before=before, edited=edited
        )
        if violations:
            raise PolicyViolation(self.file, source, target, kind, violations)


def _broken(rule: Rule, crossing: Looked) -> Sequence[Found]:
    found: list[Found] = []
    try:
        found.extend(rule.broken_by(crossing))
    except Exception as error:  # noqa: BLE001  # a gate that cannot judge is closed
        found.append(("", None, f"it cannot be checked: {type(error).__name__}: {error}"))
    return found
