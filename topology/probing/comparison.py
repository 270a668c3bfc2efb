"""Comparison of observed paths with those that a scenario's fabric predicts under its hash.

Two questions with two answers. *Which paths are there?* compares sets: those of all source ports that RoCEv2 uses, as
the model routes them, and those that were seen. *Which source port takes which?* counts agreement, and says what chance
alone would give; a real switch agrees only if function, fields and seed are all right.

A path is compared by its switches, or by the ports through which they are entered where the names say so, and without
the target, which may not answer. What was not seen in whole is not compared.
"""

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

import numpy as np

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.rocev2 import FIRST_DYNAMIC_PORT
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import NO_PORT, QueuePairs
from fabrictune.topology.probing.names import Names
from fabrictune.topology.probing.observations import Ending
from fabrictune.topology.probing.paths import DOUBT, ObservedPath, TargetPaths
from fabrictune.topology.routing import route

Way = tuple[str, ...]  # the switches of a path, `node` or `node:port`, in order


@dataclass(frozen=True, kw_only=True)
class PathComparison:
    """One target's paths, seen and predicted."""

    target_ipv4: int
    num_source_ports: int  # whose path was seen in whole and has names
    num_agreeing: int
    chance_fraction: float  # of agreement, if seen and predicted had nothing to do with each other
    seen: tuple[Way, ...]
    predicted: tuple[Way, ...]
    missing: tuple[Way, ...]  # predicted, not seen, and too often predicted for chance to have missed it
    unnamed_ipv4: tuple[int, ...]  # addresses that answered and have no name

    @property
    def unpredicted(self) -> tuple[Way, ...]:
        """Paths that the model gives to no source port."""
        return tuple(way for way in self.seen if way not in self.predicted)


class Model:
    """A fabric with the hash of its switches, as a predictor of the paths of probes."""

    def __init__(self, fabric: Fabric, hash_spec: HashSpec, destination_qpn: int) -> None:
        self.fabric = fabric
        self.hash_spec = hash_spec
        self.destination_qpn = destination_qpn

    def ways(self, source_ipv4: int, target_ipv4: int, source_ports: Sequence[int], *, has_ports: bool) -> list[Way]:
        """Return each source port's path; raises InputError where the fabric lacks an address, RouteError a path."""
        ports = np.array(source_ports, np.int64)
        pairs = QueuePairs(
            source_nic_Q=np.full_like(ports, self.find_nic(source_ipv4)),
            destination_nic_Q=np.full_like(ports, self.find_nic(target_ipv4)),
            source_qpn_Q=np.full_like(ports, self.destination_qpn),
            destination_qpn_Q=np.full_like(ports, self.destination_qpn),
            source_port_Q=ports,
            priority_Q=np.zeros_like(ports),
        )
        path_QH = route(self.fabric, pairs, self.hash_spec).port_QDH[:, 0]
        distinct_WH, way_Q = np.unique(path_QH, axis=0, return_inverse=True)
        labels = [self._labels(path_H.tolist(), has_ports=has_ports) for path_H in distinct_WH]
        return [labels[way] for way in way_Q.ravel().tolist()]

    def find_nic(self, ipv4: int) -> int:
        """Return the NIC with an address; raises InputError."""
        nics = np.nonzero(self.fabric.nic_ipv4_C == ipv4)[0]
        if not len(nics):
            raise InputError(
                Mistake(
                    where=f"fabric {self.fabric.name!r}",
                    found=f"no NIC has the address {IPv4Address(ipv4)}",
                    next_step="compare with a fabric whose NICs have the addresses that were probed",
                )
            )
        return int(nics[0])

    def _labels(self, ports: Sequence[int], *, has_ports: bool) -> Way:
        """Return the switches that a path enters."""
        entered = [int(self.fabric.port_peer_P[port]) for port in ports if port != NO_PORT]
        nodes = [int(self.fabric.port_node_P[port]) for port in entered]
        return tuple(
            self.fabric.port_label(port) if has_ports else self.fabric.node_name_N[node]
            for port, node in zip(entered, nodes, strict=True)
            if self.fabric.node_kind_N[node] == NodeKind.SWITCH
        )


def compare_paths(target: TargetPaths, names: Names, model: Model) -> PathComparison:
    """Compare what was seen of one target with what the model says; raises InputError as `Model.ways` does."""
    whole = [path for path in target.paths if _is_whole(path)]
    unnamed = {hop[0] for path in whole for hop in _switch_hops(path) if hop[0] not in names}
    has_ports = all(":" in names.get(hop[0], ":") for path in whole for hop in _switch_hops(path))
    ends = (target.source_ipv4, target.target_ipv4)
    share = _shares(model.ways(*ends, range(FIRST_DYNAMIC_PORT, 2**16), has_ports=has_ports))
    seen = _ways_seen(whole, names, {len(way) for way in share}, has_ports=has_ports)
    share_seen = _shares(list(seen.values()))
    predicted = dict(zip(seen, model.ways(*ends, list(seen), has_ports=has_ports), strict=True)) if seen else {}
    doubt = DOUBT / len(share)  # of each path, so that all together stay below it
    return PathComparison(
        target_ipv4=target.target_ipv4,
        num_source_ports=len(seen),
        num_agreeing=sum(predicted[port] == way for port, way in seen.items()),
        chance_fraction=sum(fraction * share.get(way, 0.0) for way, fraction in share_seen.items()),
        seen=tuple(sorted(share_seen)),
        predicted=tuple(sorted(share)),
        missing=tuple(
            way for way in sorted(share) if way not in share_seen and (1.0 - share[way]) ** len(seen) < doubt
        ),
        unnamed_ipv4=tuple(sorted(unnamed)),
    )


def _is_whole(path: ObservedPath) -> bool:
    has_end = path.ending in (Ending.ARRIVED, Ending.SILENT)
    return has_end and bool(path.hops) and all(len(hop) == 1 for hop in path.hops)


def _ways_seen(
    whole: Sequence[ObservedPath], names: Names, lengths: Container[int], *, has_ports: bool
) -> dict[int, Way]:
    """Return each source port's path by name; one that fell silent counts only if it is as long as the model's."""
    seen: dict[int, Way] = {}
    for path in whole:
        hops = [names.get(hop[0], "") for hop in _switch_hops(path)]
        if all(hops) and (path.ending is Ending.ARRIVED or len(hops) in lengths):
            way = tuple(name if has_ports else name.partition(":")[0] for name in hops)
            seen |= dict.fromkeys(path.source_ports, way)
    return seen


def _switch_hops(path: ObservedPath) -> Sequence[tuple[int, ...]]:
    return path.hops[:-1] if path.ending is Ending.ARRIVED else path.hops


def _shares(ways: Sequence[Way]) -> dict[Way, float]:
    return {way: count / len(ways) for way, count in Counter(ways).items()}
