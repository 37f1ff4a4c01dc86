"""Tools by keywords: BM25 over their names and descriptions."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from handrail.agent.errors import BuildError
from handrail.agent.models import ToolSpec
from handrail.agent.tool_indexes.indexes import Hit, is_number
from handrail.agent.tool_indexes.words import Words, words

LARGEST = 1_000_000
"""How large `k1` and `name_boost` may be: beyond that they change nothing."""


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
        if not is_number(self.k1) or not 0 <= self.k1 <= LARGEST or not is_number(self.b) or not 0 <= self.b <= 1:
            possible = f"a k1 from 0 to {LARGEST} and a b from 0 to 1"
            raise BuildError(f"a KeywordIndex has {possible}, not {self.k1!r}, {self.b!r}")
        if type(self.name_boost) is not int or not 1 <= self.name_boost <= LARGEST:
            raise BuildError(f"name_boost is a whole number from 1 to {LARGEST}, not {self.name_boost!r}")
        if self.stem != "" and self.stem not in (languages := _snowball().algorithms()):
            raise BuildError(f"stem is one of {', '.join(languages)}, or '' for none, not {self.stem!r}")
        if not isinstance(self.synonyms, Mapping):
            raise BuildError(f"synonyms are lists of words by one word each, not {self.synonyms!r}")
        for word, others in self.synonyms.items():
            one = isinstance(word, str) and len(words(word).terms) == 1
            if not one or not isinstance(others, list | tuple) or not all([type(other) is str for other in others]):
                raise BuildError(f"synonyms are lists of words by one word each, not {word!r}: {others!r}")

    def build(self, tools: Sequence[ToolSpec]) -> Keywords:
        """The weight of each term in each tool."""
        tools = sorted(tools, key=lambda tool: tool.name)
        texts = [(words(tool.name), words(tool.description)) for tool in tools]
        lengths = [len(name.terms) * self.name_boost + len(about.terms) for name, about in texts]
        average = sum(lengths) / max(len(lengths), 1) or 1.0
        counts: dict[str, Counter[int]] = defaultdict(Counter)
        for place, (name, about) in enumerate(texts):
            for term in _all(name):
                counts[self._stem(term)][place] += self.name_boost
            for term in _all(about):
                counts[self._stem(term)][place] += 1
        weights: dict[str, Sequence[tuple[int, float]]] = {}
        for term, held in counts.items():
            rarity = math.log(1 + (len(tools) - len(held) + 0.5) / (len(held) + 0.5))
            norms = {place: self.k1 * (1 - self.b + self.b * lengths[place] / average) for place in held}
            weights[term] = [(at, rarity * n * (self.k1 + 1) / (n + norms[at])) for at, n in held.items()]
        also = {
            self._stem(words(word).terms[0]): words(" ".join(others)).terms for word, others in self.synonyms.items()
        }
        return Keywords([tool.name for tool in tools], weights, also)

    def search(self, built: Keywords, query: str, limit: int) -> list[Hit]:
        """The tools with a word of the query, the best first; of equal ones the first by name."""
        asked = words(query)
        terms: dict[str, str] = {}
        for word in [*asked.terms, *asked.whole]:
            for each in (word, *built.synonyms.get(self._stem(word), ())):
                terms.setdefault(self._stem(each), each)
        scores: dict[int, float] = defaultdict(float)
        matched: dict[int, list[str]] = defaultdict(list)
        for term, word in terms.items():
            for place, weight in built.weights.get(term, ()):
                scores[place] += weight
                matched[place].append(word)
        # The names are in order, so places are too.
        best = sorted(scores, key=lambda place: (-scores[place], place))[:limit]
        return [Hit(built.names[place], scores[place], tuple(matched[place])) for place in best]

    def _stem(self, word: str) -> str:
        return _stemmed(word, self.stem)


@lru_cache(4096)
def _stemmed(word: str, language: str) -> str:
    if not language:
        return word
    # A stemmer remembers the word that it is at, so each word has one, and threads do not share it.
    stemmed: str = _snowball().stemmer(language).stemWord(word)
    return stemmed


def _snowball() -> Any:
    import snowballstemmer  # type: ignore[import-untyped,unused-ignore]

    return snowballstemmer


def _all(found: Words) -> list[str]:
    # What stands beside the terms can be found, but makes no text longer.
    return [*found.terms, *found.whole, *found.characters]
