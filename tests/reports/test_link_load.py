"""Which links are busiest, and by which of the two measures."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.reports.link_load import carried_load, offered_load
from fabrictune.reports.loads import busiest_links, draw_profiles, loads_section
from fabrictune.reports.page import build_page
from fabrictune.reports.record_view import open_run


def test_of_equally_busy_links_those_between_switches_stand_first(make_record: Callable[..., RunRecord]) -> None:
    """Hosts' links are full by design: at 100 % everywhere, ports 8 to 11 (between the ToRs) come before the others."""
    loads = {**make_record().tables["loads"], "demand_bps": np.full(12, 10**11)}
    load = offered_load(open_run(make_record(tables={"loads": loads}), "run"))
    assert load is not None
    assert load.busiest_ports().tolist() == [8, 9, 10, 11, 0, 1, 2, 3, 4, 5, 6, 7]


def test_utilisation_counts_what_a_link_could_have_carried(record: RunRecord) -> None:
    """In 200 us 100 Gbps carry 2.5 MB: port 8 sent 2 MB of them and port 0 1 MB."""
    load = carried_load(open_run(record, "run"))
    assert load is not None
    assert load.load_P[[8, 0, 1]] == pytest.approx([0.8, 0.4, 0.0])


def test_a_run_that_finished_nothing_has_no_utilisation(make_record: Callable[..., RunRecord]) -> None:
    """There is no time to divide by, and 0 % would be a claim."""
    transfers = {**make_record().tables["transfers"], "finish_ps": np.full(2, -1)}
    assert carried_load(open_run(make_record(tables={"transfers": transfers}), "run")) is None


def test_a_table_of_links_counts_what_it_leaves_out(make_record: Callable[..., RunRecord]) -> None:
    """Twelve loaded ports, eight rows: four more in the record."""
    loads = {**make_record().tables["loads"], "demand_bps": np.arange(12) * 10**10 + 10**10}
    run = open_run(make_record(tables={"loads": loads}), "run")
    load = offered_load(run)
    assert load is not None
    table = busiest_links(run, load, is_folded=False)
    assert [row[4].text for row in table.rows] == [f"{share} %" for share in (120, 110, 100, 90, 80, 70, 60, 50)]
    assert table.left_out == "4 links more in table “loads” of the record."


def test_bars_that_stand_for_several_links_say_so(make_record: Callable[..., RunRecord]) -> None:
    """512 links between two ToRs have 128 bars; "one bar per link direction" was wrong."""
    fabric = parallel_links(512)
    loads = {"port": fabric["port"], "flows": fabric["port"] * 0, "demand_bps": 10**9 * (1 + fabric["port"])}
    loads["rate_bps"] = fabric["rate_bps"]
    empty = {"transfers": None, "ports": None, "samples": None, "collisions": None}
    section = loads_section([open_run(make_record(tables={"fabric": fabric, "loads": loads, **empty}), "run")])
    assert section is not None
    drawing = str(section.blocks[0].drawing)  # type: ignore[union-attr]  # a figure
    assert "; 128 bars, each the highest of its links</text>" in drawing
    assert section.lead.startswith("Bars are link directions, busiest first.")


def parallel_links(num_links: int) -> Columns:
    """Return a fabric of two ToRs."""
    port = np.arange(2 * num_links)
    return {
        "port": port,
        "node": port % 2,
        "node_name": np.where(port % 2, "tor1", "tor0"),
        "node_kind": np.full(len(port), "switch"),
        "tier": np.ones(len(port), np.int64),
        "group": port % 2,
        "port_name": np.array([f"swp{number}" for number in port]),
        "peer_port": port ^ 1,
        "rate_bps": np.full(len(port), 10**12),
        "nic": np.full(len(port), -1),
        "rail": np.full(len(port), -1),
    }


def test_eight_runs_of_one_load_are_drawn_once(make_record: Callable[..., RunRecord]) -> None:
    """Laws do not change what is offered: one profile, one table and one fabric for all, utilisation for each."""
    records = [make_record() for _ in range(8)]
    page = build_page(records, title="laws", labels=list("abcdefgh"))
    assert page.count("busiest links by offered load</caption>") == 1
    assert "<caption>a, b, c, d and 4 more: busiest links by offered load</caption>" in page
    assert page.count("a, b, c, d and 4 more: queue pairs with the slowest transfers") == 1
    assert page.count("a, b, c, d and 4 more: ports by pause time") == 1
    assert page.count("a, b, c, d and 4 more: oversubscribed links") == 1
    assert len(re.findall(r"<figcaption>[^<]*busiest link ", page)) == 1


def test_runs_beside_one_another_do_not_overlap(make_record: Callable[..., RunRecord]) -> None:
    """Four loads stand in two rows of at most three: "4 links, highest 200 %, mean 50 %" needs a third of the width."""
    loads = []
    for index in range(4):
        demand = {**make_record().tables["loads"], "demand_bps": np.full(12, (index + 1) * 10**10)}
        load = offered_load(open_run(make_record(tables={"loads": demand}), f"run{index}"))
        assert load is not None
        loads.append(load)
    drawing = str(draw_profiles(loads).drawing)
    places = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" class="tier">run(\d)</text>', drawing)
    assert [(x == places[0][0], y == places[0][1]) for x, y, _ in places] == [
        (True, True),
        (False, True),
        (False, True),
        (True, False),
    ]


def test_profiles_of_several_runs_share_rows_and_scale(record: RunRecord) -> None:
    """Two runs, three link classes: six profiles, and a row of numbers for each."""
    loads = [load for label in ("a", "b") if (load := offered_load(open_run(record, label))) is not None]
    figure = draw_profiles(loads)
    assert figure.table is not None
    assert [row[0].text for row in figure.table.rows] == ["a", "a", "a", "b", "b", "b"]
    assert [row[6].text for row in figure.table.rows[:3]] == ["2.00", "4.00", "2.00"]
