"""The encryption of a session: AES-256-GCM, one record at a time.

An encrypted record names its own number, which with the format, its version, the file's id and the hash of the line
before is the associated data: no line can be moved, left out in the middle, or put in from another file, also not from
a copy of this one that went on another way. `prev` and `batch` stay clear, so that the chain and the end of a file are
checked without the key. The two clear records, header and footer, carry a `check`: themselves, encrypted in the place
where they stand.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from handrail.sessions.codec import Forged, decode_envelope, encode, unchained
from handrail.sessions.errors import (
    TamperedRecord,
    UnfitCipher,
    WrongPassphrase,
)
from handrail.sessions.lines import ZEROS, chained
from handrail.sessions.passphrases import Cipher, Cost, Passphrase, new_salt
from handrail.sessions.records import (
    FORMAT,
    VERSION,
    AnyRecord,
    EncryptedRecord,
    Envelope,
    Footer,
    Header,
    Unknown,
    Writable,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from handrail.sessions.places import Where

CIPHER = "aes-256-gcm"
KDF = "scrypt"
_NONCE = 12

Decode: TypeAlias = Callable[[bytes], AnyRecord]
"""What makes a record of a line; raises `ValueError` where it is none."""
Seal: TypeAlias = Callable[[str, Writable], bytes]
"""What makes the JSON object of an encrypted record of a record, and of the hash of the line before it."""


class _Proof(msgspec.Struct):
    """What the check of a footer says, in whatever order."""

    kind: Literal["footer"]
    counts: dict[str, int]
    head: str


class Vault:
    """The key of one session file, and what it encrypts and decrypts: made by `create` or `unlocked`."""

    def __init__(self, id: str, version: int, key: AESGCM) -> None:
        self._key = key
        self._before = b"%s %d\n" % (FORMAT.encode(), version)
        self._id = b"\n" + id.encode() + b"\n"

    @classmethod
    def create(cls, path: Where, header: Header, passphrase: Passphrase) -> tuple[Vault, Header]:
        """The vault for a new file, and its header with what opens it. Raises `UnfitCipher`."""
        salt, cost = new_salt(), passphrase.cost
        vault = cls(header.id, VERSION, passphrase.key(path, salt, cost))
        check = vault.seal(1, ZEROS, _header_text(header))
        cipher = Cipher(name=CIPHER, kdf=KDF, salt=salt, n=cost.n, r=cost.r, p=cost.p, check=check)
        return vault, msgspec.structs.replace(header, cipher=cipher)

    def seal(self, number: int, prev: str, text: bytes) -> bytes:
        """The text as what stands in line `number`, behind the line of the hash `prev`: nonce, ciphertext and tag."""
        nonce = os.urandom(_NONCE)
        return nonce + self._key.encrypt(nonce, text, self._place(number, prev))

    def open(self, number: int, prev: str, data: bytes) -> bytes:
        """The text that was sealed. Raises `Forged`."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._key.decrypt(data[:_NONCE], data[_NONCE:], self._place(number, prev))
        except (InvalidTag, ValueError):
            pass
        raise Forged("it does not decrypt: it was changed after it was written, or comes from elsewhere")

    def _place(self, number: int, prev: str) -> bytes:
        return b"%b%d%b%b" % (self._before, number, self._id, prev.encode())

    def record(self, number: int, prev: str, text: bytes) -> EncryptedRecord:
        """A record's JSON as an encrypted record that is to stand in line `number`, behind the line of this hash."""
        return EncryptedRecord(number=number, data=self.seal(number, prev, text))

    def footer(self, number: int, footer: Footer) -> Footer:
        """The footer with its check."""
        return msgspec.structs.replace(footer, check=self.seal(number, footer.head, _footer_text(footer)))

    def proves(self, number: int, footer: Footer) -> bool:
        """Whether the footer was written by who has the passphrase."""
        try:
            proof = msgspec.json.decode(self.open(number, footer.prev, footer.check or b""), type=_Proof)
        except (Forged, msgspec.DecodeError):
            return False
        return (proof.counts, proof.head) == (footer.counts, footer.head)

    def decode(self, line: bytes, read: Decode, place: int = 0) -> AnyRecord:
        """The record of a line, which stands in `place` where that is known. Raises `ValueError`, of which `Forged`."""
        sealed = decode_envelope(line)
        if type(sealed) is EncryptedRecord:
            if place and sealed.number != place:
                raise Forged(_elsewhere(sealed.number, place))
            return read(chained(sealed.prev, sealed.batch, self.open(sealed.number, sealed.prev, sealed.data)))
        if type(sealed) is Footer and place and not self.proves(place, sealed):
            raise Forged("the footer was not written with the passphrase of this session")
        return read(line)

    def envelope(self, line: bytes) -> Envelope:
        """A line as it stands, after seeing that what is encrypted in it decrypts. Raises `ValueError`, of which
        `Forged`."""
        sealed = decode_envelope(line)
        if isinstance(sealed, EncryptedRecord):
            self.open(sealed.number, sealed.prev, sealed.data)
        return sealed

    def in_order(self, read: Decode) -> Decode:
        """What decodes the lines of the file one after the other, from the first."""
        place = 0

        def decode_next(line: bytes) -> AnyRecord:
            nonlocal place
            place += 1
            return self.decode(line, read, place)

        return decode_next

    def sealer(self, head: str, number: int) -> Sealer:
        """What encrypts the records after the line with this hash, the first of them as record `number`."""
        return Sealer(self, head, number)


class Sealer:
    """Encrypts what a journal writes, and keeps count of it: a batch that did not arrive leaves no gap in the numbers.

    `batch` is called at every batch, with the journal's head at that moment: where that is still the old one, nothing
    of the batch before was written.
    """

    def __init__(self, vault: Vault, head: str, number: int) -> None:
        self._vault = vault
        self._head = head
        self._next = number
        self._made = 0

    def batch(self, head: str) -> Seal:
        """What encrypts the records of the batch that comes after `head`, called with one after the other."""
        if head != self._head:
            self._head, self._next = head, self._next + self._made
        self._made = 0
        return self._seal

    def _seal(self, prev: str, record: Writable) -> bytes:
        number = self._next + self._made
        self._made += 1
        return encode(self._vault.record(number, prev, encode(unchained(record))))


def locked_in_order() -> Decode:
    """What decodes the lines of an encrypted session without its key, from the first: only their places are checked."""
    place = 0

    def decode_next(line: bytes) -> AnyRecord:
        nonlocal place
        place += 1
        sealed = decode_envelope(line)
        if type(sealed) is EncryptedRecord and sealed.number != place:
            raise Forged(_elsewhere(sealed.number, place))
        return sealed

    return decode_next


def unlock(path: Where, header: Header, cipher: Cipher, version: int, passphrase: Passphrase, read: Decode) -> Vault:
    """The vault of a file with this header; `read` makes a record of the header's own text.

    Raises `UnfitCipher` for an encryption that is not known or costs too much, `WrongPassphrase`, or `TamperedRecord`
    for a header that was changed.
    """
    if (cipher.name, cipher.kdf) != (CIPHER, KDF):
        raise UnfitCipher(path, f"it is {cipher.name} with a key by {cipher.kdf}; known: {CIPHER} by {KDF}")
    vault = Vault(header.id, version, passphrase.key(path, cipher.salt, Cost(cipher.n, cipher.r, cipher.p)))
    try:
        text = vault.open(1, ZEROS, cipher.check)
    except Forged:
        raise WrongPassphrase(path) from None
    if _known(read(text)) != msgspec.structs.replace(header, prev="", batch=0, cipher=None):
        raise TamperedRecord(path, 1, "the header was changed after it was written")
    return vault


def _elsewhere(number: int, place: int) -> str:
    return f"it is record {number}, and stands where record {place} has to be"


def _known(record: AnyRecord) -> AnyRecord:
    return (record.record or record) if type(record) is Unknown else record


def _header_text(header: Header) -> bytes:
    return encode(msgspec.structs.replace(header, prev="", batch=0, cipher=None))


def _footer_text(footer: Footer) -> bytes:
    return encode(Footer(counts=footer.counts, head=footer.head))
