"""One queue and its flows."""

from dataclasses import replace

import pytest

from fabrictune.cc import dcqcn, none
from fabrictune.cc.bottleneck import Bottleneck, _mark_fraction, run_bottleneck
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


def test_means_are_of_the_observed_part_alone():
    """The excess of 5,000 B a microsecond, 10 us settled and 4 us observed: 55 to 70 KB, 62,500 B on average."""
    result = run_bottleneck(
        InterpretedLaw(none), PORT, first_rate_bps=[40e9, 40e9], settle_ps=10_000_000, observe_ps=4_000_000, seed=1
    )
    assert result.queue_bytes == (55_000 + 60_000 + 65_000 + 70_000) / 4
    assert result.rate_bps_F.tolist() == [40e9, 40e9]


@pytest.mark.parametrize(
    ("queue_bytes", "mark_fraction"), [(0, 0), (5_000, 0), (102_500, 0.005), (200_000, 0.01), (200_001, 1)]
)
def test_marks_follow_the_slope_of_red(queue_bytes, mark_fraction):
    """Nothing up to Kmin, Pmax at Kmax, everything beyond."""
    assert _mark_fraction(PORT, queue_bytes) == pytest.approx(mark_fraction)


def test_notifications_are_an_interval_apart(write_law):
    """Where all is marked from the first step on, CNPs come at 1, 51 and 101 us: three thousandths of 40 Gb/s less."""
    law = write_law(
        "def on_start(params, flow, now_ps): return Status.OK\n"
        "def on_cnp(params, flow, now_ps):\n"
        "    flow.rate_bps = flow.rate_bps - 40e6\n"
        "    return Status.OK\n"
    )
    port = replace(PORT, kmin_bytes=-2, kmax_bytes=-1)
    for observe_us, num_cnps in ((1, 1), (50, 1), (51, 2), (100, 2), (101, 3)):
        result = run_bottleneck(
            InterpretedLaw(law),
            port,
            first_rate_bps=[40e9],
            settle_ps=(observe_us - 1) * 10**6,
            observe_ps=10**6,
            seed=1,
        )
        assert result.rate_bps_F.tolist() == [40e9 - num_cnps * 40e6], observe_us


def test_timers_expire_at_the_end_of_the_step_that_they_fall_into(write_law):
    """Set for 3 us: at the end of the third step and not of the second, and once."""
    law = write_law(
        "def on_start(params, flow, now_ps):\n"
        "    flow.deadline_ps[3] = 3_000_000\n"
        "    return Status.OK\n"
        "def on_timer(params, flow, now_ps, timer):\n"
        "    flow.rate_bps = flow.rate_bps / 2 + timer + now_ps\n"
        "    return Status.OK\n"
    )
    rates = [
        run_bottleneck(
            InterpretedLaw(law),
            PORT,
            first_rate_bps=[8e9],
            settle_ps=settle_us * 10**6,
            observe_ps=10**6,
            seed=1,
        ).rate_bps_F[0]
        for settle_us in range(5)
    ]
    assert rates == [8e9, 8e9, *[4e9 + 3 + 3_000_000] * 3]


def test_a_sender_counts_whole_bytes(write_law):
    """12 Mb/s are one and a half bytes a microsecond: 1 and 2 in turn, and none is lost."""
    law = write_law(
        "def on_start(params, flow, now_ps): return Status.OK\n"
        "def on_send(params, flow, now_ps, sent_bytes):\n"
        "    flow.sent_bytes += sent_bytes\n"
        "    flow.cwnd_bytes = flow.sent_bytes\n"
        "    if now_ps == 4_000_000: flow.rate_bps = flow.sent_bytes\n"
        "    return Status.OK\n",
        state="(('sent_bytes', 'i8'),)",
    )
    result = run_bottleneck(
        InterpretedLaw(law), PORT, first_rate_bps=[12e6], settle_ps=3_000_000, observe_ps=10**6, seed=1
    )
    assert result.rate_bps_F.tolist() == [6]
