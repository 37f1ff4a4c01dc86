"""What a service says when it fails, made into an error with a type."""

import re
from typing import Any

import msgspec

from handrail.agent.errors import (
    InvalidResponse,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    StreamBroken,
)
from handrail.agent.http.secrets import Where
from handrail.filters.messages import whole

# Services that do not pass, however often they are asked: their own words for it.
_LASTING = frozenset(
    {"insufficient_quota", "invalid_request_error", "authentication_error", "permission_error", "not_found_error"}
)
_LONGEST = 500


class Told(msgspec.Struct, frozen=True):
    """What a service told of its failure: a message, its own error type, and its own error code."""

    message: str
    kind: str | None = None
    code: str | int | None = None

    @property
    def lasting(self) -> bool:
        """Whether the same request would fail again."""
        if self.kind in _LASTING or self.code in _LASTING:
            return True
        digits = isinstance(self.code, str) and len(self.code) < 10 and self.code.isdecimal()
        number = int(self.code) if digits and self.code is not None else self.code
        return isinstance(number, int) and 400 <= number < 500 and number not in (408, 429)


def told(body: bytes) -> Told:
    """What the body of an error says, in any of the shapes that services use; text that is no JSON says itself.

    It is told whole: what makes an error of it hides what is secret, and only then shortens.
    """
    try:
        payload = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return Told(_plain(body.decode(errors="replace")))
    return told_by(payload)


def told_by(payload: Any) -> Told:
    """What the JSON of an error says: `{"error": {"message", "type", "code"}}`, or one of its relatives."""
    if isinstance(payload, list) and payload:
        payload = payload[0]
    if not isinstance(payload, dict):
        return Told(_plain(_text(payload)))
    inner = payload.get("error") or payload
    if not isinstance(inner, dict):
        return Told(_plain(_text(inner)), _word(payload.get("type")), _code(payload.get("code")))
    message = inner.get("message") or _detail(inner.get("detail")) or "no reason given"
    return Told(_plain(_text(message)), _word(inner.get("type") or inner.get("status")), _code(inner.get("code")))


def refusal(status: int, reason: Told, where: Where, retry_after: float | None = None) -> ModelError:
    """The error for an HTTP status that is not a success."""
    said = _shown(reason.message, where)
    about: dict[str, Any] = {"status": status, "retry_after": retry_after, **_about(reason, where)}
    if status == 408:
        return ModelTimeout(f"{where} gave up on the request (408): {said}", **about)
    if status == 429:
        lasting = "insufficient_quota" in (reason.kind, reason.code)
        words = f"{where} takes no more requests for now (429): {said}"
        return ModelUnavailable(words, retryable=not lasting, **about)
    if status >= 500:
        return ModelUnavailable(f"{where} failed ({status}): {said}", **about)
    return ModelRefused(f"{where} refused the request ({status}): {said}{_advice(status)}", **about)


def failed_within(reason: Told, where: Where, *, streaming: bool) -> ModelError:
    """The error for a failure told inside of an answer that began as a success."""
    words = f"{where} failed in the middle of its answer: {_shown(reason.message, where)}"
    about: dict[str, Any] = _about(reason, where)
    if streaming:
        return StreamBroken(words, retryable=not reason.lasting, **about)
    return ModelRefused(words, **about) if reason.lasting else ModelUnavailable(words, **about)


def unreadable(where: Where, problem: str, found: bytes | str = b"") -> InvalidResponse:
    """The error for an answer that is not what the protocol says; it shows how the answer begins."""
    text = found.decode(errors="replace") if isinstance(found, bytes) else found
    begins = f"; it begins {where.hide(text)[:80]!r}" if text else ""
    return InvalidResponse(f"{where} sent what is no answer: {_shown(problem, where)}{begins}")


def _shown(text: str, where: Where) -> str:
    text = where.hide(text)
    return f"{text[:_LONGEST]}…" if len(text) > _LONGEST else text


def _about(reason: Told, where: Where) -> dict[str, str | int | None]:
    code = _shown(reason.code, where) if isinstance(reason.code, str) else reason.code
    return {"code": code, "kind": None if reason.kind is None else _shown(reason.kind, where)}


def _advice(status: int) -> str:
    if status in (401, 403):
        return "; check the API key"
    if status == 404:
        return "; check the model's name and base_url"
    if 300 <= status < 400:
        return "; set base_url to the address that it leads to"
    return ""


def _plain(text: str) -> str:
    """One line; a page of HTML only says that it is one."""
    if re.match(r"\s*(<!doctype|<html|<\?xml)", text, re.IGNORECASE):
        title = re.search(r"<title[^>]*>([^<]*)", text, re.IGNORECASE)
        return f"a page of HTML ({' '.join(title[1].split())})" if title else "a page of HTML"
    return " ".join(whole(text).split()) or "no reason given"


def _text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    try:
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return ""


def _detail(detail: Any) -> str:
    """Validation errors hold the request's own input as well: only the places and the messages are taken."""
    if not isinstance(detail, list):
        return detail if isinstance(detail, str) else ""
    faults = [fault for fault in detail if isinstance(fault, dict)]
    return "; ".join([f"{_path(fault.get('loc'))}: {_text(fault.get('msg', ''))}" for fault in faults])


def _path(loc: Any) -> str:
    return ".".join(map(_text, loc)) if isinstance(loc, list) else _text(loc or "")


def _word(value: Any) -> str | None:
    return whole(value) if isinstance(value, str) else None


def _code(value: Any) -> str | int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else _word(value)
