"""The keywords of JSON Schema, draft 2020-12: what a schema may not say though the draft's own schema lets it pass."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from handrail.agent.errors import BuildError

Json: TypeAlias = Any
Resolver: TypeAlias = Any
"""One of `referencing`, which keeps the name of its class to itself."""

DRAFT = "https://json-schema.org/draft/2020-12/schema"
FORMATS = (
    *("date", "date-time", "duration", "email", "hostname", "idn-email", "idn-hostname", "ipv4", "ipv6", "iri"),
    *("iri-reference", "json-pointer", "regex", "relative-json-pointer", "time", "uri", "uri-reference"),
    *("uri-template", "uuid"),
)
"""The formats of the draft; each is checked."""
FARTHEST = 20
"""How many schemas may hold for one value by way of one another (`$ref`, `allOf` and their like)."""

SAME_VALUE = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
"""The keywords whose schemas hold for the value itself, and not for its parts."""
_ALL_HOLD = ("$ref", "$dynamicRef", "allOf")
_VOCABULARIES = ("core", "applicator", "unevaluated", "validation", "meta-data", "format-annotation", "content")
_ELSEWHERE = {
    "nullable": 'add "null" to the type',
    "dependencies": "use dependentRequired or dependentSchemas",
    "additionalItems": "use prefixItems and items",
    "$recursiveRef": "use $dynamicRef",
    "id": "use $id",
}


class Edge(NamedTuple):
    """A schema that another leads to: under which keyword, and the name or place there."""

    keyword: str
    name: str
    inner: Json

    @property
    def schema(self) -> int:
        """Its `id()`."""
        return id(self.inner)


def pointer(path: Sequence[str | int]) -> str:
    """The JSON pointer of a place, as a fragment: `#/items/0`, and `#` for the whole."""
    return "".join(["#", *["/" + str(part).replace("~", "~0").replace("/", "~1") for part in path]])


@cache
def keywords() -> Mapping[str, str]:
    """The keywords of the draft's vocabularies, each with what it holds: `one` schema, a `list` or a `map` of them."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped,unused-ignore]

    known = {"definitions": "map"}
    for name in _VOCABULARIES:
        vocabulary = REGISTRY.contents(f"{DRAFT.removesuffix('schema')}meta/{name}")
        known |= {keyword: _holds(described) for keyword, described in vocabulary["properties"].items()}
    return known


def _holds(described: Json) -> str:
    match described:
        case {"$dynamicRef": "#meta"}:
            return "one"
        case {"$ref": "#/$defs/schemaArray"}:
            return "list"
        case {"additionalProperties": {"$dynamicRef": "#meta"}}:
            return "map"
        case _:
            return ""


def keyword_at(path: Sequence[str | int]) -> str:
    """The keyword that a place in a schema belongs to; empty for the whole schema."""
    known = keywords()
    keyword, steps = "", iter(map(str, path))
    for keyword in steps:
        if not known.get(keyword):
            break
        if known[keyword] != "one":
            next(steps, None)  # the name or the place of one of several schemas
    return keyword


class Survey:
    """A walk over a schema, all the schemas in it, and those that it refers to.

    `take` raises `BuildError`, with `what`, the place and the keyword, for a keyword that no vocabulary of the draft
    knows, another draft, a format that it does not define, a reference that leads to no schema (none is fetched), and
    schemas that lead back to themselves, or too far, for one value. With `foreign`, keywords that the draft does not
    know and formats mean nothing, and schemas that say they are of another draft are read as of this one.

    `edges` are the schemas that each leads to, by their `id()`, while the surveyed schema lives.
    """

    def __init__(self, schema: Json, what: str, formats: bool, foreign: bool = False) -> None:
        from jsonschema_specifications import REGISTRY
        from referencing.jsonschema import DRAFT202012

        self._what = what
        self._formats = formats
        self._foreign = foreign
        self._known = keywords()
        self._resource = DRAFT202012.create_resource
        root = self._resource(schema)
        # A registry without a way to fetch: what it does not hold is not there.
        resolver = REGISTRY.with_resource(root.id() or "", root).resolver(root.id() or "")
        self._waiting: deque[tuple[Json, str, Resolver]] = deque([(schema, "#", resolver)])
        self._places: dict[int, str] = {}
        self.edges: dict[int, list[Edge]] = {}

    def take(self) -> None:
        """Raises `BuildError` for the first thing that is wrong."""
        while self._waiting:
            schema, place, resolver = self._waiting.popleft()
            if isinstance(schema, dict) and id(schema) not in self._places:
                self._places[id(schema)] = place
                self._look(schema, place, resolver.in_subresource(self._resource(schema)))
        self._measure()

    def _measure(self) -> None:
        from graphlib import CycleError, TopologicalSorter

        far: dict[int, int] = {}
        same = {
            each: [edge.schema for edge in edges if edge.keyword in SAME_VALUE and edge.schema in self.edges]
            for each, edges in self.edges.items()
        }
        try:
            for each in TopologicalSorter(same).static_order():
                far[each] = 1 + max([far[inner] for inner in same[each]], default=0)
                if far[each] > FARTHEST:
                    self._refuse(
                        self._places[each], f"more than {FARTHEST} schemas hold here for one and the same value"
                    )
        except CycleError as error:
            cycle: list[int] = error.args[1]
            self._refuse(min([self._places[each] for each in cycle]), "this schema refers to itself without end")

    def takes_objects(self, schema: Json) -> bool:
        """Whether an object might fit this schema, as far as its types and constants say."""
        if not isinstance(schema, dict):
            return schema is not False
        kinds = schema.get("type", "object")
        values = schema.get("enum", [schema["const"]] if "const" in schema else [{}])
        if "object" not in ([kinds] if isinstance(kinds, str) else kinds) or not [v for v in values if type(v) is dict]:
            return False
        fit: dict[str, list[bool]] = {}
        for edge in self.edges[id(schema)]:
            if edge.keyword in SAME_VALUE:
                fit.setdefault(edge.keyword, []).append(self.takes_objects(edge.inner))
        every = all([all(fit.get(keyword, ())) for keyword in _ALL_HOLD])
        return every and all([any(fit[keyword]) for keyword in ("anyOf", "oneOf") if keyword in fit])

    def _refuse(self, place: str, problem: str) -> None:
        raise BuildError(f"{self._what}: {place}: {problem}")

    def _look(self, schema: dict[str, Json], place: str, resolver: Resolver) -> None:
        edges = self.edges[id(schema)] = []
        for keyword, value in schema.items():
            here = f"{place}{pointer([keyword])[1:]}"
            if keyword not in self._known:
                if not keyword.startswith("x-") and not self._foreign:
                    self._refuse(here, self._unknown(keyword))
                continue
            if keyword == "$schema" and value not in (DRAFT, f"{DRAFT}#") and not self._foreign:
                self._refuse(here, f"only {DRAFT} is known here, not {value!r}")
            if keyword == "format" and self._formats and value not in FORMATS:
                possible = ", ".join(FORMATS)
                self._refuse(here, f"{value!r} is no format of the draft ({possible}); or pass formats=False")
            inner = list(_inner(self._known[keyword], value, here, resolver))
            if keyword in ("$ref", "$dynamicRef"):
                inner.append(("", *self._target(value, here, resolver)))
            self._waiting.extend([found[1:] for found in inner])
            edges.extend([Edge(keyword, name, each) for name, each, _, _ in inner])

    def _unknown(self, keyword: str) -> str:
        from difflib import get_close_matches

        closest = get_close_matches(keyword, self._known, 1)
        hint = _ELSEWHERE.get(keyword) or (f"did you mean {closest[0]!r}?" if closest else "")
        return f"{keyword!r} is no keyword of draft 2020-12{'; ' + hint if hint else ''} (x-… for one of your own)"

    def _target(self, reference: str, place: str, resolver: Resolver) -> tuple[Json, str, Resolver]:
        from referencing.exceptions import Unresolvable

        try:
            found = resolver.lookup(reference)
        except (Unresolvable, ValueError, TypeError):
            found = None
        if found is None or not isinstance(found.contents, dict | bool):
            raise BuildError(f"{self._what}: {place}: {reference!r} leads to no schema; nothing is fetched")
        return found.contents, reference, found.resolver


def _inner(holds: str, value: Json, place: str, resolver: Resolver) -> Iterator[tuple[str, Json, str, Resolver]]:
    if holds == "one":
        yield "", value, place, resolver
    elif holds == "list":
        yield from [(str(number), each, f"{place}/{number}", resolver) for number, each in enumerate(value)]
    elif holds == "map":
        yield from [(name, each, f"{place}{pointer([name])[1:]}", resolver) for name, each in value.items()]
