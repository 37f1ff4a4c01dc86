"""A page as one file: what its data is wrapped in, and what its policy allows."""

import json
import re
from base64 import b64encode
from hashlib import sha256

import pytest

from cli.viewer.books import HOSTILE
from handrail.cli.viewer.pages import embedded, page


def parts(body: bytes) -> tuple[str, str, str, str]:
    """The policy, the style, the data and the script of a page."""
    text = body.decode()
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    script = re.search(r"<script>(.*?)</script>\n</body>", text, re.DOTALL)
    found = [each[1] for each in (policy, style, data, script) if each is not None]
    assert len(found) == 4
    return found[0], found[1], found[2], found[3]


@pytest.mark.parametrize("text", [*HOSTILE, "half a pair \ud800", "\x00"])
def test_whatever_a_text_is_the_data_holds_it_and_ends_nowhere_else(text: str) -> None:
    wrapped = embedded({"text": text, text[:20]: [text]}).decode()
    assert not set("<>&\u2028\u2029") & set(wrapped)
    assert json.loads(wrapped)["text"] == text.replace("\ud800", "\ufffd")


@pytest.mark.parametrize("kind", ["page", "index", "diff"])
def test_the_policy_allows_the_one_style_and_the_one_script_and_nothing_else(kind: str) -> None:
    policy, style, _, script = parts(page(kind, {"rows": [HOSTILE]}))
    allowed = dict(each.strip().split(" ", 1) for each in policy.split(";"))
    digests = [b64encode(sha256(each.encode()).digest()).decode() for each in (script, style)]
    assert [allowed.pop(name) for name in ("script-src", "style-src")] == [f"'sha256-{each}'" for each in digests]
    assert allowed.pop("require-trusted-types-for") == "'script'"
    assert allowed == dict.fromkeys(["default-src", "base-uri", "form-action", "trusted-types"], "'none'")


@pytest.mark.parametrize("kind", ["page", "index", "diff"])
def test_a_page_has_no_handler_no_address_and_no_markup_made_of_text(kind: str) -> None:
    body = page(kind, {}).decode()
    assert re.search(r"\son[a-z]+=|https?://(?!www\.w3\.org/2000/svg)|innerHTML|insertAdjacent|eval\(", body) is None
    assert body.count("<script") == 2
    assert body.count("</script>") == 2
