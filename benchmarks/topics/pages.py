"""The page of a long session: made, opened in a browser, and scrolled."""

import shutil
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.rows import Result, Scale, Target, row
from benchmarks.topics.files import exchange
from handrail.cli.viewer.pages import page
from handrail.cli.viewer.sheets import sheet

if TYPE_CHECKING:
    from playwright.sync_api import Page

MESSAGES = 20_000
SECONDS = 3.0
"""How long the wheel is turned."""
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
ARGUMENTS += ["--disable-background-networking", "--disable-component-update"]
DRAWN = "() => document.querySelectorAll('article').length > 5 ? performance.now() : null"
FRAMES = """() => { const mine = window.frames_at = []; const next = (at) => { if (window.frames_at !== mine) return;
  mine.push(at); requestAnimationFrame(next); }; requestAnimationFrame(next); }"""


@row("page")
def pages(scale: Scale) -> Iterator[Result]:
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no page was opened: there is no chromium here", file=sys.stderr)
        return
    with TemporaryDirectory() as folder:
        session, target, empty = Path(folder, "a.jsonl"), Path(folder, "a.html"), Path(folder, "b.html")
        exchange(session, MESSAGES)
        begin = perf_counter()
        target.write_bytes(page("page", sheet(session, "a")))
        made = perf_counter() - begin
        empty.write_bytes(b"<!doctype html><title>Nothing</title>")
        yield Result(f"page of {MESSAGES:,} messages: made", made, "s", made, Target(20, "s"))
        yield from _opened(chromium, target, empty, scale.rounds(12))


def _opened(chromium: str, target: Path, empty: Path, rounds: int) -> Iterator[Result]:
    from playwright.sync_api import sync_playwright

    def seconds(opened: "Page", path: Path) -> float:
        begin = perf_counter()
        opened.goto(path.as_uri())
        if path == target:
            opened.wait_for_function(DRAWN)
        return perf_counter() - begin

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        opened = browser.new_page(viewport={"width": 1440, "height": 900})
        pairs = [(seconds(opened, target), seconds(opened, empty)) for _ in range(rounds)]
        ours, floor = (statistics.median(each) for each in zip(*pairs, strict=True))
        what = f"page of {MESSAGES:,} messages: opened, rows drawn"
        yield Result(what, ours * 1e3, "ms", ours, Target(2, "s"), {"empty page": floor * 1e3})
        opened.goto(target.as_uri())
        still, moving = _frames(opened, 0), _frames(opened, 240)
        what = f"page of {MESSAGES:,} messages: scrolled by the wheel"
        yield Result(what, moving, "/s", moving, Target(50, "frames/s", at_least=True), {"standing still": still})
        browser.close()


def _frames(opened: "Page", wheel: int) -> float:
    """How many frames a second there are while the wheel is turned, by so many pixels each time."""
    opened.mouse.move(600, 500)
    opened.evaluate(FRAMES)
    begin = perf_counter()
    while perf_counter() - begin < SECONDS:
        if wheel:
            opened.mouse.wheel(0, wheel)
        opened.wait_for_timeout(25)
    at: list[float] = opened.evaluate("window.frames_at")
    return (len(at) - 1) / (at[-1] - at[0]) * 1e3
