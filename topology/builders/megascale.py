"""MegaScale's fabric: 12,288 GPUs, eight rails of 200 Gbps, three tiers of 64-port switches, nothing oversubscribed.

Published: Tomahawk 4 switches of 64 ports of 400 Gbps, 32 down and 32 up in every layer; ToR downlinks split into
2 x 200 Gbps, so that an uplink carries two NICs; the eight NICs of a server go to eight ToRs; up to 64 servers a ToR
set. Derived for 1,536 servers: 24 ToR sets, 192 ToRs, 192 aggregation switches, 96 cores.

Left out, since it is not published: how many ToRs make a pod and how cores are wired (here as `clos` does it: the
largest pods that the ports allow, full meshes of 32 ToRs and 32 aggregation switches), and the lengths of cables.

Source: Jiang et al., "MegaScale: Scaling Large Language Model Training to More Than 10,000 GPUs", NSDI'24, section 3.6.
"""

from dataclasses import dataclass
from typing import ClassVar

from fabrictune.topology.builders.clos import ClosSpec, preset


@dataclass(frozen=True, kw_only=True)
class MegascaleSpec(ClosSpec):
    """A CLOS with MegaScale's counts and rates; fewer hosts keep its shape."""

    kind: ClassVar[str] = "megascale"

    num_hosts: int = preset("num_hosts", 1536)
    hosts_per_tor_set: int = preset("hosts_per_tor_set", 64)
