"""PFC deadlock: three switches in a ring whose paths wait for one another stop forever, a CLOS does not.

Host i sends to host i + 2 through switches i, i + 1 and i + 2, so every link of the ring carries its own host's data
and the previous host's: more than it can. Each buffer fills with data for the next link, and each link is paused.
"""

from functools import cache

import numpy as np

from fabrictune.conformance.netsim.one_switch import FULL_FRAME_BYTES, GBPS
from fabrictune.foundation.cases import Case, exactly
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import PfcConfig
from fabrictune.topology.network import NO_PORT, Network, RoutingEpoch

NUM_SWITCHES = 3
LINK_RATE_BPS = 100 * GBPS
_CONFIG = PacketConfig(pfc=PfcConfig(xoff_bytes=20 * FULL_FRAME_BYTES, xon_bytes=10 * FULL_FRAME_BYTES))
_HU = "Hu et al., HotNets 2016: {}"


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        Case(
            name="netsim.pfc-deadlock-ring",
            source=_HU.format("a cyclic buffer dependency over three switches; the ring that a finding names"),
            unit="ports",
            **exactly(NUM_SWITCHES),
            run=_ports_of_the_ring,
        ),
        Case(
            name="netsim.pfc-deadlock-finishes",
            source=_HU.format("nothing crosses a deadlock; transfers that finish"),
            unit="transfers",
            **exactly(0),
            run=lambda: float((ring_record().tables["transfers"]["finish_ps"] >= 0).sum()),
        ),
        Case(
            name="netsim.pfc-deadlock-on-clos",
            source="paths that go up and then down cannot wait in a ring: deadlocks in an overloaded fat tree",
            unit="deadlocks",
            **exactly(0),
            run=_deadlocks_of_a_fat_tree,
        ),
    )


def ring_network() -> Network:
    """Return three switches in a ring, a host at each, and a path from each host on to the one behind the next."""
    from fabrictune.topology.draft import FabricDraft
    from fabrictune.topology.queue_pairs import make_queue_pairs

    draft = FabricDraft("ring")
    hosts = [draft.add_host(f"host{number}") for number in range(NUM_SWITCHES)]
    switches = [draft.add_switch(f"switch{number}") for number in range(NUM_SWITCHES)]
    for host, switch, following in zip(hosts, switches, np.roll(switches, -1), strict=True):
        draft.add_link((host, "nic0"), (switch, "down"), rate_bps=LINK_RATE_BPS, delay_ps=10_000)
        draft.add_link((switch, "on"), (int(following), "back"), rate_bps=LINK_RATE_BPS, delay_ps=10_000)
    nic_Q = 4 * np.arange(NUM_SWITCHES)  # four ports were added for each switch
    down_Q, on_Q = nic_Q + 1, nic_Q + 2
    port_QDH = np.full((NUM_SWITCHES, 2, 4), NO_PORT, np.int32)
    port_QDH[:, 0] = np.stack([nic_Q, on_Q, np.roll(on_Q, -1), np.roll(down_Q, -2)], axis=1)
    port_QDH[:, 1, :3] = np.stack([np.roll(nic_Q, -2), np.roll(on_Q, -2), down_Q], axis=1)
    number_Q = np.arange(NUM_SWITCHES)
    return Network(
        fabric=draft.finish(),
        queue_pairs=make_queue_pairs(number_Q, np.roll(number_Q, -2)),
        epochs=(RoutingEpoch(start_ps=0, port_QDH=port_QDH),),
    )


@cache
def ring_record() -> RunRecord:
    """Return the record of 2 MB from every host of the ring."""
    from fabrictune.cc.compiler import compile_law
    from fabrictune.cc.laws import load_law
    from fabrictune.netsim.packet import run
    from fabrictune.netsim.workloads.table import one_message_each

    network = ring_network()
    pairs = network.queue_pairs
    _, traffic = one_message_each(pairs.source_nic_Q, pairs.destination_nic_Q, 2_000_000)
    return run(network, traffic, compile_law(load_law("none")), _CONFIG)


def _ports_of_the_ring() -> float:
    (finding,) = [finding for finding in ring_record().findings if finding.id == "netsim.pfc-deadlock"]
    return float(sum(f"switch{number}:on -> " in finding.entity for number in range(NUM_SWITCHES)))


def _deadlocks_of_a_fat_tree() -> float:
    from fabrictune.cc.compiler import compile_law
    from fabrictune.cc.laws import load_law
    from fabrictune.netsim.packet import run
    from fabrictune.netsim.workloads.permutation import PermutationSpec, make_permutation
    from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
    from fabrictune.topology.hashing import HashSpec
    from fabrictune.topology.routing import build_network

    fabric = build_fat_tree(FatTreeSpec(radix=4, link_rate_bps=LINK_RATE_BPS, cable_mm=2_000))
    pairs, traffic = make_permutation(PermutationSpec(message_bytes=2_000_000), fabric, 1)
    record = run(build_network(fabric, pairs, HashSpec()), traffic, compile_law(load_law("none")), _CONFIG)
    assert record.tables["ports"]["pauses"].sum() > 0, "switches must pause to show that they resume"
    return float(sum(finding.id == "netsim.pfc-deadlock" for finding in record.findings))
