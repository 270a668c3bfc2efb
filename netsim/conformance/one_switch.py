"""Hosts under one switch, so that every figure can be worked out by hand.

The law compiler is imported only when a case runs, so that listing the cases is quick.
"""

from dataclasses import replace
from functools import cache

import numpy as np

from foundation.records import RunRecord
from foundation.rocev2 import WIRE_OVERHEAD_BYTES
from netsim.config.faults import Fault
from netsim.config.packet import PacketConfig

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
    from cc.compiling import compile_law
    from cc.loading import load_law
    from netsim.packet import run
    from netsim.workloads.incast import IncastSpec, make_incast
    from netsim.workloads.table import one_message_each
    from topology.builders.clos import ClosSpec, build_clos
    from topology.hashing import HashSpec
    from topology.routing import build_network

    one_switch = ClosSpec(
        num_hosts=senders + 1,
        hosts_per_tor_set=senders + 1,
        nics_per_host=1,
        tiers=2,
        nic_rate_bps=rate_bps,
        uplink_rate_bps=rate_bps,
        downlink_split=1,
        uplinks_per_tor=1,
        host_cable_mm=cable_mm,
    )
    fabric = build_clos(one_switch)
    queue_pairs, once = make_incast(IncastSpec(senders=senders, message_bytes=message_bytes), fabric, 0)
    _, several = one_message_each(
        np.tile(once.source_N, messages), np.tile(once.destination_N, messages), message_bytes
    )
    traffic = replace(several, qp_N=np.tile(once.qp_N, messages))
    network = build_network(fabric, queue_pairs, HashSpec())
    return run(network, traffic, compile_law(load_law(law)), config, seed=seed, faults=faults)


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
