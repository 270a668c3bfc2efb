"""Workloads as tables of transfers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.netsim.workloads import WORKLOADS
from fabrictune.netsim.workloads.all_to_all import AllToAllSpec, make_all_to_all
from fabrictune.netsim.workloads.flow_sizes import FLOW_SIZES
from fabrictune.netsim.workloads.incast import IncastSpec, make_incast
from fabrictune.netsim.workloads.permutation import PermutationSpec, make_permutation
from fabrictune.netsim.workloads.poisson import PoissonSpec, make_poisson
from fabrictune.netsim.workloads.storage import StorageSpec, make_storage
from tests.netsim.conftest import one_switch


def test_incast_sends_from_the_first_others_to_the_receiver() -> None:
    """NIC 1 receives, so 0, 2 and 3 send."""
    queue_pairs, traffic = make_incast(IncastSpec(senders=3, message_bytes=500, receiver=1), one_switch(5), 0)
    assert queue_pairs.source_nic_Q.tolist() == [0, 2, 3]
    assert queue_pairs.destination_nic_Q.tolist() == [1, 1, 1]
    assert traffic.bytes_N.tolist() == [500, 500, 500]
    assert traffic.qp_N.tolist() == [0, 1, 2]


def test_permutation_gives_everyone_one_partner_each_way() -> None:
    """No NIC sends to itself, whatever the seed."""
    for seed in range(20):
        queue_pairs, _ = make_permutation(PermutationSpec(message_bytes=1), one_switch(7), seed)
        assert queue_pairs.source_nic_Q.tolist() == list(range(7))
        assert sorted(queue_pairs.destination_nic_Q.tolist()) == list(range(7))
        assert (queue_pairs.destination_nic_Q != queue_pairs.source_nic_Q).all()


def test_permutation_follows_the_seed() -> None:
    """The same seed gives the same partners, another others."""
    spec, fabric = PermutationSpec(message_bytes=1), one_switch(16)
    first, again, other = (make_permutation(spec, fabric, seed)[0].destination_nic_Q for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            IncastSpec(senders=5, message_bytes=1),
            "incast.senders: 5 senders\n  allowed: 1 to 4, the fabric's other NICs",
        ),
        (
            IncastSpec(senders=0, message_bytes=1),
            "incast.senders: 0 senders\n  allowed: 1 to 4, the fabric's other NICs",
        ),
        (
            IncastSpec(senders=1, message_bytes=1, receiver=5),
            "incast.receiver: NIC 5\n  allowed: 0 to 4, the fabric's NICs",
        ),
        (IncastSpec(senders=1, message_bytes=-1), "message: -1 B\n  allowed: 0 B or more"),
    ],
)
def test_an_incast_that_does_not_fit_is_refused(spec: IncastSpec, message: str) -> None:
    """Five hosts stand under the switch."""
    with pytest.raises(InputError) as error:
        make_incast(spec, one_switch(5), 0)
    assert str(error.value) == message


def test_every_workload_has_its_spec_and_summary() -> None:
    """The table is what a scenario file chooses from."""
    assert {name: workload.spec for name, workload in WORKLOADS.items()} == {
        "incast": IncastSpec,
        "permutation": PermutationSpec,
        "all_to_all": AllToAllSpec,
        "poisson": PoissonSpec,
        "storage": StorageSpec,
    }


def test_all_to_all_takes_turns() -> None:
    """Four NICs: twelve messages, everyone's first to its right neighbour."""
    queue_pairs, traffic = make_all_to_all(AllToAllSpec(message_bytes=9), one_switch(4), 0)
    assert queue_pairs.source_nic_Q.tolist() == [0, 1, 2, 3] * 3
    assert queue_pairs.destination_nic_Q.tolist() == [1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2]
    assert traffic.bytes_N.tolist() == [9] * 12


def test_storage_writes_in_bursts() -> None:
    """Three writers, two servers, two bursts 5 us apart: writer c goes to server 3 + c modulo 2."""
    spec = StorageSpec(servers=2, message_bytes=7, bursts=2, interval_ns=5_000)
    queue_pairs, traffic = make_storage(spec, one_switch(5), 0)
    assert queue_pairs.destination_nic_Q.tolist() == [3, 4, 3] * 2
    assert traffic.start_ps_N.tolist() == [0] * 3 + [5_000_000] * 3


@pytest.mark.parametrize(("name", "mean_bytes"), [("web_search", 1_711_250.0), ("hadoop", 120_420.75)])
def test_sizes_have_their_published_mean(name: str, mean_bytes: float) -> None:
    """Each piece's middle by its share, summed by hand; a large sample comes within four standard errors."""
    sizes = FLOW_SIZES[name]
    assert sizes.mean_bytes == pytest.approx(mean_bytes)
    sample = sizes.sample(np.random.default_rng(1).random(200_000)).astype(float)
    assert abs(sample.mean() - mean_bytes) < 4 * sample.std() / np.sqrt(len(sample))


def test_poisson_offers_the_load_it_was_asked_for() -> None:
    """Hadoop flows at 40 % of sixteen NICs of 100G for 20 ms: within four standard errors of the bytes and the gaps."""
    spec = PoissonSpec(load_fraction=0.4, duration_ns=20_000_000, sizes="hadoop")
    queue_pairs, traffic = make_poisson(spec, one_switch(16), 0)
    flows = traffic.bytes_N.astype(float)
    offered = flows.sum() * 8 / (16 * 100e9 * 0.02)
    assert abs(offered - 0.4) < 4 * 0.4 * np.sqrt((flows**2).mean() / flows.mean() ** 2 / len(flows))
    assert (np.diff(traffic.start_ps_N) >= 0).all()
    assert (queue_pairs.source_nic_Q != queue_pairs.destination_nic_Q).all()
    gaps = np.diff(traffic.start_ps_N[queue_pairs.source_nic_Q == 3])
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.15), "exponential gaps vary as much as their mean"


def test_a_longer_time_begins_the_same() -> None:
    """Each NIC has its own stream, so that the first half of 2 ms is the whole of 1 ms."""
    short, long = (
        make_poisson(PoissonSpec(load_fraction=0.3, duration_ns=duration), one_switch(4), 7)[1].start_ps_N
        for duration in (1_000_000, 2_000_000)
    )
    assert set(short.tolist()) <= set(long.tolist())


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: PoissonSpec(load_fraction=1.0, duration_ns=1), "load: 1.0"),
        (lambda: PoissonSpec(load_fraction=0.5, duration_ns=0), "duration: 0 ns"),
        (lambda: PoissonSpec(load_fraction=0.5, duration_ns=1, sizes="hadup"), "did you mean 'hadoop'"),
        (
            lambda: make_poisson(PoissonSpec(load_fraction=0.9, duration_ns=10**13, sizes="hadoop"), one_switch(4), 0),
            "shorten `duration`",
        ),
        (lambda: make_storage(StorageSpec(servers=5, message_bytes=1), one_switch(5), 0), "storage.servers: 5 of 5"),
        (
            lambda: make_storage(
                StorageSpec(servers=1, message_bytes=1, bursts=94, interval_ns=10**14), one_switch(5), 0
            ),
            "storage.bursts: the last at 9300000000000000000 ps",
        ),
        (
            lambda: make_storage(StorageSpec(servers=1, message_bytes=1, bursts=0), one_switch(5), 0),
            "storage.bursts: 0",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused(make: Callable[[], object], found: str) -> None:
    """Before any memory is taken."""
    with pytest.raises(InputError) as error:
        make()
    assert found in str(error.value)


SMALLEST: dict[str, dict[str, Any]] = {
    "incast": {"senders": 2, "message_bytes": 1000},
    "permutation": {"message_bytes": 1000},
    "all_to_all": {"message_bytes": 1000},
    "poisson": {"load_fraction": 0.1, "duration_ns": 100_000_000},
    "storage": {"servers": 1, "message_bytes": 1000},
}


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_a_workload_sends_in_the_priority_it_is_told(name: str) -> None:
    """Switches with several priorities put its packets into the queue of that number."""
    spec = WORKLOADS[name].spec(**SMALLEST[name], priority=5)
    queue_pairs, _ = WORKLOADS[name].make(spec, one_switch(5), 0)
    assert set(queue_pairs.priority_Q.tolist()) == {5}
