"""Which links are busiest, and by which of the two measures."""

from collections.abc import Callable

import numpy as np
import pytest

from fabrictune.foundation.records import RunRecord
from fabrictune.reports.link_load import carried_load, offered_load
from fabrictune.reports.loads import busiest_links, draw_profiles
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


def test_profiles_of_several_runs_share_rows_and_scale(record: RunRecord) -> None:
    """Two runs, three link classes: six profiles, and a row of numbers for each."""
    loads = [load for label in ("a", "b") if (load := offered_load(open_run(record, label))) is not None]
    figure = draw_profiles(loads)
    assert figure.table is not None
    assert [row[0].text for row in figure.table.rows] == ["a", "a", "a", "b", "b", "b"]
    assert [row[6].text for row in figure.table.rows[:3]] == ["2.00", "4.00", "2.00"]
