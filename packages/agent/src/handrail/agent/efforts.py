"""How much work it is to say all that is wrong with a value, and a schema that says the first of it with little."""

from collections.abc import Container, Iterator, Mapping, Sequence

from handrail.agent.keywords import SAME_VALUE, Edge, Json, keywords

MOST = 5_000
"""How many times schemas may be held against parts of a value to say all that is wrong with it."""


class TooMuch(Exception):
    """It would take more than `MOST` steps."""


class Effort:
    """Counts the steps that it takes, by the schemas that each schema leads to, to say what is wrong with a value.

    Telling goes into every possibility again wherever it meets it, so a tree of them takes more steps with each level.
    """

    def __init__(self, edges: Mapping[int, Sequence[Edge]]) -> None:
        self._edges = edges
        self._known: dict[tuple[int, int], int] = {}

    def count(self, schema: int, value: Json) -> int:
        """The steps for a value under a schema, at most; raises `TooMuch`."""
        key = (schema, id(value))
        steps = self._known.get(key)
        if steps is None:
            steps = 1
            for edge in self._edges.get(schema, ()):
                for part in _parts(edge, value):
                    steps += self.count(edge.schema, part)
                    if steps > MOST:
                        raise TooMuch
            self._known[key] = steps
            if len(self._known) > MOST:
                raise TooMuch
        return steps


def _parts(edge: Edge, value: Json) -> Iterator[Json]:
    """The parts of a value that a schema under a keyword is held against, and perhaps some more."""
    keyword, name = edge.keyword, edge.name
    if keyword in SAME_VALUE:
        yield value
    elif isinstance(value, dict):
        if keyword == "properties":
            if name in value:
                yield value[name]
        elif keyword in ("additionalProperties", "patternProperties", "unevaluatedProperties"):
            yield from value.values()
        elif keyword == "propertyNames":
            yield from value
    elif isinstance(value, list):
        if keyword == "prefixItems":
            yield from value[int(name) : int(name) + 1]
        elif keyword in ("items", "contains", "unevaluatedItems"):
            yield from value


def first_only(schema: Json, edges: Mapping[int, Sequence[Edge]]) -> Json:
    """The schema, as one that goes into no possibility, and only where a value does not fit into what leads back to
    itself: the first problem that it finds takes no longer than finding whether the value fits.

    Where a reference leads into a possibility, it leads nowhere in this one.
    """
    return _first_only(schema, _in_cycles(edges))


def _first_only(schema: Json, cycles: Container[int]) -> Json:
    if not isinstance(schema, dict):
        return schema
    known = keywords()
    made: dict[str, Json] = {}
    for keyword, value in schema.items():
        held = known.get(keyword, "")
        if held == "one":
            made[keyword] = _first_only(value, cycles)
        elif held == "list":
            made[keyword] = [_first_only(each, cycles) for each in value]
        elif held == "map":
            made[keyword] = {name: _first_only(each, cycles) for name, each in value.items()}
        else:
            made[keyword] = value
    for keyword in ("anyOf", "oneOf"):
        if keyword in made:
            made[keyword] = [{"if": each, "else": False} for each in made[keyword]]
    if id(schema) in cycles:
        # Whether a reference in a circle is fitted is known at once the second time, and `if` asks for no more.
        refers = [{keyword: made.pop(keyword)} for keyword in ("$ref", "$dynamicRef") if keyword in made]
        if refers:
            made["allOf"] = [*made.get("allOf", ()), *[{"if": each, "else": each} for each in refers]]
    return made


def _in_cycles(edges: Mapping[int, Sequence[Edge]]) -> set[int]:
    """The schemas that lead back to themselves, and those between two that do."""
    onward = {each: {edge.schema for edge in leads if edge.schema in edges} for each, leads in edges.items()}
    backward: dict[int, set[int]] = {each: set() for each in edges}
    for each, leads in onward.items():
        for other in leads:
            backward[other].add(each)
    left = set(edges)
    for ways, back in ((onward, backward), (backward, onward)):
        ends = [each for each in left if not ways[each] & left]
        while ends:
            end = ends.pop()
            left.discard(end)
            ends += [each for each in back[end] & left if not ways[each] & left]
    return left
