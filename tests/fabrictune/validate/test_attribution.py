"""Where a measured time goes: parts that add up, in the order that decision 0023 gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.validate.attribution import CAUSES, attribute
from fabrictune.validate.collective_model import Modelled

MODELLED = Modelled(
    size_bytes=1_000_000, line_ps=100.0, bound_ps=110.0, fair_ps=160.0, many_qps_ps=140.0, alpha_beta_ps=None
)


def test_every_part_is_what_was_computed_for_it() -> None:
    """100 for the NIC, 10 of rounds, 20 that queue pairs give back, 30 that they do not, and what is left of 300."""
    found = attribute(300.0, MODELLED, alpha_ps=45.0, late_ps=15.0)
    assert found.parts_ps == {
        "nic": 100.0,
        "rounds": 10.0,
        "queue_pairs": 20.0,
        "collisions": 30.0,
        "late_ranks": 15.0,
        "call": 20.0,  # of 45 that an empty call takes, rounds explain 10 and late ranks 15
        "not_the_network": 105.0,
    }
    assert found.largest_avoidable == "not_the_network"


def test_a_cost_of_each_call_is_not_the_fabric_s() -> None:
    """As in a public report of two hosts: line rate in perftest, half of it in NCCL, and a constant behind it."""
    clean = Modelled(
        size_bytes=1_000_000, line_ps=100.0, bound_ps=101.0, fair_ps=101.0, many_qps_ps=101.0, alpha_beta_ps=None
    )
    found = attribute(210.0, clean, alpha_ps=110.0)
    assert found.largest_avoidable == "call"
    assert found.parts_ps["queue_pairs"] == found.parts_ps["collisions"] == 0
    assert found.parts_ps["call"] == 109.0
    assert found.parts_ps["not_the_network"] == pytest.approx(0)


def test_what_is_faster_than_its_model_has_less_of_the_last_parts() -> None:
    """105 measured: the NIC's 100 and half of the rounds."""
    parts = attribute(105.0, MODELLED, alpha_ps=0.0).parts_ps
    assert (parts["nic"], parts["rounds"], parts["queue_pairs"]) == (100.0, 5.0, 0.0)


TIME = st.floats(0, 1e15)


@given(measured=st.floats(1, 1e15), times=st.tuples(TIME, TIME, TIME, TIME), alpha=TIME, late=TIME)
def test_parts_add_up(measured: float, times: tuple[float, float, float, float], alpha: float, late: float) -> None:
    """To the measured time, none of them negative, whatever was modelled."""
    line, bound, many, fair = sorted(times)
    modelled = Modelled(size_bytes=1, line_ps=line, bound_ps=bound, fair_ps=fair, many_qps_ps=many, alpha_beta_ps=None)
    parts = attribute(measured, modelled, alpha_ps=alpha, late_ps=late).parts_ps
    assert list(parts) == list(CAUSES)
    assert min(parts.values()) >= 0
    assert sum(parts.values()) == pytest.approx(measured)
