"""Trials: every host sends to one of the fabric's other half, packets are sprayed, and one link loses some of them.

Only receivers count. The packets of a host are those that a link needs for its loss to be found in 99 % of trials. All
links between switches carry as much: the fabrics have as many uplinks as downlinks. The lossy link is one between
switches; of a link between a host and its ToR the receivers' counts say nothing.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import ceil

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.seeds import stream
from fabrictune.observability.gray_loss.counts import CountedPath, PathCounts, gather_counts
from fabrictune.observability.gray_loss.detection import LossReport, find_lossy_links, packets_needed
from fabrictune.observability.gray_loss.sprayed_paths import sprayed_paths
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.next_hops import next_hops

POWER = 0.99
RATE_BPS = 100_000_000_000


def _two_tiers(num_hosts: int) -> Fabric:
    return build_clos(
        ClosSpec(
            num_hosts=num_hosts,
            hosts_per_tor_set=8,
            nics_per_host=1,
            tiers=2,
            nic_rate_bps=RATE_BPS,
            uplink_rate_bps=RATE_BPS,
            downlink_split=1,
        )
    )


FABRICS = {
    64: lambda: _two_tiers(64),
    128: lambda: build_fat_tree(FatTreeSpec(radix=8)),
    256: lambda: _two_tiers(256),
    432: lambda: build_fat_tree(FatTreeSpec(radix=12)),
    1024: lambda: build_fat_tree(FatTreeSpec(radix=16)),
}


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a trial planted, and what was found."""

    planted: str  # "" of a clean trial
    report: LossReport

    @property
    def is_located(self) -> bool:
        """Whether the planted link is named, alone."""
        return any(lossy.links == (self.planted,) for lossy in self.report.lossy)

    @property
    def is_found(self) -> bool:
        """Whether the planted link is among those named."""
        return any(self.planted in lossy.links for lossy in self.report.lossy)

    @property
    def num_wrong(self) -> int:
        """Names without the planted link."""
        return sum(self.planted not in lossy.links for lossy in self.report.lossy)


class Bench:
    """A fabric with all paths of a permutation of its hosts."""

    def __init__(self, num_hosts: int, seed: int) -> None:
        self.fabric = FABRICS[num_hosts]()
        hops = next_hops(self.fabric)
        self.num_hosts = num_hosts
        half = num_hosts // 2
        first, second = (stream(seed, "half", part).permutation(half).tolist() for part in range(2))
        there = [(source, half + peer) for source, peer in enumerate(second)]
        flows = [*there, *((half + source, peer) for source, peer in enumerate(first))]
        paths = []
        for source, destination in flows:
            for path in sprayed_paths(self.fabric, hops, source, destination):
                labels = [self.fabric.link_label(port) for port in path.ports]
                flow = f"{source}-{destination}"
                paths.append(CountedPath(flow=flow, links=labels, received=0, share=path.share))
        self.counts = gather_counts(paths)
        is_switch = {
            self.fabric.link_label(port)
            for port in range(self.fabric.num_ports)
            if self.fabric.port_nic_P[port] < 0 and self.fabric.port_nic_P[self.fabric.port_peer_P[port]] < 0
        }
        self.inner = [number for number, link in enumerate(self.counts.link_L) if link in is_switch]

    def packets(self, loss_fraction: float) -> int:
        """Return the packets that each host sends for this loss to be found."""
        return ceil(packets_needed(loss_fraction, len(self.inner), share=self._share(), power=POWER))

    def _share(self) -> float:
        """Return the greatest share of a flow's packets on a link between switches."""
        counts = self.counts
        is_inner_E = np.isin(counts.link_E, self.inner)
        path_E = counts.path_E[is_inner_E]
        pair_E = counts.flow_P[path_E] * len(counts.link_L) + counts.link_E[is_inner_E]
        share_X = np.bincount(np.unique(pair_E, return_inverse=True)[1], counts.share_P[path_E])
        return float(share_X.max())

    def trial(self, loss_fraction: float, seed: int, *, packets: int, is_clean: bool = False) -> Trial:
        """Spray with one link losing packets, or none, and look for it."""
        planted, counts = self.spray(loss_fraction, seed, packets=packets, is_clean=is_clean)
        return Trial(planted=planted, report=find_lossy_links(counts))

    def spray(self, loss_fraction: float, seed: int, *, packets: int, is_clean: bool = False) -> tuple[str, PathCounts]:
        """Return the link that loses packets, "" for none, and the counts."""
        random = stream(seed, "trial", f"{loss_fraction}")
        link = self.inner[int(random.integers(len(self.inner)))]
        loss_P = np.zeros(len(self.counts.flow_P))
        if not is_clean:
            loss_P[self.counts.path_E[self.counts.link_E == link]] = loss_fraction
        return "" if is_clean else self.counts.link_L[link], self._sprayed(packets, loss_P, random)

    def _sprayed(self, packets: int, loss_P: FloatArray, random: np.random.Generator) -> PathCounts:
        counts = self.counts
        sent_P: IntArray = np.zeros(len(counts.flow_P), np.int64)
        bounds = np.searchsorted(counts.flow_P, np.arange(counts.num_flows + 1))
        for begin, end in pairwise(bounds):
            share = counts.share_P[begin:end]
            sent_P[begin:end] = random.multinomial(packets, share / share.sum())
        received_P = random.binomial(sent_P, 1 - loss_P)
        return PathCounts(**{**vars(counts), "received_P": received_P})
