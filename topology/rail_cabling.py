"""NICs that are cabled to another rail's ToR.

Hosts of one ToR set are cabled alike: NIC r of each goes to the same ToR, or pair of ToRs. So a host is compared with
the cabling that most hosts have which share at least half its ToRs; where its own is rarer, every NIC that differs is
named. A NIC without a rail is known by its port's name. Two hosts that differ have no majority, and none is named.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.finding_rules.fabric import RAIL_MISCABLED
from fabrictune.foundation.records import Confidence, Finding
from fabrictune.topology.fabric import NO_NIC, NO_RAIL, Fabric

MAX_SHOWN_PEERS = 3

Attachment = tuple[int, ...]  # the one or two nodes a NIC is cabled to, in order
Wiring = frozenset[tuple[str, Attachment]]  # of a host, by rail


@dataclass(frozen=True, kw_only=True)
class _Hosts:
    """Hosts by how they are cabled."""

    wiring_of: Mapping[int, Wiring]
    nic_of: Mapping[tuple[int, str], int]  # by host and rail
    hosts_of: Mapping[Wiring, list[int]]


def find_miscabled_rails(fabric: Fabric, shared_fraction: float) -> Iterator[Finding]:
    """Yield a finding for each NIC that is not where the same rail of its host's peers is.

    A peer has at least this fraction of the host's ToRs.
    """
    hosts = _read_hosts(fabric)
    usual_of = _usual_wirings(hosts.hosts_of, shared_fraction)
    for host, wiring in hosts.wiring_of.items():
        if wiring in usual_of:
            usual = usual_of[wiring]
            expected_of = dict(usual)
            for rail, attachment in sorted(wiring):
                if expected_of.get(rail, attachment) != attachment:
                    nic = hosts.nic_of[host, rail]
                    yield _finding(fabric, nic, rail, attachment, expected_of[rail], hosts.hosts_of[usual])


def _read_hosts(fabric: Fabric) -> _Hosts:
    ports_of: dict[int, list[int]] = defaultdict(list)  # by NIC
    for port in np.nonzero(fabric.port_nic_P != NO_NIC)[0].tolist():
        ports_of[int(fabric.port_nic_P[port])].append(port)
    wires: dict[int, dict[str, Attachment]] = defaultdict(dict)
    nic_of: dict[tuple[int, str], int] = {}
    for nic, host in enumerate(fabric.nic_host_C.tolist()):
        ports = ports_of[nic]
        rail_number = int(fabric.nic_rail_C[nic])
        rail = f"port {fabric.port_name_P[ports[0]]}" if rail_number == NO_RAIL else f"rail {rail_number}"
        if (host, rail) not in nic_of:  # a rail's further NICs have no peer to compare with
            nic_of[host, rail] = nic
            wires[host][rail] = tuple(sorted(fabric.port_node_P[fabric.port_peer_P[ports]].tolist()))
    wiring_of = {host: frozenset(wiring.items()) for host, wiring in wires.items()}
    hosts_of: dict[Wiring, list[int]] = defaultdict(list)
    for host, wiring in wiring_of.items():
        hosts_of[wiring].append(host)
    return _Hosts(wiring_of=wiring_of, nic_of=nic_of, hosts_of=hosts_of)


def _usual_wirings(hosts_of: Mapping[Wiring, list[int]], shared_fraction: float) -> dict[Wiring, Wiring]:
    """Return for each wiring the commonest over enough of the same ToRs, where that is commoner than itself."""
    shared_at: dict[int, list[Wiring]] = defaultdict(list)  # wirings of several hosts, by ToR
    for wiring, hosts in hosts_of.items():
        for tor in _tors(wiring) if len(hosts) > 1 else ():
            shared_at[tor].append(wiring)
    usual_of = {}
    for wiring, hosts in hosts_of.items():
        tors = _tors(wiring)
        num_shared = Counter(other for tor in tors for other in shared_at[tor])
        near = [other for other, shared in num_shared.items() if shared >= shared_fraction * len(tors)]
        usual = max(near, key=lambda other: len(hosts_of[other]), default=wiring)
        if len(hosts_of[usual]) > len(hosts):
            usual_of[wiring] = usual
    return usual_of


def _tors(wiring: Wiring) -> list[int]:
    return sorted({tor for _, attachment in wiring for tor in attachment})


def _finding(
    fabric: Fabric, nic: int, rail: str, actual: Attachment, expected: Attachment, peers: list[int]
) -> Finding:
    shown = ", ".join(fabric.node_name_N[peer] for peer in peers[:MAX_SHOWN_PEERS])
    more = f" and {len(peers) - MAX_SHOWN_PEERS} more" if len(peers) > MAX_SHOWN_PEERS else ""
    port = fabric.first_port(nic)
    return RAIL_MISCABLED.finding(
        entity=fabric.nic_label(nic),
        expected=f"{_names(fabric, expected)}, as on {shown}{more}",
        actual=f"{rail} is cabled to {_names(fabric, actual)}",
        confidence=Confidence.CONFIGURED,
        evidence=(fabric.link_label(port),),
    )


def _names(fabric: Fabric, nodes: Attachment) -> str:
    return " and ".join(fabric.node_name_N[node] for node in nodes)
