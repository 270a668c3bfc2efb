"""The loopback as two numbers: that they are found, and that the fabric made of them keeps them."""

import numpy as np
import pytest

from fabrictune.foundation.errors import UnavailableError
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation
from fabrictune.validate.calibration import Calibration, calibrate, loopback_fabric
from fabrictune.validate.local import LOOPBACK_CONFIG, simulate_loopback

SIZES = np.array([8_000, 128_000, 3_000_000])


def test_a_line_is_found_exactly() -> None:
    """100 us and 8 Gbps: 8 kB take 108 us, 128 kB 228 us, 3 MB 3,100 us."""
    durations = np.array([[108_000_000], [228_000_000], [3_100_000_000]])
    assert calibrate(SIZES, durations) == Calibration(latency_ps=100_000_000, rate_bps=8_000_000_000)


def test_a_few_disturbed_exchanges_change_nothing() -> None:
    """Medians: two of five repetitions may be a hundred times too long."""
    once = np.array([[108_000_000], [228_000_000], [3_100_000_000]])
    durations = np.concatenate([once, once * 100, once, once * 100, once], axis=1)
    assert calibrate(SIZES, durations) == Calibration(latency_ps=100_000_000, rate_bps=8_000_000_000)


@pytest.mark.parametrize(
    ("times_us", "why"),
    [
        ((300, 200, 100), "a rate of less than nothing"),
        ((9_000, 9_100, 12_000), "9 ms of latency on a loopback: the machine is doing something else"),
    ],
)
def test_times_that_are_no_network_are_refused(times_us: tuple[int, ...], why: str) -> None:
    """What cannot be simulated is said with the times that were measured."""
    with pytest.raises(UnavailableError) as error:
        calibrate(SIZES, np.array(times_us)[:, None] * 10**6)
    shown = ", ".join(f"{size} B {time} us" for size, time in zip(SIZES, times_us, strict=True))
    assert str(error.value) == (
        f"calibration: no latency and rate fit these exchanges: {shown}"
        "\n  allowed: times that rise with size, from a latency of at most 8 ms"
        "\n  next: run again while the machine does nothing else"
    ), why


@pytest.mark.parametrize("num_bytes", [8_192, 1_000_000, 6_000_001])
def test_a_simulated_message_takes_the_calibrated_time(num_bytes: int) -> None:
    """An all-gather of two is one step: each sends its half, in latency + bytes / rate."""
    calibration = Calibration(latency_ps=100_000_000, rate_bps=8_000_000_000)
    zeros = np.zeros(2, np.int64)
    trace = CommTrace(
        groups=((0, 1),),
        rank_N=np.arange(2),
        operation_N=zeros + Operation.ALL_GATHER,
        group_N=zeros,
        peer_N=zeros + UNKNOWN,
        bytes_N=zeros + num_bytes,
        compute_before_ps_N=zeros,
        step_N=zeros,
        axis_N=("dp",) * 2,
        policy_N=("none",) * 2,
        tag_N=("",) * 2,
        dependencies=Dependencies.none(2),
    )
    finish_ps = simulate_loopback(trace, calibration).tables["transfers"]["finish_ps"].max()
    assert finish_ps == pytest.approx(calibration.message_ps(-(-num_bytes // 2)), rel=1e-3)


def test_a_latency_below_one_packet_leaves_no_cable() -> None:
    """At 8 Gbps a packet takes 4.1 us; a loopback of 1 us has cables of no length rather than less."""
    fabric = loopback_fabric(Calibration(latency_ps=1_000_000, rate_bps=8_000_000_000), LOOPBACK_CONFIG.mtu_bytes)
    assert fabric.port_delay_ps_P.tolist() == [0, 0, 0, 0]
