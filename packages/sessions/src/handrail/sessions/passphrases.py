"""Passphrases: what a session is encrypted with, held so that nothing prints it, and the keys that scrypt makes of it.

A key is derived once for each salt and cost, and kept with the passphrase: whoever holds on to one passphrase pays for
it once a file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from handrail.sessions.errors import EmptyPassphrase, UnfitCipher

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from handrail.sessions.places import Where

KEY_BYTES = 32
SALT_BYTES = 16
MOST_MEMORY = 256 << 20
"""How many bytes a key may take to derive, whatever a header asks for."""
MOST_WORK = 1 << 30
"""The same of all passes together."""


class Cost(msgspec.Struct, frozen=True):
    """What scrypt is to cost: 128 * n * r bytes, p times over. `n` is a power of two."""

    n: int = 1 << 15
    r: int = 8
    p: int = 3

    def problem(self) -> str:
        """What keeps a key of this cost from being derived here; empty where nothing does."""
        if min(self.n, self.r, self.p) < 1 or self.n < 2 or self.n & (self.n - 1):
            return f"scrypt takes an n that is a power of two, and r and p from 1 on, not {self}"
        memory = 128 * self.n * self.r
        if memory > MOST_MEMORY or memory * self.p > MOST_WORK:
            return (
                f"a key of {self} would take {memory} bytes, {self.p} times; "
                f"at most {MOST_MEMORY} are given, and {MOST_WORK} together"
            )
        return ""


class Cipher(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a session is encrypted: `name` the cipher, `kdf` what makes its key of a passphrase, with this salt and cost.
    `check` is the header itself without this field, encrypted as line 1."""

    name: str
    kdf: str
    salt: bytes
    n: int
    r: int
    p: int
    check: bytes


class Passphrase:
    """A passphrase that never shows itself, and the `cost` of the keys that new files are encrypted with.

    Text counts as its UTF-8 bytes in Unicode's normal form C. Raises `EmptyPassphrase`.

    >>> Passphrase("correct horse battery staple")
    Passphrase('***')
    """

    __slots__ = ("_keys", "_secret", "cost")

    def __init__(self, secret: str | bytes, *, cost: Cost | None = None) -> None:
        from unicodedata import normalize

        if not isinstance(secret, str | bytes):
            raise TypeError(f"a passphrase is text or bytes, not {type(secret).__name__}")
        self._secret = normalize("NFC", secret).encode("utf-8", "surrogatepass") if isinstance(secret, str) else secret
        self._keys: dict[tuple[bytes, Cost], AESGCM] = {}
        self.cost = cost or Cost()
        if not secret:
            raise EmptyPassphrase

    def __repr__(self) -> str:
        return "Passphrase('***')"

    def __reduce__(self) -> str:
        raise TypeError("a passphrase is not written down: give it anew where it is needed")

    def key(self, path: Where, salt: bytes, cost: Cost) -> AESGCM:
        """The key for a file. Raises `UnfitCipher` for a salt that is none, or a cost beyond what is given here."""
        known = self._keys.get((salt, cost))
        if known is None:
            problem = cost.problem() or ("" if len(salt) == SALT_BYTES else f"its salt has {len(salt)} bytes, not 16")
            if problem:
                raise UnfitCipher(path, problem)
            known = self._keys[salt, cost] = self._derived(salt, cost)
        return known

    def _derived(self, salt: bytes, cost: Cost) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

        # The key itself has no name here: a name's value is shown where a traceback shows locals.
        return AESGCM(Scrypt(salt=salt, length=KEY_BYTES, n=cost.n, r=cost.r, p=cost.p).derive(self._secret))


Secret: TypeAlias = str | bytes | Passphrase | None
"""What a passphrase is given as."""


def hidden(secret: Secret) -> Passphrase | None:
    """The same as something that shows nothing; a function that takes a passphrase calls this first."""
    return secret if secret is None or isinstance(secret, Passphrase) else Passphrase(secret)


def new_salt() -> bytes:
    """A salt for a new file."""
    return os.urandom(SALT_BYTES)
