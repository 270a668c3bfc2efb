"""Figures as files: what is saved is the figure as it is shown, made by the page itself."""

import xml.etree.ElementTree as ElementTree
from base64 import b64encode
from pathlib import Path

import pytest

from tests.browser.chromium import Tab
from tests.browser.conftest import Pages
from tests.browser.test_pages import open_page

# How many pixels of a PNG file are of each colour, as [pixels, colour], the most first.
COLOURS = """(async (address) => {
  const picture = new Image();
  picture.src = address;
  await picture.decode();
  const canvas = new OffscreenCanvas(picture.width, picture.height), context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0);
  const data = context.getImageData(0, 0, canvas.width, canvas.height).data, seen = new Map();
  for (let at = 0; at < data.length; at += 4) {
    const colour = `${data[at]},${data[at + 1]},${data[at + 2]}`;
    seen.set(colour, (seen.get(colour) ?? 0) + 1);
  }
  return [canvas.width, canvas.height, Object.fromEntries(seen)];
})"""


def saved(tab: Tab, folder: Path, figure: int, kind: str) -> Path:
    """Click a figure's button and return the file, which the browser has written."""
    tab.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    tab.events.clear()
    tab.evaluate(f"document.querySelectorAll('figure .save')[{figure}].id = 'chosen'")
    tab.click(f"#chosen button:nth-child({1 if kind == 'svg' else 2})")
    tab.await_event("Page.downloadProgress", state="completed")
    (file,) = folder.iterdir()
    assert file.suffix == f".{kind}"
    return file


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_saved_svg_has_the_styles_that_it_needs(tab: Tab, pages: Pages, tmp_path: Path, scheme: str) -> None:
    """No class, no style sheet: colours and fonts stand at the shapes, on the ground of the theme."""
    tab.set_media(scheme=scheme)
    open_page(tab, pages["sim run"])
    figure = tab.evaluate("[...document.querySelectorAll('figure')].findIndex((one) => one.querySelector('.series'))")
    shown = tab.evaluate(f"document.querySelectorAll('figure')[{figure}].querySelectorAll('svg text').length")
    line = tab.evaluate(
        f"getComputedStyle(document.querySelectorAll('figure')[{figure}].querySelector('.series')).stroke"
    )
    file = saved(tab, tmp_path, figure, "svg")
    text = file.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "class=" not in text
    assert "style" not in text
    assert f'stroke="{line}"' in text
    assert len(root.findall(".//{*}text")) >= shown > 0
    ground = root.find("{*}rect")
    assert ground is not None
    assert ground.get("fill") == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 27)")
    tab.open(file.as_uri())
    assert tab.evaluate("document.documentElement.getBoundingClientRect().width") == 1040


def test_a_saved_png_has_the_figures_colours(tab: Tab, pages: Pages, tmp_path: Path) -> None:
    """Every shape of the link loads is on it: twice the figure's size, its ground, its bars and its letters."""
    open_page(tab, pages["sim run"])
    figure = tab.evaluate("[...document.querySelectorAll('figure')].findIndex((one) => one.closest('#loads'))")
    script = f"document.querySelectorAll('figure')[{figure}].querySelector('[class^=fill-]')"
    bar = tab.evaluate(f"getComputedStyle({script}).fill").removeprefix("rgb(").removesuffix(")").replace(" ", "")
    height = tab.evaluate(f"{script}.closest('.figure').viewBox.baseVal.height")
    file = saved(tab, tmp_path, figure, "png")
    tab.open("about:blank")
    address = f"data:image/png;base64,{b64encode(file.read_bytes()).decode()}"
    width, tall, colours = tab.evaluate(f"{COLOURS}('{address}')")
    assert (width, tall) == (2080, int(2 * height))
    assert max(colours, key=colours.__getitem__) == "255,255,255"
    assert colours[bar] > 100
    assert len(colours) > 20, "letters and lines have soft edges"


def test_a_zoomed_plot_is_saved_in_silence(tab: Tab, pages: Pages, tmp_path: Path) -> None:
    """As it is shown, a part of the time; no word on the console, and no request but for the page's own file."""
    open_page(tab, pages["two runs"])
    figure = tab.evaluate("[...document.querySelectorAll('figure')].findIndex((one) => one.querySelector('.plot'))")
    tab.evaluate(f"document.querySelectorAll('figure')[{figure}].querySelector('.figure').focus()")
    tab.press("+", 187)
    for kind in ("svg", "png"):
        (tmp_path / kind).mkdir()
        assert saved(tab, tmp_path / kind, figure, kind).stat().st_size > 1000
    assert "scale(2 1)" in (next((tmp_path / "svg").iterdir())).read_text(encoding="utf-8")
    requests = [request["request"]["url"] for request in tab.happened("Network.requestWillBeSent")]
    assert all(url.startswith("blob:") for url in requests)
    assert tab.happened("Log.entryAdded") + tab.happened("Runtime.exceptionThrown") == []


def test_a_figure_is_saved_by_the_keys(tab: Tab, pages: Pages, tmp_path: Path) -> None:
    """The buttons are buttons: Enter presses the one that has the focus."""
    open_page(tab, pages["sim run"])
    tab.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    tab.evaluate("document.querySelector('.save button').focus()")
    tab.press("Enter", 13)
    tab.await_event("Page.downloadProgress", state="completed")
    assert [file.name for file in tmp_path.iterdir()] == [
        f"sim-run-{tab.evaluate('document.querySelector(`figure`).closest(`section`).id')}-1.svg"
    ]
