"""The fabric of Barre, MegaScale's one generation later: eight rails of 400 Gbps on switches of 800 Gbps ports.

Published: ToR downlinks of 800 Gbps split into 2 x 400 Gbps, eight 400 Gbps rails, 64 servers a ToR set, three layers
without oversubscription, more than 10,000 GPUs. Derived: 64 NICs of 400 Gbps a ToR are 32 split ports, and 32 more go
up, so switches have 64 ports of 800 Gbps (51.2 Tbps).

Left out, since it is not published: the number of servers (here MegaScale's 1,536), pods and cores (as in `megascale`).

Source: Peng et al., the paper on the Barre congestion control, USENIX ATC'25.
"""

from dataclasses import dataclass
from typing import ClassVar

from fabrictune.topology.builders.clos import ClosSpec, preset


@dataclass(frozen=True, kw_only=True)
class BarreSpec(ClosSpec):
    """A CLOS with Barre's counts and rates; fewer hosts keep its shape."""

    kind: ClassVar[str] = "barre"

    num_hosts: int = preset("num_hosts", 1536)
    hosts_per_tor_set: int = preset("hosts_per_tor_set", 64)
    nic_rate_bps: int = preset("nic_rate_bps", 400_000_000_000)
    uplink_rate_bps: int = preset("uplink_rate_bps", 800_000_000_000)
