"""The page of a difference, driven in a browser."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from cli.viewer import books
from cli.viewer.conftest import Look
from handrail.cli.viewer.pages import page
from handrail.cli.viewer.sides import sides
from handrail.filters import assistant, user
from handrail.sessions import diff

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]


def said(path: Path, *texts: str) -> Path:
    """A session in which a user and an agent take turns."""
    made = [
        assistant(text, id=f"m{place}", agent="desk") if place % 2 else user(text, id=f"m{place}")
        for place, text in enumerate(texts)
    ]
    return books.write(path, *map(books.said, made))


def page_of(a: Path, b: Path) -> Path:
    target = a.with_name("difference.html")
    target.write_bytes(page("diff", sides(diff(a, b))))
    return target


async def kinds(opened: Page) -> list[str | None]:
    return [await each.get_attribute("aria-label") for each in await opened.locator(".pair").all()]


async def test_what_changed_stands_side_by_side_with_its_fields(tmp_path: Path, look: Look) -> None:
    a = said(tmp_path / "a.jsonl", "Where is it?", "In Porto.", "Thanks.")
    b = said(tmp_path / "b.jsonl", "Where is it?", "In Lisbon.", "Thanks.")
    opened = await look(page_of(a, b))
    changed = opened.locator(".pair.changed")
    await expect(changed.locator(".cell.left")).to_contain_text("In Porto.")
    await expect(changed.locator(".cell.right")).to_contain_text("In Lisbon.")
    await expect(changed.locator(".fields")).to_contain_text("content[0].text")
    assert await kinds(opened) == ["the same", "changed", "the same"]


async def test_what_is_in_one_alone_stands_on_its_side(tmp_path: Path, look: Look) -> None:
    a = said(tmp_path / "a.jsonl", "One", "Two", "Three", "Four")
    opened = await look(page_of(a, said(tmp_path / "b.jsonl", "One", "Two")))
    removed = opened.locator(".pair.removed")
    assert await removed.locator(".cell.left .text").all_inner_texts() == ["Three", "Four"]
    assert await removed.locator(".cell.right .text").count() == 0


async def test_long_runs_of_the_same_are_folded_and_keys_go_to_each_difference(tmp_path: Path, look: Look) -> None:
    texts = [f"Line {number}" for number in range(60)]
    a = said(tmp_path / "a.jsonl", *texts)
    b = said(tmp_path / "b.jsonl", *texts[:30], "Another line", *texts[31:])
    opened = await look(page_of(a, b))
    await expect(opened.get_by_role("button", name="28 the same")).to_be_visible()
    await opened.keyboard.press("j")
    await expect(opened.locator(".now")).to_contain_text("Another line")
    await expect(opened.locator(".now")).to_be_in_viewport()
    await opened.get_by_role("button", name="28 the same").click()
    await expect(opened.locator(".block").first).to_contain_text("Line 3")


async def test_two_that_mean_the_same_say_so(tmp_path: Path, look: Look) -> None:
    a, b = said(tmp_path / "a.jsonl", "One", "Two"), said(tmp_path / "b.jsonl", "One", "Two")
    opened = await look(page_of(a, b))
    await expect(opened.locator(".verdict")).to_have_text("✓ They mean the same.")
    await expect(opened.get_by_role("button", name="2 the same")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1440])
async def test_hostile_content_is_text_here_too(tmp_path: Path, look: Look, width: int) -> None:
    a, b = books.hostile(tmp_path / "a.jsonl"), books.priced(tmp_path / "b.jsonl")
    opened = await look(page_of(a, b), width=width)
    for _ in range(10):
        await opened.keyboard.press("j")
    assert await opened.title() == f"{a} and {b}"
    assert await opened.locator("body script:not(#data), img, iframe").count() == 1
    assert await opened.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await opened.screenshot(path=tmp_path / "difference.png")
