"""Policies as they are written: TOML, read with the line of every mistake."""

import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn, get_args

from handrail.filters.errors import InvalidFilter, PolicyInvalid
from handrail.filters.registry import registered
from handrail.filters.rules import Kind, Rule
from handrail.filters.sensitivity import TIERS
from handrail.filters.toml_lines import Lines, Path, mistake


def read_policy(data: bytes, file: str) -> dict[str, Any]:
    """The fields of the policy that a TOML text holds. Raises `PolicyInvalid`."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PolicyInvalid(file, line, f"it is not UTF-8 ({error.reason})") from None
    try:
        read = tomllib.loads(text)
    except RecursionError:
        raise PolicyInvalid(file, 1, "it is nested too deep") from None
    except ValueError as error:
        raise PolicyInvalid(file, *mistake(text, error)) from None
    return _Reader(file, Lines(text)).policy(read)


class _Reader:
    """Checks what was read, and names the line of what is wrong with it."""

    def __init__(self, file: str, lines: Lines) -> None:
        self.file = file
        self.lines = lines

    def policy(self, read: Mapping[str, Any]) -> dict[str, Any]:
        self._known(read, (), ("rule", "unlabelled", "unmatched"), "a policy")
        rules = read.get("rule", [])
        if not isinstance(rules, list) or not all([isinstance(rule, dict) for rule in rules]):
            self._wrong(("rule",), "a rule is a table of its own: write [[rule]] before its keys")
        if not rules and read.get("unmatched") != "refuse":
            self._wrong((), "it has no rule; write [[rule]] and below it what may not cross")
        fields: dict[str, Any] = {"rules": tuple([self._rule(rule, place) for place, rule in enumerate(rules)])}
        for name, values in (("unlabelled", TIERS), ("unmatched", ("allow", "refuse"))):
            if name in read:
                fields[name] = self._one_of((name,), read[name], values)
        return fields

    def _rule(self, read: Mapping[str, Any], place: int) -> Rule:
        at: Path = ("rule", place)
        self._known(read, at, _KEYS, "a rule")
        fields = {key: _KEYS[key](self, (*at, key), value) for key, value in read.items()}
        rule = Rule(**{"name": f"rule {place + 1}", "line": self.lines.at(*at), **fields})
        if not _GATES & set(read):
            self._wrong(at, f"the rule {rule.name!r} says nothing of what may not cross", sorted(_GATES))
        if "counter" in read and rule.max_tokens is None:
            self._wrong((*at, "counter"), "a counter counts for max_tokens, which the rule does not have")
        if both := sorted({*rule.require_steps} & {*rule.forbid_steps}):
            self._wrong((*at, "forbid_steps"), f"the step {both[0]} is both required and forbidden")
        return rule

    def _known(self, read: Mapping[str, Any], at: Path, known: Any, what: str) -> None:
        for key in read:
            if key not in known:
                close = get_close_matches(key, known, 1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                self._wrong((*at, key), f"{what} has no key {key!r}{hint}", () if close else sorted(known))

    def _one_of(self, at: Path, value: Any, values: tuple[str, ...]) -> str:
        if value not in values:
            close = get_close_matches(value, values, 1) if isinstance(value, str) else []
            hint = f"; did you mean {close[0]!r}?" if close else ""
            self._wrong(at, f"{at[-1]} is not {value!r}{hint}", () if close else values)
        return str(value)

    def text(self, at: Path, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            self._wrong(at, f"{at[-1]} is a text, not {value!r}")
        return value

    def texts(self, at: Path, value: Any) -> tuple[str, ...]:
        given = value if isinstance(value, list) else [value]
        if not all([isinstance(each, str) and each for each in given]):
            self._wrong(at, f"{at[-1]} is a text or a list of texts, not {value!r}")
        return tuple(given)

    def globs(self, at: Path, value: Any) -> tuple[str, ...]:
        globs = self.texts(at, value)
        if not globs:
            self._wrong(at, f"{at[-1]} names no one, so the rule would never hold")
        return globs

    def count(self, at: Path, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            self._wrong(at, f"{at[-1]} is a whole number, at least 1, not {value!r}")
        return value

    def tier(self, at: Path, value: Any) -> str:
        return self._one_of(at, value, TIERS)

    def kinds(self, at: Path, value: Any) -> tuple[str, ...]:
        return tuple([self._one_of(at, kind, get_args(Kind)) for kind in self.globs(at, value)])

    def patterns(self, at: Path, value: Any) -> tuple[str, ...]:
        from handrail.filters.redaction import compiled

        patterns = self.texts(at, value)
        for pattern in patterns:
            try:
                compiled(pattern)
            except InvalidFilter as error:
                self._wrong(at, str(error))
        return patterns

    def steps(self, at: Path, value: Any) -> tuple[str, ...]:
        # A kind of another package may be registered later; one of this package is there or is misspelled.
        steps = self.texts(at, value)
        known = {name for kind, version in registered() for name in (kind, f"{kind}@{version}")}
        for step in steps:
            if step not in known and "/" not in step and not step.startswith("custom:"):
                plain = step.replace("_", "-")
                close = [plain] if plain in known else get_close_matches(step, sorted(known), 1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                kinds = () if close else sorted({kind for kind, _ in registered()})
                self._wrong(at, f"no filter is of the kind {step!r}{hint}", kinds)
        return steps

    def counter(self, at: Path, value: Any) -> str:
        # A vocabulary may be installed where the policy is held; a name that nothing has is misspelled.
        from handrail.filters.tokens import known_counters

        return self._one_of(at, value, tuple(known_counters()))

    def findings(self, at: Path, value: Any) -> tuple[str, ...]:
        from handrail.filters.detectors import detectors

        return tuple([self._one_of(at, name, tuple(detectors())) for name in self.texts(at, value)])

    def _wrong(self, at: Path, problem: str, possible: Any = ()) -> NoReturn:
        raise PolicyInvalid(self.file, self.lines.at(*at), problem, possible)


_KEYS: dict[str, Callable[[_Reader, Path, Any], Any]] = {
    "name": _Reader.text,
    "source": _Reader.globs,
    "target": _Reader.globs,
    "kind": _Reader.kinds,
    "max_tier": _Reader.tier,
    "require_steps": _Reader.steps,
    "forbid_steps": _Reader.steps,
    "max_tokens": _Reader.count,
    "counter": _Reader.counter,
    "max_messages": _Reader.count,
    "forbid_tools": _Reader.texts,
    "forbid_patterns": _Reader.patterns,
    "forbid_findings": _Reader.findings,
    "allow_targets": _Reader.texts,
}
_GATES = frozenset(_KEYS) - {"name", "source", "target", "kind", "counter"}
