"""Rail-only: each rail is a network of its own, of two tiers, and no switch joins two of them.

GPUs of one number in their servers reach one another through their rail; any other pair has a server's NVLink between.
Queue pairs across rails have no path here, and routing says so. Published: that language models need no other pairs,
and that leaving out the spine saves a good part of the switches. Derived: with k-port switches a rail of two tiers
holds k^2/2 GPUs on 3k/2 switches, so eight rails of k = 64 hold 16,384 on 768, where a fabric of three tiers that joins
all of them takes 1,280.

Left out, since nothing is published of it: any built fabric's counts; rates and radix here are those of `barre`'s time.

Source: Wang et al., "Rail-only: A Low-Cost High-Performance Network for Training LLMs with Trillion Parameters",
HotI'24 (arXiv 2307.12169).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from fabrictune.topology.builders.clos import ClosSpec, preset


@dataclass(frozen=True, kw_only=True)
class RailOnlySpec(ClosSpec):
    """A CLOS of two tiers with a plane for each of eight rails."""

    kind: ClassVar[str] = "rail-only"

    num_hosts: int = preset("num_hosts", 2048)
    hosts_per_tor_set: int = preset("hosts_per_tor_set", 32)
    planes: int = preset("planes", 8)
    tiers: Literal[2, 3] = preset("tiers", 2)
    nic_rate_bps: int = preset("nic_rate_bps", 400_000_000_000)
    downlink_split: int = preset("downlink_split", 1)
