"""One queue and its flows."""

import pytest

from cc import none
from cc.bottleneck import Bottleneck, run_bottleneck
from cc.conformance import two_flows
from cc.interpreting import InterpretedLaw

PORT = Bottleneck(
    capacity_bps=40e9,
    packet_bytes=1000,
    kmin_bytes=5_000,
    kmax_bytes=200_000,
    pmax_fraction=0.01,
    cnp_interval_ps=50_000_000,
    step_ps=1_000_000,
)


def test_without_control_the_queue_grows_by_the_excess():
    """2 flows of 40 Gb/s into 40 Gb/s: 5,000 B a microsecond, so over 100 us 252,500 B on average."""
    result = run_bottleneck(
        InterpretedLaw(none), PORT, first_rate_bps=[40e9, 40e9], settle_ps=0, observe_ps=100_000_000, seed=1
    )
    assert result.queue_bytes == 252_500
    assert result.rate_bps_F.tolist() == [40e9, 40e9]


def test_fairness_is_jains_index():
    """40 and 10: 50**2 / (2 * (40**2 + 10**2)) = 2500 / 3400."""
    result = run_bottleneck(
        InterpretedLaw(none), PORT, first_rate_bps=[40e9, 10e9], settle_ps=0, observe_ps=1_000_000, seed=1
    )
    assert result.fairness == pytest.approx(2500 / 3400)


def test_the_same_seed_gives_the_same_run():
    """Two runs of the law from the paper, to the last bit."""
    first, second = two_flows(), two_flows.__wrapped__()
    assert first.queue_bytes == second.queue_bytes
    assert first.rate_bps_F.tolist() == second.rate_bps_F.tolist()
