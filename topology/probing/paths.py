"""Paths to each target, from what was seen of each source port.

Two source ports share a path if every hop answered alike. A path with an unknown hop stays apart from the one that it
may be part of: guessing would hide that a hop is silent. How many paths were missed cannot be known, but how much they
can carry can: if a path takes a share s of all source ports, all n that were tried missed it with probability
(1 - s) ** n, which is below 5 % for any s above 1 - 0.05 ** (1 / n).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from fabrictune.topology.probing.observations import Ending, Hop, Observations
from fabrictune.topology.probing.plan import ProbeFlow

DOUBT = 0.05


@dataclass(frozen=True, kw_only=True)
class ObservedPath:
    """One way to a target, and the source ports that took it."""

    hops: tuple[Hop, ...]
    ending: Ending
    source_ports: tuple[int, ...]

    @property
    def num_unknown_hops(self) -> int:
        """Hops that did not answer, the last that did being the last that is counted."""
        return sum(not hop for hop in self.hops)

    @property
    def is_complete(self) -> bool:
        """Whether the target answered and every hop before it did, always the same one."""
        return self.ending is Ending.ARRIVED and all(len(hop) == 1 for hop in self.hops)


@dataclass(frozen=True, kw_only=True)
class TargetPaths:
    """All that is known of the ways from one address to another."""

    source_ipv4: int
    target_ipv4: int
    paths: tuple[ObservedPath, ...]  # those that most source ports took first

    @property
    def num_source_ports(self) -> int:
        """Source ports that were tried."""
        return sum(len(path.source_ports) for path in self.paths)

    @property
    def unseen_fraction(self) -> float:
        """The most that a path which was not seen carries, as a share of all source ports, with 95 % confidence."""
        return 1.0 - float(DOUBT ** (1.0 / self.num_source_ports))


def group_paths(seen: Observations) -> list[TargetPaths]:
    """Return the paths to each target, in the order of the plan."""
    return [
        TargetPaths(source_ipv4=source, target_ipv4=target, paths=_distinct(seen, list(flows)))
        for (source, target), flows in groupby(seen.flows, key=lambda flow: (flow.source_ipv4, flow.target_ipv4))
    ]


def _distinct(seen: Observations, flows: Sequence[ProbeFlow]) -> tuple[ObservedPath, ...]:
    source_ports: dict[tuple[tuple[Hop, ...], Ending], list[int]] = {}
    for flow in flows:
        source_ports.setdefault(seen.path(flow), []).append(flow.source_port)
    paths = [
        ObservedPath(hops=hops, ending=ending, source_ports=tuple(ports))
        for (hops, ending), ports in source_ports.items()
    ]
    return tuple(sorted(paths, key=lambda path: (-len(path.source_ports), path.hops, path.ending)))
