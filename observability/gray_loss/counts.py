"""Counts of packets by path: what the detection of gray loss takes.

A flow sprays its packets over its paths, in equal shares or in those that the switches' choices give. A path is a
sequence of links by name, each in the direction of the flow. What a path lost is not seen directly: receivers count
what came, and senders may count what went.

Shapes: F flows, P paths, L links, E entries: a link of a path.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray

UNKNOWN = -1


@dataclass(frozen=True, kw_only=True)
class PathCounts:
    """Packets of each path of each flow."""

    link_L: tuple[str, ...]
    num_flows: int
    flow_P: IntArray
    share_P: FloatArray  # of its flow's packets that spraying sends there, in any unit
    received_P: IntArray
    sent_P: IntArray  # UNKNOWN where senders do not count
    path_E: IntArray
    link_E: IntArray

    @property
    def knows_sent(self) -> bool:
        """Whether senders count for every path."""
        return bool((self.sent_P != UNKNOWN).all())


@dataclass(frozen=True, kw_only=True)
class CountedPath:
    """One path's counts."""

    flow: str
    links: Sequence[str]
    received: int
    sent: int = UNKNOWN
    share: float = 1.0


def gather_counts(paths: Iterable[CountedPath]) -> PathCounts:
    """Return the counts as arrays, flows and links in order of their first path."""
    flows: dict[str, int] = {}
    links: dict[str, int] = {}
    flow_P, share_P, received_P, sent_P, path_E, link_E = [], [], [], [], [], []
    for number, path in enumerate(paths):
        flow_P.append(flows.setdefault(path.flow, len(flows)))
        share_P.append(path.share)
        received_P.append(path.received)
        sent_P.append(path.sent)
        for link in path.links:
            path_E.append(number)
            link_E.append(links.setdefault(link, len(links)))
    return PathCounts(
        link_L=tuple(links),
        num_flows=len(flows),
        flow_P=np.array(flow_P, np.int64),
        share_P=np.array(share_P, np.float64),
        received_P=np.array(received_P, np.int64),
        sent_P=np.array(sent_P, np.int64),
        path_E=np.array(path_E, np.int64),
        link_E=np.array(link_E, np.int64),
    )
