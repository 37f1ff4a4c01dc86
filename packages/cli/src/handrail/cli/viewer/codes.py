"""Values as JSON, whatever is in them."""

import json

import msgspec


def encoded(value: object) -> bytes:
    """A value as JSON; half a surrogate pair, which UTF-8 cannot hold, becomes U+FFFD."""
    from handrail.sessions.codec import without_halves

    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):
        plain = without_halves(msgspec.to_builtins(value))
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()
