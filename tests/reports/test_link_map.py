"""The map of a large fabric's links: every link once in each direction, idle and faulty ones in sight."""

import re
from dataclasses import replace

import numpy as np
import pytest
from defusedxml import ElementTree

from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.reports.blocks import Figure
from fabrictune.reports.fabric_drawing import fabric_section
from fabrictune.reports.fabric_view import FabricView
from fabrictune.reports.fault_spans import FaultSpan
from fabrictune.reports.link_load import LinkLoad
from fabrictune.reports.link_map import MAX_CELLS, MAX_ROWS, draw_link_map
from fabrictune.reports.load_scale import step_of
from fabrictune.reports.record_view import open_run
from tests.reports.test_fabric_drawing import two_tier_fabric

LEAVES, SPINES, HOSTS = 8, 4, 2


def load_with(fabric: Columns, loads: dict[int, float]) -> LinkLoad:
    view = FabricView.from_table(fabric)
    load_P = np.zeros(view.num_ports)
    load_P[list(loads)] = list(loads.values())
    return LinkLoad(label="run", fabric=view, measure="offered load", load_P=load_P)


def cells_of(figure: Figure) -> dict[int, int]:
    """Return how many cells each step has, over all panels; those with a hint are drawn twice."""
    root = ElementTree.fromstring(figure.drawing)
    counts: dict[int, int] = {}
    for path in root.iter("path"):
        if (found := re.fullmatch(r"fill-(\d)", path.get("class") or "")) is not None:
            step = int(found[1])
            counts[step] = counts.get(step, 0) + (path.get("d") or "").count("M")
    return counts


def test_every_link_is_a_cell_in_both_directions() -> None:
    """16 links to hosts and 32 between leaves and spines, each twice: 96 cells, all but two of them idle."""
    first_up = 2 * LEAVES * HOSTS  # the first leaf's first port to a spine
    load = load_with(two_tier_fabric(LEAVES, SPINES, HOSTS), {first_up: 2.5, first_up + 1: 0.5})
    figure = draw_link_map(load)
    assert cells_of(figure) == {0: 94, int(step_of(0.5)): 1, int(step_of(2.5)): 1}
    assert "ToR → spine: 32 links, 31 idle, 1 over 100 %" in figure.drawing
    assert "spine → ToR: 32 links, 31 idle, 0 over 100 %" in figure.drawing
    assert "ToR → host: 16 links, 16 idle, 0 over 100 %" in figure.drawing


def test_the_most_loaded_cells_say_which_link_they_are() -> None:
    """A cell in a corner of a map is no name; the others say their rail, one path for each and step."""
    first_up = 2 * LEAVES * HOSTS
    load = load_with(two_tier_fabric(LEAVES, SPINES, HOSTS), {first_up: 2.5})
    titles = [element.text for element in ElementTree.fromstring(draw_link_map(load).drawing).iter("title")]
    own = {f"rail {rail}" for rail in range(4)}
    assert [title for title in titles if title not in own] == [f"{load.fabric.link_label(first_up)} 250 %"]
    assert set(titles) > own


def test_rows_are_in_the_order_of_rails() -> None:
    """Leaf i serves rail i % 4: the rows are leaves 0, 4, 1, 5, 2, 6, 3, 7."""
    load = load_with(two_tier_fabric(LEAVES, SPINES, HOSTS), {})
    texts = [element.text for element in ElementTree.fromstring(draw_link_map(load).drawing).iter("text")]
    num_hosts = LEAVES * HOSTS
    assert [text for text in texts if re.fullmatch(r"n\d+", text or "")][:LEAVES] == [
        f"n{num_hosts + leaf}" for leaf in (0, 4, 1, 5, 2, 6, 3, 7)
    ]


def test_a_faulty_link_has_a_cross_in_both_directions() -> None:
    """With what happened and when."""
    first_up = 2 * LEAVES * HOSTS
    load = load_with(two_tier_fabric(LEAVES, SPINES, HOSTS), {})
    fault = FaultSpan(description="link_down a -> b", begin_ps=10**6, end_ps=-1, ports=(first_up,))
    root = ElementTree.fromstring(draw_link_map(replace(load, faults=(fault,))).drawing)
    crosses = [path for path in root.iter("path") if path.get("class") == "fault"]
    assert [cross.findtext("title") for cross in crosses] == ["link_down a -> b, 1 us until the end"] * 2


@pytest.mark.parametrize(("leaves", "spines"), [(2_000, 8), (4, 1_000)])
def test_a_map_is_bounded(leaves: int, spines: int) -> None:
    """Of 2,000 switches those with the highest loads; of 1,000 links in a row the highest of each four."""
    load = load_with(two_tier_fabric(leaves, spines, 1), {2 * leaves: 2.5})
    figure = draw_link_map(load)
    assert cells_of(figure)[int(step_of(2.5))] == 1
    assert max(cells_of(figure).values()) <= 4 * MAX_CELLS
    assert ("more rows with lower loads not drawn" in figure.caption) == (leaves > MAX_ROWS)


def test_a_large_fabric_has_its_map_first_and_bundles_on_request() -> None:
    """A small one is drawn link by link, without a map."""
    fabric = two_tier_fabric(100, 16, 16)
    ports = {"port": fabric["port"], "flows": fabric["port"] * 0, "demand_bps": fabric["port"] * 0}
    tables = {"fabric": fabric, "loads": {**ports, "rate_bps": fabric["rate_bps"]}}
    section = fabric_section([open_run(RunRecord(kind="ecmp analyze", run={}, tables=tables), "run")])
    assert section is not None
    assert [(type(block), block.is_folded) for block in section.blocks] == [(Figure, False), (Figure, True)]
    assert section.blocks[0].caption.startswith("run: a row a switch")
