"""Fabric: nodes and directed ports as arrays, and the rules they keep, checked when made and never changed afterwards.

A node is a host (server) or a switch. A *port* has one direction: it is where packets leave a node, with a transmitter
of `rate_bps` and a wire of `delay_ps`; a *link* is two ports, each the other's `peer`. A host's ports belong to NICs,
the endpoints of traffic: a NIC has one port, or two where it is attached to two ToRs.

A rule says what holds for every node, port or NIC, and finds the ones for which it does not. Rules come in stages: a
later stage may index with what an earlier one has checked, so checking stops after the first stage with a breach. All
of it is array arithmetic: the 49,152 ports of a 12,288-GPU fabric take some tens of milliseconds.

Shapes: N nodes, P ports, C NICs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.checks import Check, CheckReport, found_checks
from fabrictune.foundation.errors import FabricError, Mistake
from fabrictune.foundation.records import Finding
from fabrictune.foundation.units import LINK_RATES, MAX_LINK_RATE_BPS

NO_NIC = -1  # port of a switch
NO_RAIL = -1
NO_GROUP = -1
UNKNOWN_TIER = -1

MAX_SHOWN = 10  # breaches of one rule that are shown one by one
MAX_PORTS_OF_NIC = 2

Subject = Literal["node", "port", "NIC"]


class NodeKind(IntEnum):
    """Kind of a node."""

    HOST = 0
    SWITCH = 1


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """A network of hosts and switches."""

    name: str
    node_name_N: tuple[str, ...]
    node_kind_N: IntArray  # NodeKind
    node_tier_N: IntArray  # 0 host, 1 ToR or leaf, 2 aggregation or spine, 3 core; UNKNOWN_TIER
    node_group_N: IntArray  # ToR set, pod or other failure domain; NO_GROUP

    port_name_P: tuple[str, ...]  # unique within its node
    port_node_P: IntArray
    port_peer_P: IntArray  # the same link's other direction
    port_rate_bps_P: IntArray
    port_delay_ps_P: IntArray  # propagation: 5 ns a metre of cable
    port_nic_P: IntArray  # NO_NIC on switches

    nic_host_C: IntArray  # node
    nic_rail_C: IntArray  # NO_RAIL
    nic_ipv4_C: IntArray

    notes: tuple[str, ...] = ()  # what was assumed, skipped or guessed when its files were read
    findings: tuple[Finding, ...] = ()  # where these files contradict one another
    checks: tuple[Check, ...] = ()  # by which they were looked at

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                frozen = np.array(value, dtype=np.int64)
                frozen.setflags(write=False)
                object.__setattr__(self, name, frozen)
        mistakes = _check_fabric(self)
        if mistakes:
            raise FabricError(*mistakes)

    def check_files(self) -> CheckReport:
        """Return the checks of the fabric's files, also those that found nothing, with what they found."""
        rules = {check.rule for check in self.checks}
        others = found_checks("files of the fabric", [one for one in self.findings if one.id not in rules])
        return CheckReport(checks=(*self.checks, *others.checks), findings=self.findings)

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.node_name_N)

    @property
    def num_ports(self) -> int:
        """P: twice the number of links."""
        return len(self.port_name_P)

    @property
    def num_nics(self) -> int:
        """C."""
        return len(self.nic_host_C)

    def port_label(self, port: int) -> str:
        """Return `node:port` for people."""
        return f"{self.node_name_N[self.port_node_P[port]]}:{self.port_name_P[port]}"

    def link_label(self, port: int) -> str:
        """Return `node:port -> peer:port` for people, in the port's direction."""
        return f"{self.port_label(port)} -> {self.port_label(int(self.port_peer_P[port]))}"

    def nic_label(self, nic: int) -> str:
        """Return the NIC as `host:port` of its first port."""
        return self.port_label(self.first_port(nic))

    def first_port(self, nic: int) -> int:
        """Return the first port of a NIC."""
        return int(np.argmax(self.port_nic_P == nic))


@dataclass(frozen=True)
class Rule:
    """Rule for every subject; `is_broken` returns one truth value per subject."""

    name: str
    statement: str
    subject: Subject
    is_broken: Callable[[Fabric], BoolArray]


def _check_fabric(fabric: Fabric) -> list[Mistake]:
    """Return every breach of the first stage of rules that has one, at most MAX_SHOWN of a rule one by one."""
    mistakes = _check_shapes(fabric)
    for stage in STAGES:
        if mistakes:
            break
        for rule in stage:
            mistakes.extend(_breaches(fabric, rule))
    return mistakes


def _check_shapes(fabric: Fabric) -> list[Mistake]:
    """Rule `columns-fit`: columns of one kind of row have one length, and there is a node."""
    mistakes = []
    for suffix, rows in (("_N", "nodes"), ("_P", "ports"), ("_C", "NICs")):
        columns = {name: value for name, value in vars(fabric).items() if name.endswith(suffix)}
        shapes = {name: np.shape(value) for name, value in columns.items()}
        if len(set(shapes.values())) > 1 or any(len(shape) != 1 for shape in shapes.values()):
            found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            mistakes.append(
                Mistake(
                    where=f"fabric {fabric.name!r}",
                    found=f"columns of unequal shape: {found}",
                    allowed=f"columns-fit: every column of the {rows} has one entry for each",
                )
            )
    if not fabric.node_name_N:
        mistakes.append(
            Mistake(where=f"fabric {fabric.name!r}", found="no nodes", allowed="not-empty: a fabric has a node")
        )
    return mistakes


def _breaches(fabric: Fabric, rule: Rule) -> Iterator[Mistake]:
    rows = np.nonzero(rule.is_broken(fabric))[0]
    for row in rows[:MAX_SHOWN]:
        yield Mistake(
            where=f"fabric {fabric.name!r}: {_label(fabric, rule.subject, int(row))}",
            found=f"breaks the rule {rule.name}",
            allowed=rule.statement,
        )
    if len(rows) > MAX_SHOWN:
        yield Mistake(
            where=f"fabric {fabric.name!r}",
            found=f"{len(rows) - MAX_SHOWN} more {rule.subject}s break the rule {rule.name}",
            allowed=rule.statement,
        )


def _label(fabric: Fabric, subject: Subject, row: int) -> str:
    """Return a name that can be had even of a fabric whose indices are wrong."""
    if subject == "node":
        return f"node {row} {fabric.node_name_N[row]!r}"
    if subject == "NIC":
        return f"NIC {row}"
    node = int(fabric.port_node_P[row])
    owner = fabric.node_name_N[node] if 0 <= node < fabric.num_nodes else f"node {node}"
    return f"port {row} '{owner}:{fabric.port_name_P[row]}'"


def _outside(index: IntArray, limit: int, lowest: int = 0) -> BoolArray:
    return (index < lowest) | (index >= limit)


def _repeated(number_R: IntArray) -> BoolArray:
    """Mark every number that stood before."""
    is_repeated_R = np.ones(len(number_R), bool)
    is_repeated_R[np.unique(number_R, return_index=True)[1]] = False
    return is_repeated_R


def _numbered(names: Sequence[str]) -> IntArray:
    """Return a number for each name, the same for equal ones."""
    numbers: dict[str, int] = {}
    return np.fromiter((numbers.setdefault(name, len(numbers)) for name in names), np.int64, len(names))


def _is_empty(names: Sequence[str]) -> BoolArray:
    return np.fromiter((not name for name in names), bool, len(names))


def _is_host(fabric: Fabric) -> BoolArray:
    is_host_N: BoolArray = fabric.node_kind_N == NodeKind.HOST
    return is_host_N


def _has_foreign_tier(fabric: Fabric) -> BoolArray:
    tier_N = fabric.node_tier_N
    is_foreign_N: BoolArray = (tier_N != UNKNOWN_TIER) & ((tier_N < 0) | ((tier_N == 0) != _is_host(fabric)))
    return is_foreign_N


def _shares_port_name(fabric: Fabric) -> BoolArray:
    number_P = _numbered(fabric.port_name_P)
    return _repeated(fabric.port_node_P * (number_P.max(initial=0) + 1) + number_P)


def _is_not_mutual(fabric: Fabric) -> BoolArray:
    port_P = np.arange(fabric.num_ports)
    is_lonely_P: BoolArray = (fabric.port_peer_P == port_P) | (fabric.port_peer_P[fabric.port_peer_P] != port_P)
    return is_lonely_P


def _joins_node_to_itself(fabric: Fabric) -> BoolArray:
    is_loop_P: BoolArray = fabric.port_node_P == fabric.port_node_P[fabric.port_peer_P]
    return is_loop_P


def _has_unequal_rates(fabric: Fabric) -> BoolArray:
    differs_P: BoolArray = fabric.port_rate_bps_P != fabric.port_rate_bps_P[fabric.port_peer_P]
    return differs_P


def _is_not_nic_of_host(fabric: Fabric) -> BoolArray:
    is_wrong_P: BoolArray = _is_host(fabric)[fabric.port_node_P] != (fabric.port_nic_P != NO_NIC)
    return is_wrong_P


def _belongs_to_foreign_nic(fabric: Fabric) -> BoolArray:
    has_nic_P = fabric.port_nic_P != NO_NIC
    is_foreign_P = np.zeros(fabric.num_ports, bool)
    is_foreign_P[has_nic_P] = fabric.nic_host_C[fabric.port_nic_P[has_nic_P]] != fabric.port_node_P[has_nic_P]
    return is_foreign_P


def _has_wrong_port_count(fabric: Fabric) -> BoolArray:
    num_ports_C = np.bincount(fabric.port_nic_P[fabric.port_nic_P != NO_NIC], minlength=fabric.num_nics)
    return _outside(num_ports_C, MAX_PORTS_OF_NIC + 1, lowest=1)


STAGES: tuple[tuple[Rule, ...], ...] = (
    (
        Rule("node-named", "a node has a name", "node", lambda f: _is_empty(f.node_name_N)),
        Rule("node-names-differ", "no two nodes share a name", "node", lambda f: _repeated(_numbered(f.node_name_N))),
        Rule("node-kind", "a node is a host or a switch", "node", lambda f: _outside(f.node_kind_N, len(NodeKind))),
        Rule("node-group", "a group is 0 or more, or NO_GROUP", "node", lambda f: f.node_group_N < NO_GROUP),
        Rule("port-named", "a port has a name", "port", lambda f: _is_empty(f.port_name_P)),
        Rule("port-node", "a port is on a node", "port", lambda f: _outside(f.port_node_P, f.num_nodes)),
        Rule("port-peer", "a port has a peer", "port", lambda f: _outside(f.port_peer_P, f.num_ports)),
        Rule(
            "port-rate",
            f"a rate is {LINK_RATES}",
            "port",
            lambda f: _outside(f.port_rate_bps_P, MAX_LINK_RATE_BPS + 1, 1),
        ),
        Rule("port-delay", "a delay is zero or more", "port", lambda f: f.port_delay_ps_P < 0),
        Rule("port-nic", "a port's NIC exists, or is NO_NIC", "port", lambda f: _outside(f.port_nic_P, f.num_nics, -1)),
        Rule("nic-host", "a NIC is on a node", "NIC", lambda f: _outside(f.nic_host_C, f.num_nodes)),
        Rule("nic-rail", "a rail is 0 or more, or NO_RAIL", "NIC", lambda f: f.nic_rail_C < NO_RAIL),
        Rule("nic-address", "an IPv4 address has 32 bits", "NIC", lambda f: _outside(f.nic_ipv4_C, 2**32)),
        Rule("nic-addresses-differ", "no two NICs share an address", "NIC", lambda f: _repeated(f.nic_ipv4_C)),
    ),
    (
        Rule("tier-fits-kind", "hosts have tier 0 and switches 1 or more, or UNKNOWN_TIER", "node", _has_foreign_tier),
        Rule("port-names-differ", "no two ports of a node share a name", "port", _shares_port_name),
        Rule("peers-are-mutual", "a link is two ports, each the other's peer", "port", _is_not_mutual),
        Rule("link-joins-two-nodes", "a link joins two different nodes", "port", _joins_node_to_itself),
        Rule("link-rates-agree", "a link has one rate in both directions", "port", _has_unequal_rates),
        Rule("nics-own-host-ports", "a port has a NIC on a host, and none on a switch", "port", _is_not_nic_of_host),
        Rule("nic-on-one-host", "a NIC's ports are on its own host", "port", _belongs_to_foreign_nic),
        Rule("nic-is-on-host", "a NIC is on a host", "NIC", lambda f: ~_is_host(f)[f.nic_host_C]),
        Rule("nic-has-ports", f"a NIC has 1 to {MAX_PORTS_OF_NIC} ports", "NIC", _has_wrong_port_count),
    ),
)
