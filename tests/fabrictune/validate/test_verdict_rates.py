"""Verdicts at every usual NIC rate, with the arithmetic of each."""

import pytest

from fabrictune.validate.collective_model import Modelled
from fabrictune.validate.verdict_rates import RATES_BPS, RateVerdict, Timed, verdicts_by_rate


def judged(*, line_ps: float, alpha_ps: float = 0.0) -> dict[int, RateVerdict]:
    """Return the verdicts on 200 ps of a clean fabric whose NICs need `line_ps` at 100 Gbps."""
    modelled = Modelled(
        size_bytes=1, line_ps=line_ps, bound_ps=line_ps, fair_ps=line_ps, many_qps_ps=line_ps, alpha_beta_ps=None
    )
    timed = Timed(measured_ps=200.0, alpha_ps=alpha_ps, late_ps=0.0)
    verdicts = verdicts_by_rate(timed, modelled, rate_bps=100e9, least_of_bound=0.97)
    return {round(verdict.rate_bps / 1e9): verdict for verdict in verdicts}


def test_a_verdict_turns_where_the_nics_have_half_of_the_time() -> None:
    """80 of 200 ps at 100 Gbps: 160 at 50, 100 at 80 Gbps, 320 at 25, which is more than was measured."""
    by_rate = judged(line_ps=80.0)
    assert list(by_rate) == [rate // 10**9 for rate in RATES_BPS]
    assert not by_rate[25].is_possible
    assert (by_rate[50].is_possible, by_rate[50].cause) == (True, "nic")
    assert by_rate[50].share == pytest.approx(0.8)
    assert by_rate[50].turn_bps == pytest.approx(80e9)
    assert by_rate[100].cause == "not_the_network"
    assert by_rate[100].share == pytest.approx(0.6)
    assert [by_rate[rate].turn_bps for rate in (25, 100, 200, 400, 800)] == [-1.0] * 5


def test_what_no_rate_turns_has_no_turn() -> None:
    """A call of 190 of 200 ps beside 2 ps of the NICs."""
    by_rate = judged(line_ps=2.0, alpha_ps=190.0)
    assert {verdict.cause for verdict in by_rate.values()} == {"call"}
    assert {verdict.turn_bps for verdict in by_rate.values()} == {-1.0}
