"""The heat map of hosts: one cell for each pair that was measured, in the colour of its gap to the best."""

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


def test_each_pair_has_a_cell_in_the_colour_of_its_gap_to_the_best() -> None:
    """Half of the best is step 5 (to 50 %), the best itself step 1; nobody sends to itself."""
    assert cells_of(opened(measured())) == [
        ("5", "a to b: 50 Gbps"),
        ("1", "a to c: 100 Gbps"),
        ("1", "b to a: 100 Gbps"),
        ("1", "b to c: 100 Gbps"),
        ("1", "c to a: 100 Gbps"),
        ("1", "c to b: 100 Gbps"),
    ]


def test_a_host_slower_by_a_sixth_stands_out() -> None:
    """328 Gbps among 390 are 16 % less: step 4 of the key, where steps of 20 % of the maximum showed one colour."""
    names = tuple(f"gpu{index:02}" for index in range(8))
    pairs = [(near, far) for near in names for far in names if near != far]
    rates = np.array([3.28e11 if "gpu03" in pair else 3.9e11 - 1e8 * index for index, pair in enumerate(pairs)])
    section = pair_map_section([opened(measured(names, bandwidth_bps=rates))])
    assert section is not None
    (figure,) = section.blocks
    drawing = str(figure.drawing)  # type: ignore[union-attr]  # a figure
    cells = re.findall(r'class="fill-(\d)"[^>]*><title>(gpu\d+ to gpu\d+)', drawing)
    steps = {pair: step for step, pair in cells}
    assert {step for pair, step in steps.items() if "gpu03" in pair} == {"4"}
    assert {step for pair, step in steps.items() if "gpu03" not in pair} == {"1"}
    assert figure.table.rows[0][0].text == "gpu00"  # type: ignore[union-attr]
    assert all("gpu03" in (row[0].text, row[1].text) for row in figure.table.rows[:14])  # type: ignore[union-attr]
    assert "slowest gpu00 to gpu03, 328 Gbps, 16 % less" in figure.caption
    assert ">to 20 %</text>" in drawing


def test_latencies_are_shown_where_no_bandwidth_was_measured() -> None:
    """Two hosts, 2 and 4 us: the second is 100 % above the best."""
    times = {"bandwidth_bps": np.zeros(2), "median_ns": np.array([2000.0, 4000.0])}
    assert cells_of(opened(measured(("a", "b"), **times))) == [("1", "a to b: 2 us"), ("6", "b to a: 4 us")]


def test_a_pair_that_was_not_measured_is_no_slow_pair() -> None:
    """0 is what records hold for it."""
    rates = np.array([0.0, 1e11, 1e11, 1e11, 1e11, 1e11])
    assert cells_of(opened(measured(bandwidth_bps=rates)))[0] == ("0", "a to b: not measured")


def test_of_many_hosts_the_slowest_are_drawn_and_counted() -> None:
    """100 hosts: 64 fit, the slow one, the last of all, among them; numbers of columns do not overlap."""
    names = tuple(f"n{index}" for index in range(100))
    pairs = [(near, far) for near in names for far in names if near != far]
    rates = np.where(["n99" in pair for pair in pairs], 5e10, 1e11)
    section = pair_map_section([opened(measured(names, bandwidth_bps=rates))])
    assert section is not None
    (figure,) = section.blocks
    drawing = str(figure.drawing)  # type: ignore[union-attr]
    assert drawing.count("<title>") == 64 * 63
    assert " n99</text>" in drawing
    assert figure.caption.endswith("Drawn: the 64 of 100 hosts whose pairs are slowest.")
    places = [float(x) for x in re.findall(r'<text x="([\d.]+)" y="52" class="tick" text-anchor="middle">', drawing)]
    assert min(np.diff(places)) >= 14
    assert max(float(x) for x in re.findall(r'<rect x="([\d.]+)"', drawing)) < 1040 - 12


def test_a_single_pair_beside_a_matrix_is_listed() -> None:
    """It is no map, and not lost."""
    one_way = {name: column[:2] for name, column in measured().tables["rdma_transfers"].items()}
    single = RunRecord(kind="rdma bw", run={"name": "single"}, tables={"rdma_transfers": one_way})
    page = build_page([measured(), single], title="both")
    assert 'id="pairs"' in page
    assert "single: rdma_transfers, 2 rows" in page
    assert "trial: rdma_transfers" not in page


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
