"""Meta's RoCE cluster of Llama 3: 24,576 GPUs in three layers, seven times thinner above its pods.

Published: a rack of 16 GPUs, two servers, under one Minipack2 ToR; 192 racks make a pod of 3,072 GPUs with full
bisection; eight pods, joined at the top with an oversubscription of 1:7; 400 Gbps between GPUs. Derived: a ToR has 16
links down and 16 up, so with one link to each there are 16 cluster switches (the middle layer) in a pod, of 192 links
down; 192 is no multiple of 7, and 27 links up (7.1:1) come nearest.

Left out, since it is not published: the numbers of cluster and top switches (here 16 a pod and 6), and the lengths of
cables. Ports are counted for Minipack2 at 400 Gbps (64) and for the largest Arista 7800R3 (576); that the RoCE cluster
is built on these two is published.

Sources: "The Llama 3 Herd of Models" (arXiv 2407.21783), section 3.3.1; "Building Meta's GenAI Infrastructure",
Engineering at Meta, March 2024.
"""

from dataclasses import dataclass
from typing import ClassVar

from fabrictune.topology.builders.clos import ClosSpec, preset


@dataclass(frozen=True, kw_only=True)
class Meta24kSpec(ClosSpec):
    """A CLOS with Meta's counts and rates. Fewer racks a pod want fewer `uplinks_per_aggregation`."""

    kind: ClassVar[str] = "meta24k"

    num_hosts: int = preset("num_hosts", 8 * 192 * 2)
    hosts_per_tor_set: int = preset("hosts_per_tor_set", 2)
    tors_per_set: int | None = preset("tors_per_set", 1)
    tor_sets_per_pod: int | None = preset("tor_sets_per_pod", 192)
    aggregation_radix: int | None = preset("aggregation_radix", 576)
    core_radix: int | None = preset("core_radix", 576)
    nic_rate_bps: int = preset("nic_rate_bps", 400_000_000_000)
    downlink_split: int = preset("downlink_split", 1)
    uplinks_per_aggregation: int | None = preset("uplinks_per_aggregation", 27)
