"""The loopback as probes: that its parts are found, and that the fabric made of them keeps them."""

import numpy as np
import pytest

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import UnavailableError
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation
from fabrictune.validate.calibration import Calibration, Curve, calibrate, check_calibration, loopback_fabric
from fabrictune.validate.gloo_model import link_ps, with_software
from fabrictune.validate.local import LOOPBACK_CONFIG, simulate_loopback

SIZES = [8_000, 128_000, 3_000_000]
ONCE_US = np.array([[108], [228], [3_100]])  # 100 us and 8 Gbps
OTHERS_US = {"sum": (10, 20), "copy": (5, 15), "fresh_copy": (40,), "all_gather": (150,), "reduce_scatter": (120,)}


def calibrated(exchange_us: IntArray) -> Calibration:
    """Return the calibration of exchanges, beside other probes of known times: of 1 kB and 100 kB, or of 100 kB."""
    probes = ["exchange"] * len(SIZES)
    sizes, rows = list(SIZES), [row * 10**6 for row in exchange_us]
    for probe, times_us in OTHERS_US.items():
        probes += [probe] * len(times_us)
        sizes += [1_000, 100_000][-len(times_us) :]
        rows += [np.full(exchange_us.shape[1], time_us * 10**6) for time_us in times_us]
    return calibrate(probes, np.array(sizes), np.array(rows), page_bytes=4_096)


def test_latency_and_rate_are_found_exactly() -> None:
    """From 8 kB on: 108 us, then 8 Gbps; half a page of 4,096 B in 25 us a 100 kB."""
    calibration = calibrated(ONCE_US)
    assert (calibration.latency_ps, calibration.rate_bps) == (108_000_000, 8_000_000_000)
    assert calibration.call_ps == {"all_gather": 150e6, "reduce_scatter": 120e6}
    assert calibration.page_ps == pytest.approx(25e6 * 4_096 / 100_000)


def test_a_few_disturbed_rounds_change_nothing() -> None:
    """Medians: two of five rounds may be a hundred times too long."""
    disturbed = np.concatenate([ONCE_US, ONCE_US * 100, ONCE_US, ONCE_US * 100, ONCE_US], axis=1)
    calibration = calibrated(disturbed)
    assert calibration.exchange.ps_E.tolist() == calibrated(ONCE_US).exchange.ps_E.tolist()


def test_a_rate_that_falls_with_size_is_kept_between_sizes() -> None:
    """1,000 ps a byte up to 100 kB, then 2,000: halfway 250 us, and beyond the largest as before it."""
    curve = Curve(bytes_E=np.array([0, 100_000, 200_000]), ps_E=np.array([0.0, 100e6, 300e6]))
    assert [curve.at(size) for size in (50_000, 150_000, 250_000)] == [50e6, 200e6, 400e6]


def test_a_curve_never_falls_and_below_the_smallest_is_flat() -> None:
    """A larger message that seems faster is the noise of the smaller one."""
    calibration = calibrated(np.array([[108], [90], [3_100]]))
    assert calibration.exchange.ps_E.tolist() == [108e6, 108e6, 3_100e6]
    assert calibration.exchange.beyond_smallest_ps(16) == 0.0


@pytest.mark.parametrize(
    ("times_us", "shown", "why"),
    [
        ((300, 200, 100), "8 KB 300 us, 128 KB 300 us, 3 MB 300 us", "a rate of less than nothing"),
        ((9_000, 9_100, 12_000), "8 KB 9 ms, 128 KB 9.1 ms, 3 MB 12 ms", "9 ms of latency on a loopback"),
    ],
)
def test_times_that_are_no_network_are_refused(times_us: tuple[int, ...], shown: str, why: str) -> None:
    """What cannot be simulated is said with the times that were measured."""
    with pytest.raises(UnavailableError) as error:
        check_calibration(calibrated(np.array(times_us)[:, None]))
    assert str(error.value) == (
        f"calibration: no latency and rate fit these exchanges: {shown}"
        "\n  allowed: times that rise with size, from a latency of at most 8 ms"
        "\n  next: run again while the machine does nothing else"
    ), why


def gathering(num_bytes: int, *, times: int = 1) -> CommTrace:
    """Return all-gathers of two ranks, one after the other."""
    num_requests = 2 * times
    zeros = np.zeros(num_requests, np.int64)
    waits = [[] if row % times == 0 else [row - 1] for row in range(num_requests)]
    return CommTrace(
        groups=((0, 1),),
        rank_N=np.repeat(np.arange(2), times),
        operation_N=zeros + Operation.ALL_GATHER,
        group_N=zeros,
        peer_N=zeros + UNKNOWN,
        bytes_N=zeros + num_bytes,
        compute_before_ps_N=zeros,
        step_N=zeros,
        axis_N=("dp",) * num_requests,
        policy_N=("none",) * num_requests,
        tag_N=("",) * num_requests,
        dependencies=Dependencies.from_lists(waits),
    )


@pytest.mark.parametrize("num_bytes", [8_192, 1_000_000, 6_000_002])
def test_a_simulated_message_takes_the_calibrated_time(num_bytes: int) -> None:
    """An all-gather of two is one step: each sends its half, in latency + bytes / rate."""
    calibration, trace = calibrated(ONCE_US), gathering(num_bytes)
    simulated = simulate_loopback(trace, np.zeros(2, np.int64), calibration)
    finish_ps = simulated.tables["transfers"]["finish_ps"].max()
    assert finish_ps == pytest.approx(link_ps(num_bytes, calibration), rel=1e-3)


def test_what_follows_a_collective_waits_for_its_software() -> None:
    """50 us beside the messages of each: the second of two begins so much later, and nothing else changes."""
    calibration, trace = calibrated(ONCE_US), gathering(1_000_000, times=2)
    software_ps_N = np.full(4, 50_000_000)
    assert with_software(trace, software_ps_N).compute_before_ps_N.tolist() == [0, 50_000_000, 0, 50_000_000]
    end_ps = [
        simulate_loopback(trace, given_N, calibration).tables["transfers"]["finish_ps"].max()
        for given_N in (software_ps_N, 0 * software_ps_N)
    ]
    assert end_ps[0] - end_ps[1] == pytest.approx(50_000_000, rel=1e-3)


def test_a_latency_below_one_packet_leaves_no_cable() -> None:
    """At 8 Gbps a packet takes 4.1 us; a loopback of 1 us has cables of no length rather than less."""
    quick = calibrated(ONCE_US - 107)
    assert quick.latency_ps == 1_000_000
    assert loopback_fabric(quick, LOOPBACK_CONFIG.mtu_bytes).port_delay_ps_P.tolist() == [0, 0, 0, 0]
