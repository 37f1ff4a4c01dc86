"""Tools by keywords: BM25 over their names and descriptions."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from handrail.agent.errors import BuildError
from handrail.agent.models import ToolSpec
from handrail.agent.tool_indexes.indexes import Hit
from handrail.agent.tool_indexes.words import Words, words


class Keywords(NamedTuple):
    """A set of tools, ready to be searched: their names, which of them a term weighs how much in, and the synonyms."""

    names: Sequence[str]
    weights: Mapping[str, Sequence[tuple[int, float]]]
    synonyms: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class KeywordIndex:
    """Finds tools by words, the rarer the better: BM25 with `k1` and `b`, a name counting `name_boost` times.

    `stem` is the language whose endings make no difference (one of snowballstemmer's), or `""`: every form of a word is
    a word of its own. `synonyms` says what a word of a query also stands for. Raises `BuildError`.
    """

    k1: float = 1.2
    b: float = 0.75
    name_boost: int = 3
    stem: str = "english"
    synonyms: Mapping[str, Sequence[str]] = field(default_factory=dict)
    hint: ClassVar[str] = "A few words that say what is to be done."

    def __post_init__(self) -> None:
        if not self.k1 >= 0 or not 0 <= self.b <= 1:
            raise BuildError(f"a KeywordIndex has a k1 of at least 0 and a b from 0 to 1, not {self.k1!r}, {self.b!r}")
        if type(self.name_boost) is not int or self.name_boost < 1:
            raise BuildError(f"name_boost is a whole number, at least 1, not {self.name_boost!r}")
        self._stemmer()
        for word, others in self.synonyms.items():
            if len(words(word).terms) != 1 or isinstance(others, str):
                raise BuildError(f"synonyms are lists of words by one word each, not {word!r}: {others!r}")

    def build(self, tools: Sequence[ToolSpec]) -> Keywords:
        """The weight of each term in each tool."""
        stem = self._stemmer()
        tools = sorted(tools, key=lambda tool: tool.name)
        texts = [(words(tool.name), words(tool.description)) for tool in tools]
        lengths = [len(name.terms) * self.name_boost + len(about.terms) for name, about in texts]
        average = sum(lengths) / len(lengths) if tools else 0
        counts: dict[str, Counter[int]] = defaultdict(Counter)
        for place, (name, about) in enumerate(texts):
            for term in _all(name):
                counts[stem(term)][place] += self.name_boost
            for term in _all(about):
                counts[stem(term)][place] += 1
        weights: dict[str, Sequence[tuple[int, float]]] = {}
        for term, held in counts.items():
            rarity = math.log(1 + (len(tools) - len(held) + 0.5) / (len(held) + 0.5))
            # Where there is a term some text has a length, so the average is above 0.
            norms = {place: self.k1 * (1 - self.b + self.b * lengths[place] / average) for place in held}
            weights[term] = [(at, rarity * n * (self.k1 + 1) / (n + norms[at])) for at, n in held.items()]
        also = {stem(words(word).terms[0]): words(" ".join(others)).terms for word, others in self.synonyms.items()}
        return Keywords([tool.name for tool in tools], weights, also)

    def search(self, built: Keywords, query: str, limit: int) -> list[Hit]:
        """The tools with a word of the query, the best first; of equal ones the first by name."""
        stem = self._stemmer()
        asked = words(query)
        terms: dict[str, str] = {}
        for word in [*asked.terms, *asked.whole]:
            for each in (word, *built.synonyms.get(stem(word), ())):
                terms.setdefault(stem(each), each)
        scores: dict[int, float] = defaultdict(float)
        matched: dict[int, list[str]] = defaultdict(list)
        for term, word in terms.items():
            for place, weight in built.weights.get(term, ()):
                scores[place] += weight
                matched[place].append(word)
        # The names are in order, so places are too.
        best = sorted(scores, key=lambda place: (-scores[place], place))[:limit]
        return [Hit(built.names[place], scores[place], tuple(matched[place])) for place in best]

    def _stemmer(self) -> Callable[[str], str]:
        if not self.stem:
            return str
        import snowballstemmer  # type: ignore[import-untyped,unused-ignore]

        if self.stem not in snowballstemmer.algorithms():
            possible = ", ".join(snowballstemmer.algorithms())
            raise BuildError(f"stem is one of {possible}, or '' for none, not {self.stem!r}")
        # One each time: a stemmer remembers the word it is at, and threads would share it.
        stem: Callable[[str], str] = snowballstemmer.stemmer(self.stem).stemWord
        return stem


def _all(found: Words) -> list[str]:
    # What stands beside the terms can be found, but makes no text longer.
    return [*found.terms, *found.whole, *found.characters]
