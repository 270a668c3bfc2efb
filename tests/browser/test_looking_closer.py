"""Looking closer: tables that search and page, and plots that share a crosshair and a stretch of time."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.checks import Check
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.page import build_page, write_html
from tests.browser.chromium import Tab
from tests.browser.test_pages import expect_silence, open_page
from tests.reports.conftest import two_flow_tables

NUM_ROWS = 60
SHOWN = """[...document.querySelectorAll("#checks tbody tr")]
  .filter((row) => row.offsetHeight).map((row) => row.cells[1].textContent)"""
LABELS = (
    "[...document.querySelectorAll('.cross + text')].map((text) => [text.getAttribute('visibility'), text.textContent])"
)
TRANSFORMS = "[...document.querySelectorAll('g.plot')].map((group) => group.getAttribute('transform'))"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page with 60 checks, and three plots over 100 us: throughput, queues, and goodput under a fault."""
    faults: Mapping[str, np.ndarray] = {
        "description": np.array(["flap tor0:swp3 -> tor1:swp3"], object),
        "begin_ps": np.array([20_000_000]),
        "end_ps": np.array([40_000_000]),
        **{f"goodput_{when}_bps": np.full(1, 10**11) for when in ("before", "during", "after")},
    }
    goodput = {
        "begin_ps": np.array([0, 20_000_000]),
        "end_ps": np.array([20_000_000, 100_000_000]),
        "goodput_bps": np.array([10**11, 5 * 10**10]),
    }
    checks = tuple(Check(rule="expect.drops", subject=f"port {number}") for number in range(NUM_ROWS))
    tables = {**two_flow_tables(), "faults": faults, "goodput": goodput}
    record = RunRecord(kind="sim run", run={"name": "closer"}, tables=tables, checks=checks)
    return write_html(build_page([record], title="closer"), tmp_path_factory.mktemp("closer") / "page.html")


def test_a_long_table_is_paged_and_searched(tab: Tab, page: Path) -> None:
    """25 rows of 60; every word has to be in a row, 5 is in 15 of them; a word that no row has leaves none."""
    open_page(tab, page)
    assert tab.evaluate(SHOWN) == [f"port {number}" for number in range(25)]
    tab.click("#checks .tools button:last-of-type")
    assert tab.evaluate(SHOWN) == [f"port {number}" for number in range(25, 50)]
    assert tab.evaluate("document.querySelector('#checks output').value") == "26 to 50 of 60 rows"
    search = "document.querySelector('#checks input')"
    for text, expected in (
        ("PORT 5", [f"port {number}" for number in range(NUM_ROWS) if "5" in str(number)]),
        ("port none", []),
    ):
        tab.evaluate(f"{search}.value = '{text}'; {search}.dispatchEvent(new Event('input'))")
        assert tab.evaluate(SHOWN) == expected
    assert tab.evaluate("document.querySelector('#checks output').value") == "no row"
    expect_silence(tab, page)


def test_all_pages_of_a_table_are_printed(tab: Tab, page: Path) -> None:
    """Paper has no buttons."""
    open_page(tab, page)
    tab.set_media(media="print")
    assert len(tab.evaluate(SHOWN)) == NUM_ROWS
    assert tab.evaluate("[...document.querySelectorAll('.tools')].every((one) => !one.offsetHeight)")
    tab.set_media()


def test_a_sorted_table_begins_at_its_first_page_again(tab: Tab, page: Path) -> None:
    """What is shown is the head of the new order."""
    open_page(tab, page)
    tab.click("#checks .tools button:last-of-type")
    tab.evaluate("document.querySelector('#checks thead th:nth-child(2) button').click()")
    assert tab.evaluate(SHOWN)[0] == "port 9"


def test_plots_over_time_share_a_crosshair(tab: Tab, page: Path) -> None:
    """The pointer in the middle of one plot is at 50 us in all."""
    open_page(tab, page)
    tab.evaluate(pointer("pointermove", 0.5))
    labels = tab.evaluate(LABELS)
    assert [seen for seen, _ in labels] == ["visible"] * 3
    assert [text for _, text in labels] == ["50 us"] * 3
    tab.evaluate("document.querySelector('g.plot').closest('.figure').dispatchEvent(new PointerEvent('pointerleave'))")
    assert [seen for seen, _ in tab.evaluate(LABELS)] == ["hidden"] * 3


def test_a_drag_shows_its_stretch_of_time_in_every_plot(tab: Tab, page: Path) -> None:
    """From a quarter to a half of the time: four times as wide, in all; a button and Escape show all of it again."""
    open_page(tab, page)
    drag = f"{pointer('pointerdown', 0.25)}; {pointer('pointermove', 0.5)}; {pointer('pointerup', 0.5)}"
    tab.evaluate(drag)
    assert [round(float(text.split("scale(")[1].split()[0]), 3) for text in tab.evaluate(TRANSFORMS)] == [4.0] * 3
    ticks = "[...document.querySelectorAll('.figure > g:not([class]) text')].map((text) => text.textContent)"
    assert tab.evaluate(ticks)[:6] == ["25 us", "30 us", "35 us", "40 us", "45 us", "50 us"]
    tab.click(".reset-time:not([hidden])")
    assert tab.evaluate(ticks) == []
    tab.evaluate(drag)
    tab.evaluate("document.querySelector('g.plot').closest('.figure').focus()")
    tab.press("Escape", 27)
    assert tab.evaluate("[...document.querySelectorAll('.reset-time')].every((one) => one.hidden)")
    expect_silence(tab, page)


def test_keys_show_less_and_more_of_the_time(tab: Tab, page: Path) -> None:
    """Plus halves what is shown, an arrow moves it by a quarter, minus doubles it."""
    open_page(tab, page)
    tab.evaluate("document.querySelector('g.plot').closest('.figure').focus()")
    for key, code in (("+", 187), ("+", 187), ("ArrowRight", 39)):
        tab.press(key, code)
    assert "scale(4 1)" in tab.evaluate(TRANSFORMS)[0]
    for _ in range(3):  # the third, for the stretch was not in the middle
        tab.press("-", 189)
    assert "scale(1 1)" in tab.evaluate(TRANSFORMS)[0]


def pointer(kind: str, share: float) -> str:
    """Return a script that sends an event of the pointer at a share of the first plot's time."""
    return f"""(() => {{
      const group = document.querySelector("g.plot"), figure = group.closest(".figure");
      const box = figure.getBoundingClientRect();
      const [left, right] = [Number(group.dataset.left), Number(group.dataset.right)];
      const x = box.left + (left + {share} * (right - left)) / figure.viewBox.baseVal.width * box.width;
      figure.dispatchEvent(new PointerEvent("{kind}", {{clientX: x, clientY: box.top + 100, bubbles: true}}));
    }})()"""
