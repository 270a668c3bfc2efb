"""Flows between a job's neighbours: one connection a pair, as many queue pairs as asked for."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.collectives.expansion import ExpansionSpec
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.scenario.jobs import JobSpec, NeighboursSpec, make_neighbours
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.placement import place

LAYOUT = ParallelLayout(tp=8, dp=8)


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """Return eight hosts of eight NICs under one ToR set."""
    return build_clos(ClosSpec(num_hosts=8, hosts_per_tor_set=8, tiers=2))


def test_every_rank_sends_to_the_next_of_its_ring(fabric: Fabric) -> None:
    """64 ranks, 64 connections; tensor groups stay inside their hosts and have none."""
    queue_pairs, traffic = make_neighbours(NeighboursSpec(layout=LAYOUT, axes=("dp", "tp")), fabric, 0)
    assert len(queue_pairs) == len(traffic) == 64
    assert ((queue_pairs.destination_nic_Q - queue_pairs.source_nic_Q) % 64 == 8).all()


def test_a_message_is_split_over_its_queue_pairs(fabric: Fabric) -> None:
    """10 bytes over four queue pairs: 3, 3, 2, 2."""
    spec = NeighboursSpec(layout=LAYOUT, message_bytes=10, expansion=ExpansionSpec(qps_per_connection=4))
    queue_pairs, traffic = make_neighbours(spec, fabric, 0)
    assert len(queue_pairs) == 256
    assert traffic.bytes_N[:4].tolist() == [3, 3, 2, 2]
    assert traffic.bytes_N.sum() == 640
    assert len(set(zip(queue_pairs.source_nic_Q.tolist(), queue_pairs.source_qpn_Q.tolist(), strict=True))) == 256


def test_a_planned_placement_goes_before_the_strategy(fabric: Fabric) -> None:
    """What a plan has found is used as it is, and does not make the job another one."""
    planned = place(LAYOUT, fabric, "random", seed=4)
    spec = JobSpec(layout=LAYOUT)
    assert replace(spec, planned=planned).place_on(fabric) is planned
    assert replace(spec, planned=planned) == spec


def test_a_random_placement_follows_its_seed(fabric: Fabric) -> None:
    """The same seed the same hosts, another seed others, each host's ranks together."""
    hosts = [
        JobSpec(layout=LAYOUT, placement="random", placement_seed=seed).place_on(fabric).host_R for seed in (3, 3, 4)
    ]
    assert np.array_equal(hosts[0], hosts[1])
    assert not np.array_equal(hosts[0], hosts[2])
    assert (hosts[0].reshape(8, 8) == hosts[0][::8, None]).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"placement_seed": -1}, "placement_seed: -1\n  allowed: 0 to 2**63 - 1"),
        ({"message_bytes": 0}, "message_bytes: 0\n  allowed: a byte for each queue pair of a connection, or more"),
        ({"placement": "randm"}, "placement: unknown placement 'randm'\n  did you mean 'random'?\n"),
    ],
)
def test_a_job_that_cannot_be_is_refused(settings: dict[str, object], message: str) -> None:
    """Each setting is checked where it is defined."""
    with pytest.raises(InputError) as raised:
        NeighboursSpec(layout=LAYOUT, **settings)  # type: ignore[arg-type]  # some of them are wrong on purpose
    assert str(raised.value).startswith(message)
