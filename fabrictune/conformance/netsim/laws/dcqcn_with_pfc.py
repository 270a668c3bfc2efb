"""PFC alone and with DCQCN: the reasons its paper was written, and one that later ones missed.

The testbed: four ToRs of five hosts in two pods, two uplinks a switch, 40 Gb/s everywhere. Flows are watched once 8 ms
have gone by. PFC shares a port evenly among the ports that feed it, however many flows are behind each; and it stops
whole links, so that a flow loses to senders it shares no link with.

A notification takes adapters some 55 us. For so long a sender that is faster than its receiver goes on at line rate,
and the queue that this makes may be the one that reaches PFC's threshold.

What is slow to import is imported only when a case runs, so that listing the cases is quick.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from statistics import median

import numpy as np

from fabrictune.conformance.netsim.one_switch import GBPS, HOST_DELAY_PS
from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.cases import Case, around, exactly
from fabrictune.foundation.metrics.formulas import jain_fairness_index
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.config.transport import CnpConfig
from fabrictune.topology.fabric import Fabric

_TESTBED = "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015, section 2.2"
_PFC_ALONE = PacketConfig(mtu_bytes=1000, ecn=EcnConfig(enabled=False))
_WITH_DCQCN = PacketConfig(
    mtu_bytes=1000,
    ecn=EcnConfig(kmin_bytes=5_000, kmax_bytes=200_000, pmax_fraction=0.01),
    cnp=CnpConfig(interval_ns=50_000),
)
_CONFIGS = {"none": _PFC_ALONE, "dcqcn": _WITH_DCQCN}
_SETTLED_PS, _END_NS = 8_000_000_000, 20_000_000
_RECEIVER, _BESIDE_IT = 15, 16  # under the fourth ToR
_FAR = (0, 5, 10)  # under the first, second and third
_VICTIM = (4, 5)  # from the first ToR to the second
_BY_VICTIM, _ELSEWHERE = (0, 1, 2, 3), (10, 11)  # senders under the victim's ToR, and under the third
_SEEDS_OF_SHARED_UPLINK = (0, 1, 3, 5)  # under which the victim leaves its ToR through a port of the incast

_NIC_BPS, _RECEIVER_BPS = 100 * GBPS, 25 * GBPS
_MESSAGE_BYTES = 20_000_000
_CNP_DELAY_NS = 55_000
_DELAYED_BYTES = (_NIC_BPS - _RECEIVER_BPS) * _CNP_DELAY_NS // (8 * GBPS)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*_parking_lots(), *_victims(), *_slow_notifications())


def _parking_lots() -> tuple[Case, ...]:
    source = f"{_TESTBED}: four hosts send to one; PFC favours the one that has a port of the last ToR to itself"
    return (
        *(
            Case(
                name=f"netsim.pfc-parking-lot.near-host.{num_uplinks}-far-ports",
                source=f"{source}: a share for each port that feeds the receiver's",
                unit="of the receiver's goodput",
                **around(1 / (1 + num_uplinks), 0.03),
                run=partial(_share_of_near_host, hash_seed),
                trust="A",
            )
            for num_uplinks, hash_seed in ((1, 0), (2, 1))
        ),
        Case(
            name="netsim.dcqcn-parking-lot.fairness",
            source=f"{source}, DCQCN none",
            unit="Jain's index",
            expected=1,
            low=0.98,
            high=1,
            run=lambda: jain_fairness_index(_goodputs_bps("dcqcn", _to_receiver((*_FAR, _BESIDE_IT)), 0)),
            trust="B",
        ),
    )


def _victims() -> tuple[Case, ...]:
    source = (
        f"{_TESTBED}: a flow between two ToRs loses when hosts of a third join an incast at the fourth, which it"
        " shares no link with (from memory: 4.5 of 10 Gb/s are left, with DCQCN all); the median of four hash seeds"
    )
    bands = {"none": ("pfc", 0.45, 0.0, 0.85), "dcqcn": ("dcqcn", 1.0, 0.9, 1.5)}
    return tuple(
        Case(
            name=f"netsim.{name}-victim.with-two-more-senders",
            source=source,
            unit="of its rate without them",
            expected=expected,
            low=low,
            high=high,
            run=partial(_left_to_victim, law),
            trust="B",
        )
        for law, (name, expected, low, high) in bands.items()
    )


def _slow_notifications() -> tuple[Case, ...]:
    source = "ns-3-alibabacloud, issue 12: adapters of 100 Gb/s pause on the way to 25 Gb/s where simulators do not"
    threshold = "at a threshold half the delay's queue above what it is without"
    return (
        Case(
            name="netsim.dcqcn-slow-notification.queue",
            source=f"{source}; 55 us at the difference of the rates",
            unit="KB more in the queue",
            **around(_DELAYED_BYTES / 1e3, 0.01),
            run=lambda: (_largest_queue_bytes(_CNP_DELAY_NS) - _largest_queue_bytes(0)) / 1e3,
            trust="A",
        ),
        Case(
            name="netsim.dcqcn-quick-notification.pauses",
            source=f"{source}; {threshold}",
            unit="pauses",
            run=lambda: _pauses(0),
            **exactly(0),
            trust="B",
        ),
        Case(
            name="netsim.dcqcn-slow-notification.pauses",
            source=f"{source}; {threshold}",
            unit="pauses",
            expected=1,
            low=1,
            high=1_000,
            run=lambda: _pauses(_CNP_DELAY_NS),
            trust="B",
        ),
    )


def _to_receiver(hosts: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple((host, _RECEIVER) for host in hosts)


def _share_of_near_host(hash_seed: int) -> float:
    goodput_bps_F = _goodputs_bps("none", _to_receiver((*_FAR, _BESIDE_IT)), hash_seed)
    return float(goodput_bps_F[-1] / goodput_bps_F.sum())


def _left_to_victim(law: str) -> float:
    """Return the victim's rate with two more senders elsewhere over that without, in the median."""
    alone, joined = (
        [_goodputs_bps(law, (_VICTIM, *_to_receiver(senders)), seed)[0] for seed in _SEEDS_OF_SHARED_UPLINK]
        for senders in (_BY_VICTIM, (*_BY_VICTIM, *_ELSEWHERE))
    )
    return median(float(after / before) for before, after in zip(alone, joined, strict=True))


@cache
def _goodputs_bps(law: str, pairs: tuple[tuple[int, int], ...], hash_seed: int) -> FloatArray:
    """Return the rates of long flows between these hosts once settled, shape (F,)."""
    from fabrictune.conformance.netsim.laws.long_flows import goodputs_bps
    from fabrictune.topology.builders.clos import ClosSpec, build_clos

    fabric = build_clos(
        ClosSpec(
            num_hosts=20,
            hosts_per_tor_set=5,
            nics_per_host=1,
            tiers=3,
            nic_rate_bps=40 * GBPS,
            uplink_rate_bps=40 * GBPS,
            downlink_split=1,
            uplinks_per_tor=2,
            tor_sets_per_pod=2,
            num_cores=2,
        )
    )
    config = replace(_CONFIGS[law], time_limit_ns=_END_NS)
    probe = ProbeConfig(interval_ns=100_000, all_flows=True)
    record = _run(fabric, pairs, 10**9, law, config, probe=probe, seed=hash_seed)
    return goodputs_bps(record, _SETTLED_PS, config.mtu_bytes)


def _pauses(delay_ns: int) -> int:
    """Return how often the sender is paused, at a threshold between the queues with and without the delay."""
    xoff_bytes = _largest_queue_bytes(0) + _DELAYED_BYTES // 2
    ports = _to_slow_receiver(delay_ns, PfcConfig(xoff_bytes=xoff_bytes)).tables["ports"]
    return int(ports["pauses"].sum())


@cache
def _largest_queue_bytes(delay_ns: int) -> int:
    """Return the largest queue where nothing is ever paused."""
    ports = _to_slow_receiver(delay_ns, PfcConfig(buffer_bytes=64_000_000)).tables["ports"]
    assert not ports["pauses"].any(), "the buffer holds all"
    return int(ports["max_queue_bytes"].max())


def _to_slow_receiver(delay_ns: int, pfc: PfcConfig) -> RunRecord:
    from fabrictune.topology.draft import FabricDraft

    draft = FabricDraft("to-a-slow-receiver")
    switch = draft.add_switch("tor")
    for name, rate_bps in (("fast", _NIC_BPS), ("slow", _RECEIVER_BPS)):
        draft.add_link((draft.add_host(name), "nic"), (switch, name), rate_bps=rate_bps, delay_ps=HOST_DELAY_PS)
    config = PacketConfig(
        mtu_bytes=1000,
        ecn=EcnConfig(kmin_bytes=400_000, kmax_bytes=1_625_000, pmax_fraction=0.2),
        pfc=pfc,
        cnp=CnpConfig(interval_ns=50_000, generation_delay_ns=delay_ns),
    )
    return _run(draft.finish(), ((0, 1),), _MESSAGE_BYTES, "dcqcn", config)


def _run(
    fabric: Fabric,
    pairs: Sequence[tuple[int, int]],
    message_bytes: int,
    law: str,
    config: PacketConfig,
    *,
    probe: ProbeConfig | None = None,
    seed: int = 0,
) -> RunRecord:
    from fabrictune.conformance.netsim.laws.long_flows import compiled
    from fabrictune.netsim.packet import run
    from fabrictune.netsim.workloads.table import one_message_each
    from fabrictune.topology.hashing import HashSpec
    from fabrictune.topology.routing import build_network

    source_Q, destination_Q = np.array(pairs).T
    queue_pairs, traffic = one_message_each(source_Q, destination_Q, message_bytes)
    network = build_network(fabric, queue_pairs, HashSpec(seed=seed))
    return run(network, traffic, compiled(law), config, seed=seed, probe=probe)
