"""Places of rows and shapes: what the page's filter may leave out, and what it must not."""

import numpy as np
import pytest
from markupsafe import Markup

from fabrictune.reports import svg
from fabrictune.reports.blocks import number, words
from fabrictune.reports.page import build_page
from fabrictune.reports.places import Places
from fabrictune.reports.record_view import Run, open_run
from tests.reports.conftest import RecordMaker, two_flow_tables, two_tor_fabric


@pytest.fixture
def run(make_record: RecordMaker) -> Run:
    """Return the two flows as jobs of their own, "a" between NICs 0 and 2 and "b" between 1 and 3, a rail each."""
    fabric = two_tor_fabric()
    rail = np.where(fabric["nic"] >= 0, fabric["nic"] % 2, -1)
    transfers = {**two_flow_tables()["transfers"], "part": np.array(["a", "b"], object)}
    return open_run(make_record(tables={"fabric": {**fabric, "rail": rail}, "transfers": transfers}), "run")


def shown(places: Places) -> dict[str, list[str]]:
    """Return the names of what may be chosen."""
    return {kind: [name for _, name in choices] for kind, choices in places.choices()}


def test_a_row_is_about_the_nics_that_it_names(run: Run) -> None:
    """Both ends of a flow, the rail of its NICs, and the job that sends it; numbers name nothing."""
    places = Places.of([run])
    assert places.of_row([words("h0:eth0 \u2192 h2:eth0, queue pair 7"), number(1, "h1")]) == ' data-at="h0 r0 j0 h1"'
    assert places.of_row([words("h1")]) == ' data-at="h2 r1 j1"', "a host of one NIC"
    assert places.of_row([words("rail 1")]) == ' data-at="r1"'
    assert places.of_row([words("b")]) == ' data-at="j1"'
    assert shown(places) == {"host": ["h0", "h1", "h2"], "rail": ["rail 0", "rail 1"], "job": ["a", "b"]}


def test_what_names_no_place_is_left_alone(run: Run) -> None:
    """A link between switches that serve both rails, an indicator, an unknown name: they stay whatever is chosen."""
    places = Places.of([run])
    for text in ("tor0:swp3 \u2192 tor1:swp3", "Makespan", "h9:eth0", "monorail 7x"):
        assert places.of_row([words(text)]) == "", text
    assert places.choices() == []


def test_shapes_are_about_what_their_hint_names(run: Run) -> None:
    """The hint stays, escaped as it was; a shape without one is not marked."""
    drawing = svg.line(0, 0, 1, 1, "link", svg.hint("h0:eth0 \u2192 tor0:swp1 <50 %>")) + svg.line(0, 0, 2, 2, "grid")
    assert Places.of([run]).of_shapes(drawing) == (
        '<line x1="0" y1="0" x2="1" y2="1" class="link" data-at="h0 r0 j0"><title>h0:eth0 \u2192 tor0:swp1 &lt;50 %&gt;'
        '</title></line><line x1="0" y1="0" x2="2" y2="2" class="grid"/>'
    )


def test_names_are_in_the_order_of_people() -> None:
    """host2 before host10."""
    places = Places(fabrics=(), found={("h", f"host{number}"): f"h{number}" for number in (10, 2, 1)})
    assert shown(places) == {"host": ["host1", "host2", "host10"]}


def test_a_record_without_a_fabric_has_no_filter(make_record: RecordMaker) -> None:
    """Nothing is marked, and there is nothing to choose."""
    record = make_record(tables={"fabric": None, "ports": None, "loads": None, "samples": None, "collisions": None})
    assert Places.of([open_run(record, "run")]).of_shapes(Markup("<g><title>rail 1</title></g>")) == (
        "<g><title>rail 1</title></g>"
    )
    html = build_page([record], title="one")
    assert "data-at" not in html.split("<script>")[0]
    assert 'id="places"' not in html
