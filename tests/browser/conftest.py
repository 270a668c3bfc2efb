"""One browser for all tests of pages, and the pages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import NAMES, Tab, find_chromium, running_chromium
from tests.browser.pages import HOSTILE, write_pages

Pages = dict[str, Path]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Return the tab of the one browser; skip where there is none."""
    program = find_chromium()
    if program is None:
        pytest.skip(f"no browser: {', '.join(NAMES)} not installed")
    with running_chromium(program, tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture
def tab(browser: Tab) -> Tab:
    """Return the tab with the window of a desktop, in light colours, obeying what pages forbid."""
    browser.set_window(1280)
    browser.set_media()
    browser.call("Page.setBypassCSP", enabled=False)
    return browser


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """Return a page of every kind."""
    return write_pages(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="session")
def hostile_pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """Return a page of every kind whose names are markup that runs scripts, where it is not escaped."""
    return write_pages(tmp_path_factory.mktemp("hostile"), HOSTILE)
