"""Words that are looked for in texts, however their letters are dressed up.

Both are compared by their letters alone: in compatibility form (NFKC), without accents over letters and strokes through
them, without characters that nobody sees, whitespace as one space, and without case unless that counts. Both are read
once as they are and once with letters of other scripts that look like Latin ones taken for those (Unicode Technical
Standard 39 has the whole list of such letters; here are those that stand for one Latin letter at a glance).
"""

import unicodedata
from collections.abc import Collection
from typing import Any

from handrail.agent.errors import BuildError

LOOKALIKES = {
    "A": "АΑᎪ",
    "B": "ВΒᏴ",
    "C": "СᏟϹ",
    "D": "Ꭰ",
    "E": "ЕΕᎬ",
    "G": "ԌᏀ",
    "H": "НΗᎻ",
    "I": "ІΙӀ",
    "J": "ЈᎫͿ",
    "K": "КΚᏦ",
    "L": "Ꮮ",
    "M": "МΜᎷ",
    "N": "Ν",
    "O": "ОΟՕ",
    "P": "РΡᏢ",
    "Q": "Ԛ",
    "R": "Ꭱ",
    "S": "ЅՏᏚ",
    "T": "ТΤᎢ",
    "U": "Ս",
    "V": "ѴᏙ",
    "W": "ԜᎳ",
    "X": "ХΧ",
    "Y": "УΥҮ",
    "Z": "ΖᏃ",
    "a": "аαɑᴀ",
    "b": "ЬьвʙƄ",
    "c": "сᴄϲ",
    "d": "ԁᴅ",
    "e": "еᴇє",
    "f": "ꜰ",
    "g": "ɡցɢ",
    "h": "һհнʜ",
    "i": "іιɪ",
    "j": "јϳᴊ",
    "k": "кκᴋ",
    "l": "ӏʟ",
    "m": "мᴍ",
    "n": "ոпɴ",
    "o": "оοօσᴏ",
    "p": "рρᴘ",
    "q": "ԛզ",
    "r": "гʀ",
    "s": "ѕꜱ",
    "t": "тτᴛ",
    "u": "սυᴜ",
    "v": "ѵνᴠ",
    "w": "ԝᴡѡω",
    "x": "хχ",
    "y": "уүγʏ",
    "z": "ᴢ",
    "'": "‘’ʼ",
    "-": "‐–—−",
}
"""Letters of Cyrillic, Greek, Armenian and Cherokee, and small capitals, by the Latin letter that they look like; and
the apostrophes and dashes that a typesetter uses."""

STROKES = {
    "A": "Ⱥ",
    "B": "Ƀ",
    "C": "ȻꞒ",
    "D": "ĐꟇ",
    "E": "Ɇ",
    "F": "Ꞙ",
    "G": "ǤꞠ",
    "H": "Ħ",
    "I": "Ɨ",
    "J": "Ɉ",
    "K": "ꝀꝂꝄꞢ",
    "L": "ŁȽⱠⱢꝈ",
    "N": "Ꞥ",
    "O": "ØƟꝊ",
    "P": "ⱣꝐ",
    "Q": "ꝖꝘ",
    "R": "ɌꞦ",
    "S": "ꞨꟉ",
    "T": "ŦȾ",
    "U": "ɄꞸ",
    "V": "Ꝟ",
    "Y": "Ɏ",
    "Z": "Ƶ",
    "a": "ⱥꬰ",
    "b": "ƀᵬᴃ",
    "c": "ȼꞓ",
    "d": "đᵭꟈ",
    "e": "ɇꬳ",
    "f": "ᵮꞙ",
    "g": "ǥꞡ",
    "h": "ħ",
    "i": "ıɨᵻ",
    "j": "ȷɉɟ",
    "k": "ꝁꝃꝅꞣ",
    "l": "łƚɫⱡꝉꬸᴌ",
    "m": "ᵯ",
    "n": "ᵰꞥ",
    "o": "øɵꝋꬾ",
    "p": "ᵱᵽꝑ",
    "q": "ꝗꝙ",
    "r": "ɍᵲᵳꞧ",
    "s": "ᵴꞩꟊẜẝ",
    "t": "ŧⱦᵵ",
    "u": "ʉᵾꞹ",
    "v": "ꝟ",
    "y": "ɏ",
    "z": "ƶᵶ",
    "þ": "ꝥꝧ",
    "Þ": "ꝤꝦ",
    "г": "ғӻ",
    "Г": "ҒӺ",
    "к": "ҝҟ",
    "К": "ҜҞ",
    "о": "ө",
    "О": "Ө",
    "ү": "ұ",
    "Ү": "Ұ",
    "х": "ӿ",
    "Х": "Ӿ",
    "ч": "ҹ",
    "Ч": "Ҹ",
}
"""Letters with a stroke or bar through them, or without their dot, which Unicode does not take apart, by the letter."""

_UNSEEN = frozenset(
    [
        *(0x034F, 0x115F, 0x1160, 0x2065, 0x3164, 0xFFA0),
        *range(0x17B4, 0x17B6),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xFFF0, 0xFFF9),
    ]
)
_TAGS = range(0xE0000, 0xE1000)
_SPACES = frozenset("\t\n\v\f\r\x85")
"""Controls that part words; the others are seen by nobody."""


class _Bare(dict[int, "str | int | None"]):
    """What becomes of each character of a decomposed text, found out when it is first met."""

    def __init__(self, others: dict[str, str]) -> None:
        letters = {other: letter for letter, several in others.items() for other in several}
        super().__init__({ord(other): letter for other, letter in letters.items()})
        for letter, several in STROKES.items():
            self.update({ord(other): letters.get(letter, letter) for other in several})
        if others:
            # Characters that nobody sees, and that some models read as ASCII.
            self.update({0xE0000 + code: chr(code) for code in range(0x20, 0x7F)})

    def __missing__(self, code: int) -> "str | int | None":
        char = chr(code)
        kind = unicodedata.category(char)
        # What stands above, below or over a letter; other marks are letters of their own, such as vowels in Hindi.
        dressing = unicodedata.combining(char) in (1, *range(200, 241)) or kind == "Me"
        unseen = kind == "Cf" or code in _UNSEEN or code in _TAGS or (kind == "Cc" and char not in _SPACES)
        self[code] = None if dressing or unseen else code
        return self[code]


_AS_IT_IS = _Bare({})
_AS_LATIN = _Bare(LOOKALIKES)
_MARKS = str.maketrans({other: mark for mark in "'-" for other in LOOKALIKES[mark]})
_LOOKS = str.maketrans({other: letter for letter, several in LOOKALIKES.items() for other in several})


class Words:
    """Finds out in linear time whether a text holds one of some words.

    `whole` words have no letter or digit before or after them. Raises `BuildError` for words that are none, or of
    which nothing is left to look for.
    """

    def __init__(self, words: Collection[str], *, case_sensitive: bool = False, whole: bool = False) -> None:
        from ahocorasick import Automaton  # type: ignore[import-not-found,import-untyped,unused-ignore]

        self._case_sensitive = case_sensitive
        self._whole = whole
        self._automaton: Any = Automaton()
        self._latin: Any = Automaton()
        if isinstance(words, str) or not isinstance(words, Collection) or not words:
            raise BuildError(f"the words to look for are a list of at least one, not {words!r}")
        for word in words:
            bare = self._compared(_parts(word).translate(_AS_IT_IS)) if isinstance(word, str) else ""
            # A word of another script stays what it is; only its apostrophes and dashes are read as a typist's.
            latin = self._compared(_parts(word.translate(_MARKS)).translate(_AS_IT_IS)) if bare else ""
            if not bare or not latin:
                raise BuildError(f"{word!r} is no word to look for: nothing of it is left to compare")
            self._automaton.add_word(bare, len(bare))
            self._latin.add_word(latin, len(latin))
        self._automaton.make_automaton()
        self._latin.make_automaton()

    def within(self, text: str) -> bool:
        """Whether one of the words stands in the text."""
        bare = self._compared(_parts(text).translate(_AS_IT_IS))
        if self._found(self._automaton, bare):
            return True
        latin = self._as_latin(text)
        return self._found(self._latin, latin)

    def _as_latin(self, text: str) -> str:
        if text.isascii():
            return self._compared(text.translate(_AS_IT_IS))
        # Taking letters apart and folding their case each make letters of the table, or take them away.
        looks = _parts(text.translate(_LOOKS)).translate(_AS_LATIN)
        return self._compared(self._compared(looks).translate(_LOOKS))

    def _compared(self, text: str) -> str:
        folded = text if self._case_sensitive else text.casefold()
        return " ".join((folded if folded.isascii() else unicodedata.normalize("NFKC", folded)).split())

    def _found(self, automaton: Any, text: str) -> bool:
        for last, length in automaton.iter(text):
            before = last - length
            beside = text[before : before + 1] + text[last + 1 : last + 2]
            if not self._whole or not any([char.isalnum() for char in beside]):
                return True
        return False


def _parts(text: str) -> str:
    """The text with each letter apart from what it is dressed in."""
    return text if text.isascii() else unicodedata.normalize("NFKD", text)
