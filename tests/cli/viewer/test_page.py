"""The page of a session, driven in a browser."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from cli.viewer import books
from cli.viewer.conftest import Look, page_of
from handrail.filters import user

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]

SIDEWAYS = "document.documentElement.scrollWidth - innerWidth"
SEEN = "[...document.querySelectorAll('article')].map((row) => Number(row.dataset.place))"
NOW = "Number(document.querySelector('.now')?.dataset.place ?? -1)"


REFUSED = """async () => { try { return await (ACT); } catch (error) { return error.name; } }"""
INTRUSIONS = [
    "document.body.innerHTML = '<b>x</b>'",
    "document.createElement('script').textContent = 'x'",
    "fetch('https://example.invalid/')",
    "new Promise((done) => { const image = new Image(); image.onerror = () => done('blocked');"
    " image.src = 'https://example.invalid/x.png'; })",
    "new Promise((done) => { document.body.setAttribute('onclick', 'document.title = 1'); document.body.click();"
    " done(document.title === '1' ? 'ran' : 'blocked'); })",
]


async def keys(page: Page, *pressed: str) -> None:
    for key in pressed:
        await page.keyboard.press(key)


async def test_it_tells_the_verdict_the_totals_and_who_took_part(shop: Path, look: Look) -> None:
    page = await look(shop)
    await expect(page.locator(".verdict")).to_have_text("✓ intact, not sealed, 3 boundaries run again")
    totals = await page.locator(".totals > div").all_inner_texts()
    assert [text.replace("\n", " ") for text in totals] == [
        "messages 13",
        "model calls 6",
        "tool calls 4",
        "handoffs 2",
        "sub-agents 1",
        "errors 1",
    ]
    agents = await page.locator(".agent").all_inner_texts()
    assert agents == ["triage 4 messages", "billing 8 messages", "research in billing 1 message"]


async def test_a_card_says_what_crossed_what_stayed_and_why(shop: Path, look: Look) -> None:
    page = await look(shop)
    await keys(page, "h", "h")
    card = page.locator("article.boundary.now")
    await expect(card.locator("header")).to_contain_text("sub-agent 2 billing asks research")
    await expect(card.locator(".numbers").first).to_contain_text("1 crossed of 6 messages, 1 changed or made here")
    await expect(card.locator(".over")).to_contain_text("What is the rule for a double charge?")
    await expect(card.locator(".under")).to_contain_text("6: nothing crosses but the reason or the input")
    await expect(card).to_contain_text("A double charge is always refunded in full.")
    await card.locator("button.fold", has_text="filter").click()
    await expect(card.locator("table")).to_contain_text("none()")
    await expect(card.locator(".text.code").last).to_contain_text('"kind": "none"')


async def test_a_call_is_folded_with_its_result_and_unfolds_to_both(shop: Path, look: Look) -> None:
    page = await look(shop)
    call = page.locator(".use", has_text="find_invoice").first
    await expect(call.locator(".outcome")).to_contain_text("12345678901234567890")
    await call.locator("button.fold").click()
    assert await call.locator(".text.code").all_inner_texts() == [
        '{\n  "invoice": "1042"\n}',
        '{\n  "invoice": "1042",\n  "total": 12345678901234567890,\n  "status": "paid"\n}',
    ]


async def test_reasoning_and_secrets_are_folded_and_errors_are_seen(shop: Path, look: Look) -> None:
    page = await look(shop)
    body = page.locator("#feed")
    await expect(body).not_to_contain_text("The customer speaks of a double charge")
    await expect(body).not_to_contain_text("4929 8801")
    await expect(page.locator(".use.bad .outcome")).to_contain_text("there is no invoice 0")
    await page.locator("button.fold", has=page.locator(".label", has_text="reasoning")).click()
    await expect(page.locator(".thought")).to_contain_text("The customer speaks of a double charge")
    await page.locator(".use", has_text="find_payments").locator("button.fold").click()
    await expect(page.locator(".use", has_text="find_payments").locator(".label.secret")).to_have_text("secret")
    await expect(body).to_contain_text("4929 8801")


async def test_model_calls_show_tokens_and_cost_and_the_chart_leads_to_them(priced: Path, look: Look) -> None:
    page = await look(priced)
    spent = page.locator(".spent").nth(1)
    await expect(spent).to_contain_text("gpt-4o-mini · 530 in (300 cached) · 70 out · $0.0")
    label = await page.locator(".chart svg").get_attribute("aria-label")
    assert label is not None
    assert "the largest is call 60 with 8,260" in label
    box = await page.locator(".chart svg").bounding_box()
    assert box is not None
    await page.mouse.click(box["x"] + box["width"] - 2, box["y"] + 60)
    await expect(page.locator(".now")).to_contain_text("Answer 59.")


async def test_notes_tell_state_audit_edits_and_failures(priced: Path, look: Look) -> None:
    page = await look(priced)
    await keys(page, "G")
    feed = page.locator("#feed")
    for text in ("approval, call c9", "todo, count", "2 removed, 1 inserted: compaction", "ModelUnavailable: 503"):
        await expect(feed).to_contain_text(text)
    await page.locator("button.fold", has_text="todo, count").click()
    await expect(feed).to_contain_text("9007199254740993")


async def test_search_finds_what_is_folded_and_moves_from_match_to_match(shop: Path, look: Look) -> None:
    page = await look(shop)
    await keys(page, "/")
    await page.keyboard.type("REFUNDED IN")
    await expect(page.locator("#found")).to_have_text("4 places")
    await keys(page, "Enter")
    await expect(page.locator("#found")).to_have_text("1 of 4")
    assert await page.locator(".now mark").first.inner_text() == "refunded in"
    await keys(page, "Enter", "Enter", "Shift+Enter")
    await expect(page.locator("#found")).to_have_text("2 of 4")
    await keys(page, "Escape")
    await expect(page.locator("mark")).to_have_count(0)
    await keys(page, "/")
    await page.keyboard.type("no such words")
    await expect(page.locator("#found")).to_have_text("nothing found")


async def test_keys_move_fold_and_help(shop: Path, look: Look) -> None:
    page = await look(shop)
    await keys(page, "j", "j")
    assert await page.evaluate(NOW) == 2
    assert await page.evaluate("document.activeElement.dataset.place") == "2"
    await keys(page, "k", "h")
    assert await page.evaluate(NOW) == 3
    await keys(page, "e", "o")
    await expect(page.locator(".now .thought")).to_be_visible()
    await keys(page, "o")
    await expect(page.locator(".now .thought")).to_have_count(0)
    await keys(page, "?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await keys(page, "Escape", "O")
    await expect(page.locator("[aria-expanded=false]")).to_have_count(0)


async def test_an_agent_chosen_is_shown_alone_until_everyone_is(shop: Path, look: Look) -> None:
    page = await look(shop)
    before = len(await page.evaluate(SEEN))
    await page.locator(".agent", has_text="research").click()
    assert await page.locator("article.message .who").all_inner_texts() == ["research"]
    await page.get_by_role("button", name="Show everyone").click()
    assert len(await page.evaluate(SEEN)) == before


async def test_a_link_leads_to_its_message(priced: Path, look: Look) -> None:
    page = await look(priced, at="#m-a37")
    await expect(page.locator(".now")).to_contain_text("Answer 37.")
    await expect(page.locator(".now")).to_be_in_viewport()
    await page.locator(".now .anchor").click()
    assert await page.evaluate("location.hash") == "#m-a37"


async def test_light_and_dark_follow_the_system_and_the_button(shop: Path, look: Look) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    dark = await look(shop, scheme="dark")
    night = await dark.evaluate(back)
    await keys(dark, "t")
    day = await dark.evaluate(back)
    light = await look(shop)
    assert (night, await light.evaluate(back)) == ("rgb(20, 23, 27)", day)
    await light.get_by_role("button", name="Dark").click()
    assert await light.evaluate(back) == night


async def test_on_paper_every_message_stands_and_the_tools_do_not(priced: Path, look: Look, tmp_path: Path) -> None:
    page = await look(priced)
    assert len(await page.evaluate(SEEN)) < 60
    await page.emulate_media(media="print")
    await expect(page.locator("#bar")).to_be_hidden()
    await expect(page.locator("article")).to_have_count(126)
    await page.pdf(path=tmp_path / "paper.pdf")
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")
    await page.emulate_media(media="screen")
    await expect(page.locator("article").nth(60)).to_have_count(0)


async def test_hostile_content_is_text_and_runs_nothing(hostile: Path, look: Look) -> None:
    page = await look(hostile)
    await keys(page, "O")
    for _ in range(40):
        await keys(page, "j", "j")
        assert await page.title() == books.HOSTILE[0]
        assert await page.locator("body script:not(#data), img, iframe, base, object, embed").count() == 1
    await keys(page, "g")
    await expect(page.locator("article .text").first).to_have_text(books.HOSTILE[0])
    assert await page.locator("a:not([href^='#'])").count() == 0


async def test_signs_that_would_not_be_seen_are_named(hostile: Path, look: Look) -> None:
    page = await look(hostile)
    found: set[str] = set()
    for _ in range(len(books.HOSTILE)):
        found |= set(await page.locator(".sign").all_inner_texts())
        await keys(page, *["j"] * 3)
    assert found >= {"U+202E", "U+202C", "U+2067", "U+200B", "U+FEFF", "U+2028", "␛", "␀", "␇", "␡", "U+E0041"}


async def test_joins_that_a_script_or_a_picture_needs_are_left_alone(tmp_path: Path, look: Look) -> None:
    kept = ["می\u200cخواهم", "\U0001f469\u200d\U0001f4bb", "क्\u200dष", "❤\ufe0f", "1\ufe0f\u20e3"]
    named = ["pass\u200dword", "a\u200cb", "x\ufe01\ufe02"]
    records = [books.said(user(text, id=f"m{place}")) for place, text in enumerate([*kept, *named])]
    page = await look(page_of(books.write(tmp_path / "a.jsonl", *records)))
    assert await page.locator("article .text").all_inner_texts() == [
        *kept,
        "passU+200Dword",
        "aU+200Cb",
        "xU+FE01U+FE02",
    ]


async def test_times_and_numbers_that_no_calendar_has_keep_no_page_from_opening(tmp_path: Path, look: Look) -> None:
    times = [10**30, -(10**18), 2**62, -1, 1]
    records = [books.said(user("When?", id=f"m{place}", created_at=at)) for place, at in enumerate(times)]
    page = await look(page_of(books.write(tmp_path / "a.jsonl", *records)))
    await expect(page.locator("article")).to_have_count(5)


async def test_millions_of_characters_are_shown_piece_by_piece_and_found(hostile: Path, look: Look) -> None:
    page = await look(hostile, at="#m-huge")
    text = page.locator("#m-huge .text")
    assert len(await text.inner_text()) < 5000
    await page.locator("#m-huge .more").click()
    assert 50_000 < len(await text.inner_text()) < 100_000
    await keys(page, "/")
    await page.keyboard.type("needle")
    await keys(page, "Enter")
    await expect(page.locator("#m-huge mark")).to_be_in_viewport()
    assert len(await text.inner_text()) < 5000


async def test_the_policy_holds_against_whoever_gets_into_the_page(shop: Path, browser: Browser) -> None:
    page = await browser.new_page()
    asked: list[str] = []
    page.on("requestfinished", lambda request: asked.append(request.url))
    await page.goto(shop.as_uri())
    names = [await page.evaluate(REFUSED.replace("ACT", act)) for act in INTRUSIONS]
    await page.close()
    assert names == ["TypeError", "TypeError", "TypeError", "blocked", "TypeError"]
    assert asked == [shop.as_uri()]


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("session", ["shop", "priced", "hostile"])
async def test_nothing_stands_out_at_the_side(
    pages: dict[str, Path], look: Look, tmp_path: Path, session: str, scheme: str, width: int
) -> None:
    page = await look(pages[session], width=width, scheme=scheme)
    for pressed in ("g", "O", "G"):
        await keys(page, pressed)
        assert await page.evaluate(SIDEWAYS) <= 0
        await page.screenshot(path=tmp_path / f"{session}-{width}-{scheme}-{pressed}.png")
    assert (tmp_path / f"{session}-{width}-{scheme}-G.png").stat().st_size > 5000


CONTRAST = """() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[0-9.]+/g).map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const probe = document.querySelector("#head").appendChild(document.createElement("span"));
  const paint = (colour, name) => {
    probe.style.setProperty("color", colour);
    probe.dataset.colour = name;
    return light(getComputedStyle(probe).color);
  };
  const colours = ["var(--ink)", "var(--dim)", "var(--link)", "var(--good)", "var(--bad)", "var(--warm)"];
  const found = [];
  for (const back of ["var(--paper)", "var(--raised)"]) {
    const paper = paint(back, "none");
    for (const colour of colours) found.push([paint(colour, "none"), paper]);
    for (let name = 0; name < 8; name += 1) found.push([paint("var(--agent)", name), paper]);
  }
  return Math.min(...found.map(([one, other]) => (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_colour_of_words_can_be_read(shop: Path, look: Look, scheme: str) -> None:
    page = await look(shop, scheme=scheme)
    assert await page.evaluate(CONTRAST) >= 4.5


async def test_an_empty_session_says_so(tmp_path: Path, look: Look) -> None:
    page = await look(page_of(books.write(tmp_path / "empty.session.jsonl")))
    await expect(page.locator("#feed")).to_have_text("Nothing was said in this session.")
    await keys(page, "j", "h", "G", "o", "O")


REACHED = """async () => {
  const seen = new Set();
  let most = 0;
  // From the last row that is drawn to the next: heights above may be measured anew meanwhile.
  for (let last = ""; ; ) {
    const rows = [...document.querySelectorAll("article")];
    most = Math.max(most, rows.length);
    for (const row of rows) seen.add(row.dataset.place);
    const end = rows.at(-1);
    if (end.dataset.place === last) return [seen.size, most];
    last = end.dataset.place;
    end.scrollIntoView({ block: "start", behavior: "instant" });
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
  }
}"""


LEAPT = """async () => {
  const places = [];
  let most = 0;
  for (let before = -1; scrollY > before; ) {
    const rows = [...document.querySelectorAll("article")].map((row) => Number(row.dataset.place));
    most = Math.max(most, rows.length);
    places.push(rows[0], rows.at(-1));
    before = scrollY;
    scrollBy({ top: 30 * innerHeight, behavior: "instant" });
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
  }
  return [places, most];
}"""


async def test_of_a_long_session_few_messages_are_drawn_and_all_are_reached(tmp_path: Path, look: Look) -> None:
    page = await look(page_of(books.long(tmp_path / "long.session.jsonl", 2_000)))
    seen, most = await page.evaluate(REACHED)
    assert (seen, most < 120) == (1_500, True)


@pytest.mark.slow
async def test_twenty_thousand_messages_are_leapt_through_to_the_last_and_searched(tmp_path: Path, look: Look) -> None:
    page = await look(page_of(books.long(tmp_path / "long.session.jsonl", 20_000)))
    places, most = await page.evaluate(LEAPT)
    assert (places[0], places[-1], most < 120) == (0, 14_999, True)
    assert places == sorted(places)
    await keys(page, "/")
    await page.keyboard.type("milestone 19.")
    await keys(page, "Enter")
    await expect(page.locator(".now mark")).to_be_in_viewport()
    await expect(page.locator("#found")).to_have_text("1 of 1")
