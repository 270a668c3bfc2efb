"""The fluid model's fixed point."""

import pytest

from fabrictune.cc.fluid import _imbalance, counters, solve_fixed_point
from fabrictune.conformance.cc.dcqcn_fluid import cases, paper_fluid, timer_only_fluid
from fabrictune.foundation.cases import Case


def test_the_closed_form_is_16_to_37_percent_above_the_root():
    """p* by the paper's cube root, packets of 1000 B: 0.000925 at 2 flows, 0.014678 at 16."""
    for num_flows, closed_form in ((2, 0.000925), (16, 0.014678)):
        root = solve_fixed_point(paper_fluid(num_flows)).mark_fraction
        assert 1.16 <= closed_form / root <= 1.37


def test_more_flows_are_marked_more():
    """Each has less to give up, and increases stay as large."""
    marks = [solve_fixed_point(timer_only_fluid(flows)).mark_fraction for flows in (2, 4, 8, 16, 32, 64)]
    assert marks == sorted(marks)


def test_beyond_kmax_there_is_no_queue_to_name():
    """16 flows of the paper's set need 1.09 % of marks where RED's slope ends at 1 %."""
    fixed_point = solve_fixed_point(paper_fluid(16))
    assert fixed_point.mark_fraction > 0.01
    assert fixed_point.queue_bytes is None


@pytest.mark.parametrize("case", [case for case in cases() if "fixed-point" in case.name], ids=lambda case: case.name)
def test_the_root_is_the_published_one(case: Case):
    """Marking probability, alpha, excess of the target and queue, with a byte counter and without."""
    assert case.low <= case.run() <= case.high


def test_counters_are_counted_in_packets():
    """At a million packets a second, a timer of 55 us counts 55, and 10 MB are 10,000 packets of 1,000 B."""
    assert counters(paper_fluid(2), 1e6) == pytest.approx([55, 10_000])
    assert counters(timer_only_fluid(2), 1e6) == pytest.approx([55])


@pytest.mark.parametrize("num_flows", [2, 8, 32])
def test_increases_and_cuts_balance_at_the_root(num_flows: int):
    """To a thousandth of a bit a second, of some 100 Mb/s on either side."""
    for fluid in (paper_fluid(num_flows), timer_only_fluid(num_flows)):
        assert abs(_imbalance(fluid, solve_fixed_point(fluid).mark_fraction)) < 1e-3
