"""Faults on the page: what each cost, and where."""

import math

import numpy as np
import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.reports.congestion import congestion_section
from fabrictune.reports.fault_spans import fault_spans
from fabrictune.reports.faults import MAX_ROWS, faults_section, goodput_chart
from fabrictune.reports.page import build_page
from fabrictune.reports.record_view import open_run
from tests.reports.conftest import RATE_BPS, RecordMaker


def fault_tables(count: int = 1) -> dict[str, dict[str, np.ndarray]]:
    """Return faults of the link between the ToRs that last from 50 us on, and seven packets lost to them."""
    return {
        "faults": {
            "fault": np.arange(count),
            "description": np.array(["link_down tor0:swp3 -> tor1:swp3"] * count, object),
            "begin_ps": np.full(count, 50_000_000),
            "end_ps": np.full(count, -1),
            "times": np.ones(count, np.int64),
            "goodput_before_bps": np.full(count, RATE_BPS),
            "goodput_during_bps": np.full(count, RATE_BPS // 4),
            "goodput_after_bps": np.full(count, -1),
        },
        "drops": {"port": np.array([8]), "cause": np.array(["link down"], object), "packets": np.array([7])},
    }


def test_every_fault_is_a_row_with_the_goodput_around_it(make_record: RecordMaker) -> None:
    """100 Gbps before, a quarter from then on, and nothing after its end, which never comes."""
    section = faults_section([open_run(make_record(tables=fault_tables()), "one")])
    assert section is not None
    faults, drops = section.blocks
    assert [[cell.text for cell in row] for row in faults.rows] == [  # type: ignore[union-attr]
        ["link_down tor0:swp3 -> tor1:swp3", "50 us", "the end", "100 Gbps", "25 Gbps", "\u2013"]
    ]
    assert [[cell.text for cell in row] for row in drops.rows] == [  # type: ignore[union-attr]
        ["tor0:swp3 \u2192 tor1:swp3", "link down", "7"]
    ]


def test_many_faults_are_cut_and_said_to_be(make_record: RecordMaker) -> None:
    """The page stays readable; the record has them all."""
    section = faults_section([open_run(make_record(tables=fault_tables(MAX_ROWS + 3)), "one")])
    assert section is not None
    assert len(section.blocks[0].rows) == MAX_ROWS  # type: ignore[union-attr]
    assert section.blocks[0].left_out.startswith("3 faults more")  # type: ignore[union-attr]


def test_a_run_without_faults_has_no_such_section(make_record: RecordMaker) -> None:
    """Neither an empty heading nor an empty table."""
    assert faults_section([open_run(make_record(), "one")]) is None
    assert 'id="faults"' not in build_page([make_record()], title="one")
    assert 'id="faults"' in build_page([make_record(tables=fault_tables())], title="one")


def test_a_drop_at_a_port_that_is_not_there_is_refused(make_record: RecordMaker) -> None:
    """Its link would have another's name."""
    tables = fault_tables()
    tables["drops"]["port"] = np.array([12])
    with pytest.raises(RecordError, match=r"one: drops.port: port 12 in row 0"):
        faults_section([open_run(make_record(tables=tables), "one")])


def test_goodput_is_a_staircase_under_the_bands_of_faults(make_record: RecordMaker) -> None:
    """100 Gbps, half of it from 1 to 2 us while a link is down, and 100 Gbps again; times are drawn on every axis."""
    faults = {
        "description": np.array(["flap tor0:swp3 -> tor1:swp3", "switch_down tor1"], object),
        "begin_ps": np.array([10**6, 2 * 10**6]),
        "end_ps": np.array([2 * 10**6, -1]),
        **{f"goodput_{when}_bps": np.full(2, -1) for when in ("before", "during", "after")},
    }
    goodput = {
        "begin_ps": np.array([0, 10**6, 2 * 10**6]),
        "end_ps": np.array([10**6, 2 * 10**6, 3 * 10**6]),
        "goodput_bps": np.array([10**11, 5 * 10**10, 10**11]),
    }
    run = open_run(make_record(tables={"faults": faults, "goodput": goodput}), "run")
    chart = goodput_chart(run, goodput)
    (corners,) = chart.curves.values()
    assert [rate for _, rate in corners] == [1e11, 1e11, 5e10, 5e10, 1e11, 1e11]
    assert [(band.low, band.high) for band in chart.bands] == [(1e6, 2e6), (2e6, math.inf)]
    assert [len(span.ports) for span in fault_spans(run)] == [2, 4], "both ends of a link; every port of a switch"
    for section in (faults_section([run]), congestion_section([run])):
        assert section is not None
        assert section.blocks[0].drawing.count('class="fault-span"') == 2  # type: ignore[union-attr]  # a figure


def test_a_fault_that_the_fabric_does_not_name_has_no_mark(make_record: RecordMaker) -> None:
    """A record of another version may describe it otherwise."""
    faults = {
        "description": np.array(["flap", "flap x:y -> z:w", "switch_down x"], object),
        **{name: np.zeros(3, np.int64) for name in ("begin_ps", "end_ps")},
    }
    assert [span.ports for span in fault_spans(open_run(make_record(tables={"faults": faults}), "run"))] == [()] * 3
