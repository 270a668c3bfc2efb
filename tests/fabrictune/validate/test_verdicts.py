"""Verdicts, and the NIC rate at which they turn, with the arithmetic of each."""

import pytest

from fabrictune.collectives.measurement.measurements import Measurement
from fabrictune.validate.collective_model import Modelled
from fabrictune.validate.verdicts import Verdict, find_verdict

ROW = Measurement(name="all_reduce", is_in_place=False, size_bytes=2**30, num_ranks=16, mean_ns=0.208)


def judged(*, line_ps: float, measured_ps: float = 208.0, alpha_ps: float = 0.0) -> Verdict:
    """Return the verdict on a clean fabric with NICs of 100 Gbps."""
    modelled = Modelled(
        size_bytes=2**30, line_ps=line_ps, bound_ps=line_ps, fair_ps=line_ps, many_qps_ps=line_ps, alpha_beta_ps=None
    )
    return find_verdict(ROW, modelled, measured_ps=measured_ps, alpha_ps=alpha_ps, late_ps=0.0, rate_bps=100e9)


def test_a_verdict_says_which_rate_would_turn_it() -> None:
    """NICs need 100 of 208 ps: the rest is not theirs. With 104 of 208, at 96.15 Gbps, they have most."""
    verdict = judged(line_ps=100.0)
    assert verdict.cause == "not_the_network"
    assert verdict.share == pytest.approx(108 / 208)
    assert verdict.below is not None
    assert verdict.below.cause == "nic"
    assert verdict.below.rate_bps == pytest.approx(100e9 * 100 / 104)
    assert verdict.above is None
    assert verdict.caveat == "assumes NICs of 100 Gbps; the NICs at 96.15 Gbps or less"


def test_it_turns_the_other_way_too() -> None:
    """NICs need 200 of 208 ps at half that rate; from 96.15 Gbps on most is not theirs."""
    verdict = judged(line_ps=200.0)
    assert verdict.cause == "nic"
    assert verdict.above is not None
    assert verdict.above.cause == "not_the_network"
    assert verdict.above.rate_bps == pytest.approx(200e9 * 100 / 104)


def test_a_verdict_that_no_rate_turns_says_so() -> None:
    """A call of 200 of 208 ps, whatever the NICs do."""
    verdict = judged(line_ps=2.0, alpha_ps=200.0)
    assert verdict.cause == "call"
    assert verdict.caveat == "assumes NICs of 100 Gbps; the same from 25 Gbps to 400 Gbps"
