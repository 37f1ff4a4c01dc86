"""A browser to look at pages with: Debian's Chromium, with an empty profile, of which no request leaves."""

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, async_playwright

from cli.viewer import books
from handrail.cli.viewer.pages import page
from handrail.cli.viewer.sheets import sheet

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-frame-rate-limit",  # no screen sets the pace
    "--disable-gpu-vsync",
]
Look: TypeAlias = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests of a worker."""
    chromium = shutil.which("chromium")
    if chromium is None:
        reason = "needs Chromium (Debian's package chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    async with async_playwright() as driver:
        found = await driver.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield found
        await found.close()


@pytest_asyncio.fixture(loop_scope="session")
async def look(browser: Browser) -> AsyncIterator[Look]:
    """Opens a page: `await look(path, width=390, scheme="dark", at="#m-a1")`. At the end nothing may have gone wrong
    in it: no error, no message on the console, no request for anything but the page."""
    wrong: list[str] = []
    contexts = []

    async def open_page(path: Path, *, width: int = 1440, scheme: Any = "light", at: str = "") -> Page:
        height = 844 if width < 600 else 900
        context = await browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)

        async def only_pages(route: Route) -> None:
            if route.request.url.startswith("file:") and route.request.is_navigation_request():
                await route.continue_()
                return
            wrong.append(f"asked for {route.request.url}")
            await route.abort()

        await context.route("**/*", only_pages)
        opened = await context.new_page()
        opened.on("console", lambda message: wrong.append(f"console: {message.text}"))
        opened.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        opened.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        await opened.goto(f"{path.as_uri()}{at}")
        return opened

    yield open_page
    for context in contexts:
        await context.close()
    assert wrong == []


def page_of(session: Path) -> Path:
    """The page of a session, beside it."""
    target = session.with_suffix(".html")
    target.write_bytes(page("page", sheet(session, session.name)))
    return target


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of three agents with handoffs, a sub-agent, a secret and an error."""
    return page_of(books.shop(tmp_path_factory.mktemp("shop") / "shop.session.jsonl"))


@pytest.fixture(scope="session")
def priced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a session with tokens, prices and notes of every kind."""
    return page_of(books.priced(tmp_path_factory.mktemp("priced") / "priced.session.jsonl"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a session that tries to be more than text."""
    return page_of(books.hostile(tmp_path_factory.mktemp("hostile") / "hostile.session.jsonl"))


@pytest.fixture
def pages(shop: Path, priced: Path, hostile: Path) -> dict[str, Path]:
    """All three by name."""
    return {"shop": shop, "priced": priced, "hostile": hostile}
