"""Values that are sent and never shown."""

from typing import NoReturn
from urllib.parse import parse_qsl, urlsplit

import msgspec

from handrail.agent.errors import BuildError
from handrail.agent.http.hiding import TELLING, hide


class Secret:
    """A key or a header's value. Neither `repr`, `str`, `vars` nor pickle shows it.

    `scheme` goes before it in the header, such as `Bearer`. Raises `BuildError` for a value that no HTTP header can
    hold; the error does not show it either.
    """

    __slots__ = ("_scheme", "_value")

    def __init__(self, value: str, what: str = "the API key", scheme: str = "") -> None:
        if not (value.isascii() and value.isprintable()):
            raise BuildError(f"{what} holds a character that an HTTP header cannot; is it copied whole, on one line?")
        self._value = value
        self._scheme = scheme

    def header(self) -> str:
        """What is sent."""
        return f"{self._scheme} {self._value}" if self._scheme else self._value

    def hide(self, text: str) -> str:
        """The text with `***` wherever the value stood in it: as it is, wrapped, or with the escapes of JSON and URLs;
        also where only its beginning is left at the text's end. Hide first, and shorten then."""
        # Of `Bearer abc` the second word alone tells it all.
        for value in dict.fromkeys([self._value, self._value.rpartition(" ")[2]]):
            if len(value) >= TELLING:
                text = hide(text, value)
        return text

    def __repr__(self) -> str:
        return "Secret(***)"

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, memo: object) -> "Secret":
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written down; give the key anew where it is needed")


def in_query(url: str) -> tuple[Secret, ...]:
    """The values in a URL's query: any may be a key."""
    values = [value or name for name, value in parse_qsl(urlsplit(url).query, keep_blank_values=True)]
    return tuple([Secret(value, "base_url") for value in values if value.isascii() and value.isprintable()])


class Where(msgspec.Struct, frozen=True):
    """How errors name a service, and what they must hide of what it says."""

    name: str
    secrets: tuple[Secret, ...] = ()

    def hide(self, text: str) -> str:
        """The text with `***` in place of every secret."""
        for secret in self.secrets:
            text = secret.hide(text)
        return text

    def __str__(self) -> str:
        return self.name
