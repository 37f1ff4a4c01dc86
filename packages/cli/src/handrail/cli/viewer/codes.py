"""Values as JSON, whatever is in their strings."""

import msgspec


def encoded(value: object) -> bytes:
    """A value as JSON; half a surrogate pair, which UTF-8 cannot hold, becomes U+FFFD."""
    from handrail.sessions.codec import without_halves

    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(without_halves(value))
