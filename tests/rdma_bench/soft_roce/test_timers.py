"""A real verbs device retransmits, gives up and recovers when the model says."""

import pytest

from rdma_bench.measuring.pair import Pair
from rdma_bench.measuring.timers import TimerPlan, measure_timers
from rdma_bench.timers.trials import RETRIES_EXCEEDED, SUCCESS
from rdma_bench.verbs.endpoint import ConnectionSpec

pytestmark = pytest.mark.real

RNR_RETRIES_EXCEEDED = 13
EARLIEST, LATEST = 0.85, 1.15  # of the model's time; the driver counts whole jiffies of 4 ms
MOST_TRIES = 3  # of a short time: a busy machine only adds to it, so the least is the device's own


def detection_s(pair: Pair, exponent: int, retries: int) -> float:
    """Return after how long a write over a dead path fails, the least of a few trials."""
    model_s = nominal_s(exponent) * (retries + 1)
    times: list[float] = []
    for _ in range(MOST_TRIES if model_s < 0.5 else 1):
        with pair.connected(ConnectionSpec(timeout_exponent=exponent, retries=retries)):
            pair.receiver.ask("cut")
            result = pair.sender.ask("trial", limit_s=3 * model_s + 5, timeout_s=60)
        assert result["status"] == RETRIES_EXCEEDED
        times.append(result["after_ns"] / 1e9)
    return min(times)


def nominal_s(exponent: int) -> float:
    """Return the standard's timeout."""
    return 4.096e-6 * float(2**exponent)


@pytest.mark.parametrize(("exponent", "retries"), [(14, 0), (14, 6), (15, 3), (16, 1), (17, 0), (18, 0)])
def test_a_dead_path_is_noticed_after_one_wait_more_than_retries(pair: Pair, exponent: int, retries: int) -> None:
    """R + 1 waits of 4.096 us * 2**T: T 14 and R 6 make 7 * 67.1 = 470 ms, and at most 15 % more."""
    ratio = detection_s(pair, exponent, retries) / (nominal_s(exponent) * (retries + 1))
    assert EARLIEST <= ratio <= LATEST


@pytest.mark.sweep
@pytest.mark.parametrize("exponent", range(14, 19))
@pytest.mark.parametrize("retries", range(7))
def test_every_setting_is_as_the_model_says(pair: Pair, exponent: int, retries: int) -> None:
    """35 settings, of 67 ms to 7.5 s."""
    ratio = detection_s(pair, exponent, retries) / (nominal_s(exponent) * (retries + 1))
    assert EARLIEST <= ratio <= LATEST


def test_traffic_resumes_with_the_next_retransmission(pair: Pair) -> None:
    """T 16 retransmits every 268 ms. Healed 300 ms after the cut, and the time that takes, it waits for the next."""
    plan = TimerPlan(exponents=(16,), retries=(6,), cuts_ns=(300_000_000,), by_command=True)
    (trial,) = measure_timers(pair, plan).trials
    assert trial.status == SUCCESS
    assert trial.num_retransmissions >= 2
    ratio = trial.after_ns / 1e9 / (trial.num_retransmissions * nominal_s(16))
    assert EARLIEST <= ratio <= LATEST


def test_continuous_traffic_stalls_and_goes_on(pair: Pair) -> None:
    """The same with writes on their way all the time: the first wait began with an earlier packet, so it is shorter."""
    with pair.connected(ConnectionSpec(timeout_exponent=16, retries=6)):
        pair.sender.begin("trial", traffic="continuous", limit_s=20, stall_s=0.2)
        pair.receiver.ask("cut")
        pair.receiver.ask("heal", after_s=0.3)
        result = pair.sender.finish()
    assert result["status"] == 0
    assert result["num_completed"] > 10
    assert 0.3 < result["after_ns"] / 1e9 < 4 * nominal_s(16)


def test_a_receiver_that_is_never_ready_ends_in_status_13(pair: Pair) -> None:
    """Code 24 waits 40.96 ms; 3 retries make 123 ms at least until IBV_WC_RNR_RETRY_EXC_ERR."""
    with pair.connected(ConnectionSpec(rnr_retries=3, rnr_timer_code=24)):
        result = pair.sender.ask("trial", traffic="refused", limit_s=10)
    assert result["status"] == RNR_RETRIES_EXCEEDED
    assert 3 * 0.04096 <= result["after_ns"] / 1e9 <= 3 * 0.04096 * LATEST + 0.05
