"""The filter of a page: what is of another host, rail or job than the chosen one is left out of tables and drawings."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.records import RunRecord
from fabrictune.reports.page import build_page, write_html
from tests.browser.chromium import Tab
from tests.browser.test_pages import expect_silence, open_page
from tests.reports.conftest import two_flow_finding, two_flow_tables

SLOWEST = """[...document.querySelectorAll("#completion > .scroll tbody tr")]
  .filter((row) => row.offsetHeight).map((row) => row.cells[0].textContent)"""
BUSIEST = """[...document.querySelectorAll("#loads > .scroll tbody tr")]
  .map((row) => [row.cells[0].textContent, row.offsetHeight > 0])"""
RAILS = "[...document.querySelectorAll('#rails g')].map((row) => getComputedStyle(row.firstElementChild).opacity)"
COUNT = "document.querySelector('.filter output').value"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of the two flows, each on a rail and of a job of its own."""
    tables = two_flow_tables()
    fabric = tables["fabric"]
    rail = np.where(fabric["nic"] >= 0, fabric["nic"] % 2, -1)
    tables |= {"fabric": {**fabric, "rail": rail}}
    tables["transfers"] = {**tables["transfers"], "part": np.array(["training", "finetune"], object)}
    ends = ["tor0:swp3 -> tor1:swp3", *["h0:eth0 -> tor0:swp1", "h1:eth0 -> tor0:swp2"] * 20]
    findings = tuple(two_flow_finding(entity=entity) for entity in ends)
    record = RunRecord(kind="sim run", run={"name": "filtered"}, tables=tables, findings=findings)
    return write_html(build_page([record], title="filtered"), tmp_path_factory.mktemp("filtered") / "page.html")


def choose(tab: Tab, kind: str, name: str) -> None:
    """Choose a name of a kind, as a reader does."""
    tab.evaluate(
        f"""(() => {{
          const select = document.querySelector(".filter select[aria-label={kind}]");
          select.value = [...select.options].find((one) => one.textContent === "{name}").value;
          select.dispatchEvent(new Event("change"));
        }})()"""
    )


def test_rows_of_other_hosts_rails_and_jobs_are_left_out(tab: Tab, page: Path) -> None:
    """Two queue pairs: a host at either end, the rail of both ends and the job leave one of them."""
    open_page(tab, page)
    slow, fast = "h1:eth0 \u2192 h3:eth0", "h0:eth0 \u2192 h2:eth0"
    assert tab.evaluate(SLOWEST) == [slow, fast]
    for kind, name, left in (("Host", "h2", fast), ("Rail", "rail 1", slow), ("Job", "training", fast)):
        choose(tab, kind, name)
        assert tab.evaluate(SLOWEST) == [left], kind
        assert tab.evaluate(COUNT).endswith("rows and marks left out")
        tab.click(".filter button")
        assert tab.evaluate(SLOWEST) == [slow, fast]
        assert tab.evaluate(COUNT) == ""
    expect_silence(tab, page)


def test_choices_are_combined(tab: Tab, page: Path) -> None:
    """Host h0 is on rail 0: with rail 1 no queue pair is left, and the links between the ToRs still are."""
    open_page(tab, page)
    choose(tab, "Host", "h0")
    choose(tab, "Rail", "rail 1")
    assert tab.evaluate(SLOWEST) == []
    shown = dict(tab.evaluate(BUSIEST))
    assert shown["tor0:swp3 \u2192 tor1:swp3"], "it is of no host, and of no rail alone"
    assert not shown["h0:eth0 \u2192 tor0:swp1"]


def test_shapes_of_others_fade(tab: Tab, page: Path) -> None:
    """The row of the other rail is hardly seen; the bar of choices stays in sight while one holds."""
    open_page(tab, page)
    assert set(tab.evaluate(RAILS)) == {"1"}
    choose(tab, "Rail", "rail 1")
    assert set(tab.evaluate(RAILS)) == {"0.08", "1"}
    assert tab.evaluate("getComputedStyle(document.querySelector('.filter')).position") == "sticky"


def test_curves_of_others_fade(tab: Tab, page: Path) -> None:
    """Of the throughput of port 8, of NIC 0, and of their mean, the one of NIC 0 is of host h0."""
    open_page(tab, page)
    choose(tab, "Host", "h1")
    curves = "[...document.querySelectorAll('#rates .plot .series')].map((curve) => getComputedStyle(curve).opacity)"
    assert tab.evaluate(curves) == ["1", "0.08", "1"]


def test_the_filter_is_used_by_keys(tab: Tab, page: Path) -> None:
    """An arrow on a list chooses its next name."""
    open_page(tab, page)
    tab.evaluate("document.querySelector('.filter select[aria-label=Job]').focus()")
    tab.press("ArrowDown", 40)
    assert tab.evaluate("document.activeElement.selectedOptions[0].textContent") == "finetune"
    assert tab.evaluate(SLOWEST) == ["h1:eth0 \u2192 h3:eth0"]


def test_a_long_table_pages_through_what_is_left(tab: Tab, page: Path) -> None:
    """Of 40 findings after the first 20 are of host h0; the search is within them."""
    open_page(tab, page)
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    rows = "document.querySelector('#findings output').value"
    assert tab.evaluate(rows) == "1 to 25 of 40 rows"
    choose(tab, "Host", "h0")
    assert tab.evaluate(rows) == "1 to 20 of 20 rows"
    search = "document.querySelector('#findings input')"
    tab.evaluate(f"{search}.value = 'h1'; {search}.dispatchEvent(new Event('input'))")
    assert tab.evaluate(rows) == "no row"
