"""Losses with the number of hosts and of queue pairs, and events of counters."""

from pathlib import Path

import pytest

from fabrictune.rdma_bench.counters.differences import compare_snapshots
from fabrictune.rdma_bench.counters.snapshots import read_snapshot
from fabrictune.validate.fit.congestion import counter_rates, fit_losses
from fabrictune.validate.fit.fit import model_all
from fabrictune.validate.fit.series import Series
from fabrictune.validate.fit.verdicts import Verdict
from tests.fabrictune.validate.fit.made_up import KNOWN, SIZES, TRUE, collective, drawn, perftest

GOLDEN = Path(__file__).parents[3] / "golden" / "counters"


def with_loss(hosts: tuple[int, ...], loss: float, spread: float = 0.01) -> list[Series]:
    """Return all-reduces whose rate falls by `loss` with each doubling of hosts from 2 on."""
    made = []
    for doublings, num_hosts in enumerate(hosts):
        true = {**TRUE, "network.rate": TRUE["network.rate"] / (1 - loss) ** doublings}
        made += drawn(((collective(8 * num_hosts, num_hosts), SIZES),), doublings, spread=spread, true=true)
    return made


def test_the_loss_of_each_doubling_is_found() -> None:
    (loss,) = fit_losses(model_all(with_loss((2, 4, 8, 16), 0.2), "ring"), KNOWN)
    assert loss.loss_fraction == pytest.approx(0.2, abs=0.02)
    assert loss.low_fraction <= 0.2 <= loss.high_fraction
    assert (loss.of, loss.counts, loss.verdict) == ("hosts", (2, 4, 8, 16), Verdict.WELL)


def test_two_numbers_of_hosts_are_weak() -> None:
    """A line through two points leaves no error: the next two doublings are named."""
    (loss,) = fit_losses(model_all(with_loss((2, 4), 0.2), "ring"), KNOWN)
    assert loss.verdict == Verdict.WEAK
    assert loss.next_step == "add runs on 8 and 16 hosts"


def test_one_number_of_hosts_says_nothing() -> None:
    assert fit_losses(model_all(with_loss((4,), 0.2), "ring"), KNOWN) == []


def test_queue_pairs_of_perftest_are_flows() -> None:
    """The rate of one program on 1, 2 and 4 queue pairs, the same here."""
    keys = [(perftest("RDMA_Write BW", number), SIZES[:24]) for number in (1, 2, 4)]
    (loss,) = fit_losses(model_all(drawn(keys, seed=1, spread=0.01), "ring"), KNOWN)
    assert loss.of == "queue pairs"
    assert loss.low_fraction <= 0 <= loss.high_fraction


def test_counters_are_summed_over_devices_and_taken_by_the_gigabyte() -> None:
    """Of one device the largest of a class counts: those of priorities are part of the port's."""
    rates = {
        one.counter_class: one
        for one in counter_rates(
            compare_snapshots(read_snapshot(GOLDEN / "before.txt"), read_snapshot(GOLDEN / "after.txt"))
        )
    }
    assert rates, "the golden snapshots have events"
    assert all(one.amount >= 0 for one in rates.values())
    assert all(one.per_gb == -1 or one.per_gb >= 0 for one in rates.values())
