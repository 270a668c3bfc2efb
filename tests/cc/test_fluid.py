"""The fluid model's fixed point."""

from fabrictune.cc.fluid import solve_fixed_point
from fabrictune.conformance.cc.dcqcn_fluid import paper_fluid, timer_only_fluid


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
