"""Runs of hosts under one switch, whose results can be worked out by hand.

The law compiler is imported only when a case runs, so that listing the cases is quick.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache

import numpy as np

from fabrictune.cc.interface import CompiledLaw
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.rocev2 import WIRE_OVERHEAD_BYTES
from fabrictune.netsim.config.faults import Fault
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.faults.timeline import FaultTimeline
from fabrictune.topology.fabric import Fabric

GBPS = 10**9
HOST_CABLE_MM = 2_000
HOST_DELAY_PS = 5 * HOST_CABLE_MM
MTU_BYTES = 4096
FULL_FRAME_BYTES = MTU_BYTES + WIRE_OVERHEAD_BYTES


@cache
def run_incast(
    senders: int,
    message_bytes: int,
    rate_bps: int,
    config: PacketConfig,
    *,
    law: str = "none",
    cable_mm: int = HOST_CABLE_MM,
    seed: int = 0,
    messages: int = 1,
    faults: tuple[Fault, ...] = (),
) -> RunRecord:
    """Return the record of `senders` NICs sending to NIC 0, each so many messages at once, all under one switch."""
    from fabrictune.cc.compiler import compile_law
    from fabrictune.cc.laws import load_law
    from fabrictune.netsim.packet import run
    from fabrictune.netsim.workloads.incast import IncastSpec, make_incast
    from fabrictune.netsim.workloads.table import one_message_each
    from fabrictune.topology.hashing import HashSpec
    from fabrictune.topology.routing import build_network

    fabric = one_switch(senders + 1, rate_bps, cable_mm)
    queue_pairs, once = make_incast(IncastSpec(senders=senders, message_bytes=message_bytes), fabric, 0)
    _, several = one_message_each(
        np.tile(once.source_N, messages), np.tile(once.destination_N, messages), message_bytes
    )
    traffic = replace(several, qp_N=np.tile(once.qp_N, messages))
    network = build_network(fabric, queue_pairs, HashSpec())
    return run(
        network,
        traffic,
        compile_law(load_law(law)),
        config,
        seed=seed,
        faults=FaultTimeline.of(network.fabric, faults, config),
    )


@dataclass(frozen=True, kw_only=True)
class SwitchFlow:
    """A message on a queue pair of its own."""

    source: int
    destination: int
    num_bytes: int
    priority: int = 3
    start_ps: int = 0


def run_flows(
    flows: Sequence[SwitchFlow], rate_bps: int, config: PacketConfig, *, cable_mm: int = HOST_CABLE_MM
) -> RunRecord:
    """Return the record of messages between NICs under one switch, without congestion control."""
    from fabrictune.netsim.packet import run
    from fabrictune.netsim.workloads.table import one_message_each
    from fabrictune.topology.hashing import HashSpec
    from fabrictune.topology.routing import build_network

    source_N, destination_N, bytes_N, priority_N, start_ps_N = np.array([astuple(flow) for flow in flows]).T.copy()
    pairs, traffic = one_message_each(source_N, destination_N, bytes_N, start_ps_N=start_ps_N)
    fabric = one_switch(int(max(source_N.max(), destination_N.max())) + 1, rate_bps, cable_mm)
    network = build_network(fabric, replace(pairs, priority_Q=priority_N), HashSpec())
    return run(network, traffic, without_law(), config)


@cache
def without_law() -> CompiledLaw:
    """Return the compiled law that does nothing."""
    from fabrictune.cc.compiler import compile_law
    from fabrictune.cc.laws import load_law

    return compile_law(load_law("none"))


@cache
def one_switch(num_hosts: int, rate_bps: int, cable_mm: int) -> Fabric:
    """Return hosts of one NIC each under one switch."""
    from fabrictune.topology.builders.clos import ClosSpec, build_clos

    return build_clos(
        ClosSpec(
            num_hosts=num_hosts,
            hosts_per_tor_set=num_hosts,
            nics_per_host=1,
            tiers=2,
            nic_rate_bps=rate_bps,
            uplink_rate_bps=rate_bps,
            downlink_split=1,
            uplinks_per_tor=1,
            host_cable_mm=cable_mm,
        )
    )


def wire_bytes(message_bytes: int) -> int:
    """Return what a message takes on the wire."""
    return message_bytes + -(-message_bytes // MTU_BYTES) * WIRE_OVERHEAD_BYTES


def incast_finish_ps(senders: int, message_bytes: int, rate_bps: int) -> int:
    """Return when the last byte of an N:1 incast under one switch arrives, if the switch never idles.

    The first packets reach the switch together, after their serialization and the cable; from then on the receiver's
    port is busy with every byte of every sender, and the last crosses its cable.
    """
    first_bytes = min(message_bytes, MTU_BYTES) + WIRE_OVERHEAD_BYTES
    return (senders * wire_bytes(message_bytes) + first_bytes) * 8 * 10**12 // rate_bps + 2 * HOST_DELAY_PS


def last_finish_us(
    senders: int,
    message_bytes: int,
    rate_bps: int,
    *,
    law: str = "none",
    wire_overhead_bytes: int = WIRE_OVERHEAD_BYTES,
) -> float:
    """Return when the last message of an incast has arrived."""
    config = PacketConfig(wire_overhead_bytes=wire_overhead_bytes)
    record = run_incast(senders, message_bytes, rate_bps, config, law=law)
    return float(record.tables["transfers"]["finish_ps"].max()) / 1e6
