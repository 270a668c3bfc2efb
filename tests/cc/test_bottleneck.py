"""One queue and its flows."""

import pytest

from fabrictune.cc import dcqcn, none
from fabrictune.cc.bottleneck import Bottleneck, run_bottleneck
from fabrictune.cc.interpreter import InterpretedLaw

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
    """Marks are drawn from the seed alone: two runs agree to the last bit, and another seed does not."""
    law = InterpretedLaw(dcqcn)
    runs = [
        run_bottleneck(law, PORT, first_rate_bps=[40e9, 5e9], settle_ps=0, observe_ps=2 * 10**9, seed=seed)
        for seed in (1, 1, 2)
    ]
    assert runs[0].queue_bytes == runs[1].queue_bytes
    assert runs[0].rate_bps_F.tolist() == runs[1].rate_bps_F.tolist()
    assert runs[0].queue_bytes != runs[2].queue_bytes
