"""Every kind of page in a real browser: silent, safe and usable, on a desktop, a telephone, paper and in the dark."""

from pathlib import Path

import pytest

from fabrictune.reports.page import SECTIONS, open_runs
from tests.browser.chromium import Tab
from tests.browser.conftest import Pages
from tests.browser.pages import BLOCK, KINDS, SEVERAL, make_record

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "build" / "pages"  # of the last run, for a look; not in the repository
ALL = (*KINDS, *SEVERAL, BLOCK)
PHONE_PX = 400
A4_PX = 794

RAN = "window.hasRun = false; window.ran = () => { window.hasRun = true; }; window.alert = window.ran;"
# Darkest against brightest: contrast of the page's text with its ground, as WCAG 2.1 defines it.
CONTRAST = """(() => {
  const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number).map((value) => value / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = light(getComputedStyle(document.body).backgroundColor);
  const texts = [...document.querySelectorAll("h1, h2, p, a, th, td, caption, summary, figcaption, dt, dd, text")]
    .filter((element) => element.textContent.trim());
  const inks = texts.map((element) => light(getComputedStyle(element)[element.tagName === "text" ? "fill" : "color"]));
  const ratio = (ink) => (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
  return {ground, lowest: Math.min(...inks.map(ratio))};
})()"""
# Texts of drawings that reach over the edge of theirs.
CUT_OFF = """[...document.querySelectorAll("svg.figure text")].filter((text) => {
  const [box, view] = [text.getBBox(), text.ownerSVGElement.viewBox.baseVal];
  return box.x < -0.5 || box.y < -0.5 || box.x + box.width > view.width + 0.5 || box.y + box.height > view.height + 0.5;
}).map((text) => text.textContent)"""
# What reaches over the right edge of the window, and does not scroll in a frame of its own.
TOO_WIDE = """[...document.querySelectorAll("body *")]
  .filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".scroll, figure"))
  .map((element) => `${element.tagName} ${element.textContent.trim().slice(0, 40)}`).slice(0, 3)"""


def open_page(tab: Tab, path: Path) -> None:
    """Open a page, and expect that the browser has nothing to say of it and asks nobody for anything."""
    tab.open(path.as_uri())
    expect_silence(tab, path)


def expect_silence(tab: Tab, path: Path) -> None:
    """Expect no word on the console, no error, no request but that for the page, no dialog."""
    tab.evaluate("0")  # what happened before has been told by now
    assert tab.happened("Runtime.consoleAPICalled") == []
    assert [error["exceptionDetails"]["text"] for error in tab.happened("Runtime.exceptionThrown")] == []
    assert [entry["entry"]["text"] for entry in tab.happened("Log.entryAdded")] == []
    assert [request["request"]["url"] for request in tab.happened("Network.requestWillBeSent")] == [path.as_uri()]
    assert tab.happened("Page.javascriptDialogOpening") == []


def test_every_section_is_on_a_page() -> None:
    """A kind of page that nobody opens here would be tested by nobody."""
    runs = [open_runs([make_record(kind)], []) for kind in KINDS]
    runs.append(open_runs([make_record("sim run")] * 2, []))
    runs.append(open_runs([make_record("sim run", seed=seed) for seed in range(3)], []))
    assert [make.__name__ for make in SECTIONS if not any(make(of_kind) for of_kind in runs)] == []


@pytest.mark.parametrize("kind", ALL)
def test_a_page_opens_in_silence_and_fits_every_window(tab: Tab, pages: Pages, kind: str) -> None:
    """Nothing is logged, thrown or fetched; no sideways scroll on a telephone; dark is dark, and both are legible."""
    open_page(tab, pages[kind])
    assert tab.evaluate("document.querySelector('h1').getBoundingClientRect().height") > 0
    light = tab.evaluate(CONTRAST)
    PICTURES.mkdir(parents=True, exist_ok=True)
    tab.screenshot(PICTURES / f"{pages[kind].stem}.png")
    tab.set_window(PHONE_PX)
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE_PX, tab.evaluate(TOO_WIDE)
    tab.set_media(scheme="dark")
    dark = tab.evaluate(CONTRAST)
    tab.screenshot(PICTURES / f"{pages[kind].stem}-dark-phone.png")
    assert (light["ground"] > 0.9, dark["ground"] < 0.1) == (True, True)
    assert min(light["lowest"], dark["lowest"]) >= 4.5, "WCAG 2.1, level AA"
    expect_silence(tab, pages[kind])


def test_no_label_of_a_drawing_is_cut_off(tab: Tab, pages: Pages) -> None:
    """A tick at the edge lost its last digit, "120" was "12("; every text of every drawing lies within it."""
    for kind in KINDS:
        open_page(tab, pages[kind])
        tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert tab.evaluate(CUT_OFF) == [], kind


def test_names_run_nothing(tab: Tab, hostile_pages: Pages) -> None:
    """Names of markup in every table, finding and title, and a browser told to disregard the policy: they stay text."""
    tab.call("Page.setBypassCSP", enabled=True)
    script = tab.call("Page.addScriptToEvaluateOnNewDocument", source=RAN)["identifier"]
    for kind in ALL:
        open_page(tab, hostile_pages[kind])
        assert tab.evaluate("[hasRun, document.scripts.length, document.images.length]") == [False, 1, 0], kind
        assert "<script>ran()</script>\\u202e" in tab.evaluate("document.body.textContent"), kind
        tab.set_window(PHONE_PX)
        assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE_PX, (kind, tab.evaluate(TOO_WIDE))
        tab.set_window(1280)
    tab.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def test_the_policy_forbids_what_is_not_the_pages_own(tab: Tab, pages: Pages) -> None:
    """A script and a picture that are put into the page all the same: the browser refuses both, and says so."""
    open_page(tab, pages["sim run"])
    refused = tab.evaluate(
        """new Promise((resolve) => {
          const seen = new Set();
          document.addEventListener("securitypolicyviolation", (event) => {
            seen.add(event.effectiveDirective);
            if (seen.size === 2) resolve([...seen].sort());
          });
          const script = document.createElement("script");
          script.textContent = "window.hasRun = true";
          document.body.append(script);
          document.body.append(Object.assign(new Image(), {src: "https://pages.invalid/"}));
        })"""
    )
    assert refused == ["img-src", "script-src-elem"]
    assert tab.evaluate("window.hasRun") is None


def test_a_heading_sorts_its_table(tab: Tab, pages: Pages) -> None:
    """A click puts the greatest first, a second one the smallest; Enter does the same."""
    open_page(tab, pages["rdma import"])
    table = "#tables table:not(.fixed)"
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    number = tab.evaluate(f"1 + [...document.querySelectorAll('{table} thead th')].findIndex((one) => one.className)")
    heading = f"{table} th:nth-child({number})"
    column = f"[...document.querySelectorAll('{table} tbody td:nth-child({number})')].map((one) => +one.dataset.sort)"
    rows = tab.evaluate(column)
    assert len(set(rows)) > 2
    tab.click(heading)
    assert tab.evaluate(column) == sorted(rows, reverse=True)
    assert tab.evaluate(f"document.querySelector('{heading}').getAttribute('aria-sort')") == "descending"
    tab.evaluate(f"document.querySelector('{heading} button').focus()")
    tab.press("Enter", 13)
    assert tab.evaluate(column) == sorted(rows)


def test_what_is_folded_opens_and_contents_lead_to_their_section(tab: Tab, pages: Pages) -> None:
    """Every fold opens at a click on its line; every link of the contents brings its section to the top, below them."""
    open_page(tab, pages["sim run"])
    tab.click("main details > summary")
    assert tab.evaluate("document.querySelector('main details').open") is True
    anchors = tab.evaluate("[...document.querySelectorAll('nav a')].map((link) => link.getAttribute('href'))")
    assert len(anchors) > 8
    for anchor in anchors:
        assert tab.evaluate(f"document.querySelectorAll('{anchor}').length") == 1
    tab.click(f"nav a[href='{anchors[3]}']")
    assert tab.evaluate("location.hash") == anchors[3]
    contents = tab.evaluate("document.querySelector('nav').getBoundingClientRect().bottom")
    assert 0 < contents < 40, "they stay in sight"
    assert abs(tab.evaluate(f"document.querySelector('{anchors[3]}').getBoundingClientRect().top") - contents) < 8


def test_a_block_turns_filters_and_colours(tab: Tab, pages: Pages) -> None:
    """Each control changes the drawing, and reset brings the first one back."""
    open_page(tab, pages[BLOCK])
    picture = "document.getElementById('cubes').toDataURL()"
    seen = [tab.evaluate(picture)]
    for name, value in (("colour", "0"), ("dp", "1"), ("dp", "")):
        select = f"controls.elements.{name}"
        tab.evaluate(f"{select}.value = '{value}'; {select}.dispatchEvent(new Event('change', {{bubbles: true}}))")
        seen.append(tab.evaluate(picture))
    tab.evaluate("document.getElementById('cubes').focus()")
    for key, code in (("ArrowLeft", 37), ("+", 187)):
        tab.press(key, code)
        seen.append(tab.evaluate(picture))
    assert len(set(seen)) == 5, "all ranks again is the picture of before"
    tab.click("button[type=reset]")
    tab.evaluate("new Promise((resolve) => setTimeout(resolve))")
    assert tab.evaluate(picture) == seen[0]
    expect_silence(tab, pages[BLOCK])


@pytest.mark.parametrize("kind", ["sim run", "two runs", "sim sweep", BLOCK])
def test_a_page_prints_whole(tab: Tab, pages: Pages, kind: str) -> None:
    """On A4, from a browser that prefers dark: on white, without contents, and no table cut off at the edge."""
    tab.set_window(A4_PX)
    tab.set_media(media="print", scheme="dark")
    open_page(tab, pages[kind])
    assert tab.evaluate("document.documentElement.scrollWidth") <= A4_PX + 1, (
        "one for text that only readers aloud have"
    )
    assert tab.evaluate(
        "[...document.querySelectorAll('nav')].every((one) => getComputedStyle(one).display === 'none')"
    )
    tab.set_media()
    assert 1 <= tab.num_printed_pages() <= 20


def test_a_page_is_whole_without_scripts(tab: Tab, pages: Pages) -> None:
    """Scripts forbidden: the same words in the same order, but for the names of buttons."""
    for kind in ("sim run", "two runs", "sim sweep"):
        open_page(tab, pages[kind])
        tab.evaluate("document.querySelectorAll('.tools').forEach((one) => one.remove())")
        words = tab.evaluate("document.querySelector('main').innerText")
        tab.call("Emulation.setScriptExecutionDisabled", value=True)
        open_page(tab, pages[kind])
        assert tab.evaluate("document.querySelector('main').innerText") == words
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
