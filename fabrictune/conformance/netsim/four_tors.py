"""Sixteen hosts under four ToRs with an uplink per host, each sending to its counterpart under the next ToR.

Flows that share an uplink share the downlink behind it as well, and no other: one bottleneck each, where FIFO queues
and pauses share as max-min fairness does, to within one packet of those that a buffer holds.

What is slow to import is imported only when a case runs, so that listing the cases is quick.
"""

from collections.abc import Sequence

import numpy as np

from fabrictune.conformance.netsim.one_switch import GBPS, MTU_BYTES
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.faults import Fault
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.faults.timeline import FaultTimeline
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.network import Network

HOSTS_PER_TOR, NUM_TORS = 4, 4
NUM_HOSTS = HOSTS_PER_TOR * NUM_TORS
LINK_RATE_BPS = 100 * GBPS
BUFFERED_PACKETS = 30
LOSSLESS = PacketConfig(
    wire_overhead_bytes=0,
    ack_bytes=1,
    ecn=EcnConfig(enabled=False),
    pfc=PfcConfig(xoff_bytes=BUFFERED_PACKETS * MTU_BYTES, headroom_bytes=200_000),
)


def four_tors() -> Fabric:
    """Return the fabric."""
    from fabrictune.topology.builders.clos import ClosSpec, build_clos

    return build_clos(
        ClosSpec(
            num_hosts=NUM_HOSTS,
            hosts_per_tor_set=HOSTS_PER_TOR,
            nics_per_host=1,
            tiers=2,
            nic_rate_bps=LINK_RATE_BPS,
            uplink_rate_bps=LINK_RATE_BPS,
            downlink_split=1,
            uplinks_per_tor=HOSTS_PER_TOR,
        )
    )


def ring_of_tors(hash_seed: int) -> Network:
    """Return the network of all hosts sending round."""
    from fabrictune.topology.hashing import HashSpec
    from fabrictune.topology.queue_pairs import make_queue_pairs
    from fabrictune.topology.routing import build_network

    source_Q = np.arange(NUM_HOSTS)
    pairs = make_queue_pairs(source_Q, (source_Q + HOSTS_PER_TOR) % NUM_HOSTS)
    return build_network(four_tors(), pairs, HashSpec(seed=hash_seed))


def run_messages(
    network: Network,
    message_bytes: int,
    config: PacketConfig,
    *,
    faults: Sequence[Fault] = (),
    probe: ProbeConfig | None = None,
) -> RunRecord:
    """Return the record of one message a queue pair, without a law."""
    from fabrictune.cc.compiler import compile_law
    from fabrictune.cc.laws import load_law
    from fabrictune.netsim.packet import run
    from fabrictune.netsim.workloads.table import one_message_each

    pairs = network.queue_pairs
    _, traffic = one_message_each(pairs.source_nic_Q, pairs.destination_nic_Q, message_bytes)
    return run(
        network,
        traffic,
        compile_law(load_law("none")),
        config,
        faults=FaultTimeline.of(network.fabric, faults, config),
        probe=probe,
    )
