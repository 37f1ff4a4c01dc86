"""The words of names and descriptions, in any script: split as identifiers are, and comparable."""

from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple
from unicodedata import normalize

# Scripts that are written without spaces, or with few: what stands between them is no word.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
_RUNS = rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<letters>[[\p{{L}}\p{{M}}]--[{_UNSPACED}]]+)|\p{{N}}+"
_HUMPS = "|".join(
    [
        r"\p{Lu}{2,}s(?!\p{Ll})",
        r"\p{Lu}+(?=\p{Lu}\p{Ll})",
        r"(?:\p{Lu}\p{M}*)?(?:\p{Ll}\p{M}*)+",
        r"(?:\p{Lu}\p{M}*)+",
        r"[\p{L}\p{M}]+",
    ]
)


class Words(NamedTuple):
    """The words of a text. `terms` are its words, numbers and, of scripts without spaces, pairs of characters; beside
    them stand the names that camel case splits, as a `whole`, and each of the `characters` that the pairs are made of.
    """

    terms: list[str]
    whole: list[str]
    characters: list[str]


def words(text: str) -> Words:
    """The words of a text, normalised (NFKC) and without case.

    >>> words("getHTTPStatus of_GitHub2").terms
    ['get', 'http', 'status', 'of', 'git', 'hub', '2']
    >>> words("退款订单 on GitHub")
    Words(terms=['退款', '款订', '订单', 'on', 'git', 'hub'], whole=['github'], characters=['退', '款', '订', '单'])
    """
    found = Words([], [], [])
    runs, humps = _patterns()
    for run in runs.finditer(normalize("NFKC", text)):
        if run["letters"]:
            parts = humps.findall(run[0])
            found.terms.extend([_plain(part) for part in parts])
            if len(parts) > 1:
                found.whole.append(_plain(run[0]))
        elif run["unspaced"] and len(run[0]) > 1:
            characters = _plain(run[0])
            found.terms.extend([first + second for first, second in pairwise(characters)])
            found.characters.extend(characters)
        else:
            found.terms.append(_plain(run[0]))
    return found


def _plain(word: str) -> str:
    return normalize("NFKC", word.casefold())


@cache
def _patterns() -> tuple[Any, Any]:
    # The standard library's expressions know no scripts, and take a combining mark for the end of a word.
    import regex  # type: ignore[import-untyped,unused-ignore]

    return regex.compile(_RUNS, regex.V1), regex.compile(_HUMPS, regex.V1)
