"""A page as one file: its parts put together so that nothing in its data can be taken for anything but data."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from handrail.cli.viewer.codes import encoded

_SCRIPTS = {
    "page": ("text", "rows", "cards", "feed", "search", "chart", "side", "page"),
    "index": ("text", "index"),
    "diff": ("text", "diff"),
}
_TITLES = {"page": "Handrail session", "index": "Handrail sessions", "diff": "Handrail difference"}
# What could end the element that holds the data, or begin another; each stands in strings only.
_ESCAPES = {
    b"<": b"\\u003c",
    b">": b"\\u003e",
    b"&": b"\\u0026",
    b"\xe2\x80\xa8": b"\\u2028",
    b"\xe2\x80\xa9": b"\\u2029",
}


def page(kind: str, value: object) -> bytes:
    """The page of a kind (`page` for a session, `index` for a folder of them, `diff` for two) with its data, as UTF-8.

    Its policy allows the one style and the one script that are in it, by their hashes, and nothing else: no request,
    no markup made of text, no other script.
    """
    template, style, script = _parts(kind)
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(style)}",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )
    shown = template.replace("{{csp}}", policy).replace("{{style}}", style).replace("{{script}}", script)
    before, after = shown.encode().split(b"{{data}}")
    return before + embedded(value) + after


def embedded(value: object) -> bytes:
    """A value as JSON that may stand in a `script` element."""
    text = encoded(value)
    for sign, escape in _ESCAPES.items():
        text = text.replace(sign, escape)
    return text


@cache
def _parts(kind: str) -> tuple[str, str, str]:
    assets = files("handrail.cli.viewer") / "assets"
    scripts = [(assets / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS[kind]]
    script = "\n".join(['"use strict";', "(() => {", *scripts, "})();"])
    head, body = [(assets / f"{name}.html").read_text(encoding="utf-8") for name in ("head", kind)]
    template = body.replace("{{head}}", head.replace("{{title}}", _TITLES[kind]))
    return template, (assets / "page.css").read_text(encoding="utf-8"), script


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
