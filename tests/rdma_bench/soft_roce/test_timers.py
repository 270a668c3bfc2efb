"""A real verbs device retransmits, gives up and recovers when the model says."""

from collections.abc import Callable

import pytest

from fabrictune.rdma_bench.measurement.pair import WorkerPair
from fabrictune.rdma_bench.measurement.timers import TimerPlan, measure_timers
from fabrictune.rdma_bench.timers.trials import RETRIES_EXCEEDED, SUCCESS
from fabrictune.rdma_bench.verbs.endpoint import ConnectionSpec
from tests.patience import patience
from tests.rdma_bench.soft_roce.tries import first_good

pytestmark = pytest.mark.real

RNR_RETRIES_EXCEEDED = 13
EARLIEST, LATEST = 0.85, 1.15  # of the model's time; the driver counts whole jiffies of 4 ms


def timely(ratio: Callable[[], float]) -> float:
    """Return a try that is soon enough: a machine that is kept waiting is late, and never early."""
    return first_good(ratio, lambda found: found <= LATEST)


def nominal_s(exponent: int) -> float:
    """Return the standard's timeout."""
    return 4.096e-6 * float(2**exponent)


def detection_ratio(pair: WorkerPair, exponent: int, retries: int) -> float:
    """Return after how long a write over a dead path fails, of the model's R + 1 waits."""
    model_s = nominal_s(exponent) * (retries + 1)
    with pair.connected(ConnectionSpec(timeout_exponent=exponent, retries=retries)):
        pair.receiver.ask("cut")
        result = pair.sender.ask("trial", limit_s=3 * model_s + patience(5), timeout_s=60)
    assert result["status"] == RETRIES_EXCEEDED
    return float(result["after_ns"]) / 1e9 / model_s


@pytest.mark.parametrize(("exponent", "retries"), [(14, 0), (14, 6), (15, 3), (16, 1), (17, 0), (18, 0)])
def test_a_dead_path_is_noticed_after_one_wait_more_than_retries(pair: WorkerPair, exponent: int, retries: int) -> None:
    """R + 1 waits of 4.096 us * 2**T: T 14 and R 6 make 7 * 67.1 = 470 ms, and at most 15 % more."""
    assert EARLIEST <= timely(lambda: detection_ratio(pair, exponent, retries)) <= LATEST


@pytest.mark.sweep
@pytest.mark.parametrize("exponent", range(14, 19))
@pytest.mark.parametrize("retries", range(7))
def test_every_setting_is_as_the_model_says(pair: WorkerPair, exponent: int, retries: int) -> None:
    """35 settings, of 67 ms to 7.5 s."""
    assert EARLIEST <= timely(lambda: detection_ratio(pair, exponent, retries)) <= LATEST


def test_traffic_resumes_with_the_next_retransmission(pair: WorkerPair) -> None:
    """T 16 retransmits every 268 ms. Healed 300 ms after the cut, and the time that takes, it waits for the next."""
    plan = TimerPlan(exponents=(16,), retries=(6,), cuts_ns=(300_000_000,), by_command=True)

    def resumed_ratio() -> float:
        (trial,) = measure_timers(pair, plan).trials
        assert trial.status == SUCCESS
        assert trial.num_retransmissions >= 2
        return trial.after_ns / 1e9 / (trial.num_retransmissions * nominal_s(16))

    assert EARLIEST <= timely(resumed_ratio) <= LATEST


def test_continuous_traffic_stalls_and_goes_on(pair: WorkerPair) -> None:
    """Cut for 300 ms with writes on their way: they stall for that at least, and then go on; none is lost."""
    plan = TimerPlan(
        exponents=(16,),
        retries=(6,),
        cuts_ns=(300_000_000,),
        by_command=True,
        traffic="continuous",
        limit_s=patience(20),
    )
    (trial,) = measure_timers(pair, plan).trials
    assert trial.status == SUCCESS
    assert trial.after_ns / 1e9 > 0.3
    assert trial.num_retransmissions >= 1


def test_a_receiver_that_is_never_ready_ends_in_status_13(pair: WorkerPair) -> None:
    """Code 28 waits 163.84 ms, 40 jiffies; 3 retries make 492 ms until IBV_WC_RNR_RETRY_EXC_ERR."""

    def refused_ratio() -> float:
        with pair.connected(ConnectionSpec(rnr_retries=3, rnr_timer_code=28)):
            result = pair.sender.ask("trial", traffic="refused", limit_s=patience(10))
        assert result["status"] == RNR_RETRIES_EXCEEDED
        return float(result["after_ns"]) / 1e9 / (3 * 0.16384)

    assert EARLIEST <= timely(refused_ratio) <= LATEST
