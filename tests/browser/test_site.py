"""The site is built without a warning, links lead somewhere, and a reader's browser asks nobody else for anything."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.chromium import Tab
from tests.browser.test_pages import PHONE_PX

pytest.importorskip("sphinx")
pytest.importorskip("furo")
pytest.importorskip("myst_parser")

ROOT = Path(__file__).parents[2]
SAMPLE = ("index", "tutorials/first-answers", "how-to/index", "how-to/write-a-scenario", "commands/ecmp")


def build(out: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Build the site, or check it, as `make site` does."""
    command = [sys.executable, "-m", "docs.site", "--out", str(out), *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site's folder after all pages were read and all links followed."""
    out = tmp_path_factory.mktemp("site") / "site"
    checked = build(out, "--check")
    assert (checked.returncode, checked.stderr) == (0, "")
    return out


def visit(tab: Tab, page: Path) -> None:
    """Open a page of the site: nothing on the console, only files of the site, no sideways scroll on a telephone."""
    tab.set_window(PHONE_PX)
    tab.open(page.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE_PX, page
    asked = [request["request"]["url"] for request in tab.happened("Network.requestWillBeSent")]
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert [entry["entry"]["text"] for entry in tab.happened("Log.entryAdded")] == []
    assert tab.happened("Runtime.exceptionThrown") == []


def test_no_page_warns_and_some_open_in_a_browser(site: Path, tab: Tab) -> None:
    """A start, a tutorial, a list, a how-to and a command; the search finds a word of another page."""
    written = build(site, *(f"{place}.md" for place in SAMPLE))
    assert (written.returncode, written.stderr) == (0, "")
    for place in SAMPLE:
        visit(tab, site / f"{place}.html")
    tab.open(f"{(site / 'search.html').as_uri()}?q=scenario")
    results = "document.querySelectorAll('#search-results li a').length"
    found = f"new Promise((done) => {{ const look = () => {results} ? done({results}) : setTimeout(look); look(); }})"
    assert tab.evaluate(found) > 0
    assert tab.happened("Runtime.exceptionThrown") == []


@pytest.mark.sweep
def test_every_page_opens_in_a_browser(site: Path, tab: Tab) -> None:
    """All 200 of them, half a minute to write."""
    assert build(site).returncode == 0
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 200
    for page in pages:
        visit(tab, page)
