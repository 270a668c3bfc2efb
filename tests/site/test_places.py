"""Links of documents, as the site has them."""

import pytest

from docs.site.places import documents, linked_files, on_site, place_of


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("README.md", "index.md"),
        ("docs/concepts.md", "concepts.md"),
        ("docs/how-to", "how-to/index.md"),
        ("scenarios", "scenarios.md"),
        ("scenarios/incast.yaml", "files/scenarios/incast.yaml"),
        ("benchmarks/reports/a.md", "benchmarks/reports/a.md"),
    ],
)
def test_each_file_has_its_place(path: str, place: str) -> None:
    """`docs` is the root; what is no page is a file."""
    assert place_of(path) == place


def test_links_are_rewritten_from_page_to_page() -> None:
    """Relative to the page's own place, anchors kept; addresses and anchors of the page itself stay."""
    text = "[a](../concepts.md#b) [c](../../scenarios/incast.yaml) [d](https://e.org/f) [g](#h)"
    assert on_site("docs/how-to/x.md", text) == (
        "[a](../concepts.md#b) [c](../files/scenarios/incast.yaml) [d](https://e.org/f) [g](#h)"
    )
    assert on_site("README.md", "[a](docs/concepts.md) [b](CONTRIBUTING.md)") == "[a](concepts.md) [b](contributing.md)"


def test_anchors_are_those_that_the_site_gives_headings() -> None:
    """A rule's name has dots; the anchor of its heading has none."""
    assert on_site("docs/a.md", "[a](reference/findings.md#ecmp.link-x)") == "[a](reference/findings.md#ecmplink-x)"
    assert on_site("docs/reference/findings.md", '### <a id="ecmp.link-x"></a>ecmp.link-x') == "### ecmp.link-x"


def test_files_that_are_no_pages_are_copied() -> None:
    """The licence, and a scenario; not a page."""
    text = "[a](LICENSE) [b](docs/concepts.md) [c](scenarios/incast.yaml)"
    assert linked_files("README.md", text) == {"LICENSE", "scenarios/incast.yaml"}


def test_every_document_has_its_own_place() -> None:
    """No page hides another."""
    places = [place_of(path) for path in documents()]
    assert len(places) == len(set(places)) > 150
