"""The heat map of hosts: one cell for each pair that was measured, darker where it is more."""

import re
from typing import Any

import numpy as np

from fabrictune.foundation.records import RunRecord
from fabrictune.reports.page import build_page
from fabrictune.reports.pair_map import pair_map_section
from fabrictune.reports.record_view import Run, open_run


def measured(names: tuple[str, ...] = ("a", "b", "c"), **columns: Any) -> RunRecord:
    """Return a record of all ordered pairs: 100 Gbps, but 50 Gbps from the first to the second."""
    pairs = [(near, far) for near in names for far in names if near != far]
    table = {
        "sender": np.array([near for near, _ in pairs], object),
        "receiver": np.array([far for _, far in pairs], object),
        "queue_pairs": np.ones(len(pairs), np.int64),
        "size_bytes": np.full(len(pairs), 65536),
        "bandwidth_bps": np.array([5e10, *[1e11] * (len(pairs) - 1)]),
        "median_ns": np.zeros(len(pairs)),
        **columns,
    }
    return RunRecord(kind="rdma matrix", run={"name": "trial"}, tables={"rdma_transfers": table})


def opened(record: RunRecord) -> Run:
    """Return the record, opened."""
    return open_run(record, "trial")


def cells_of(run: Run) -> list[tuple[str, str]]:
    """Return the colour and the hint of each cell of the only map."""
    section = pair_map_section([run])
    assert section is not None
    (figure,) = section.blocks
    return re.findall(r'class="fill-(\d)"[^>]*><title>([^<]+)', str(figure.drawing))  # type: ignore[union-attr]


def test_each_pair_has_a_cell_whose_colour_is_its_share_of_the_most() -> None:
    """Half of the most is step 3 (to 60 %), the most itself step 5; nobody sends to itself."""
    assert cells_of(opened(measured())) == [
        ("3", "a to b: 50 Gbps"),
        ("5", "a to c: 100 Gbps"),
        ("5", "b to a: 100 Gbps"),
        ("5", "b to c: 100 Gbps"),
        ("5", "c to a: 100 Gbps"),
        ("5", "c to b: 100 Gbps"),
    ]


def test_latencies_are_shown_where_no_bandwidth_was_measured() -> None:
    """Two hosts, 2 and 4 us."""
    times = {"bandwidth_bps": np.zeros(2), "median_ns": np.array([2000.0, 4000.0])}
    assert cells_of(opened(measured(("a", "b"), **times))) == [("3", "a to b: 2 us"), ("5", "b to a: 4 us")]


def test_one_sender_makes_no_map() -> None:
    """`rdma bw` between two ports is a row, not a matrix."""
    record = measured()
    one_way = {name: column[:2] for name, column in record.tables["rdma_transfers"].items()}
    assert pair_map_section([opened(RunRecord(kind="rdma bw", run={}, tables={"rdma_transfers": one_way}))]) is None


def test_names_of_hosts_are_shown_and_never_obeyed() -> None:
    """A worker's name comes from a command line, and a page is HTML."""
    page = build_page([measured(("<script>alert(1)</script>", "b"))], title="trial")
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
