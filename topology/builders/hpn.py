"""Alibaba's HPN: NICs with two ports on two ToRs, in two planes that meet nowhere but in the NICs.

Published: single-chip switches of 51.2 Tbps; servers of eight GPUs with a NIC of 2 x 200 Gbps each; a segment of 1,024
GPUs under 16 ToRs, one for each rail and port; a ToR has 128 active and 8 backup links of 200 Gbps down and 60 of
400 Gbps up (1.067:1); an aggregation switch belongs to one plane and is oversubscribed 15:1 towards the core; 15
segments, 15,360 GPUs, make a pod. Derived: 60 aggregation switches a plane, each with 15 x 8 links down and 8 up, which
fill its 128 ports.

`planes: 1` is the dual-ToR without dual-plane that the paper compares with: both ToRs of a NIC then hang on the same
aggregation switches, which hash between them. With `planes: 16` every rail is on its own, the paper's rail-only pod of
122,880 GPUs. A segment with its backup servers has `hosts_per_tor_set: 136`.

Left out, since it is not published: the number of cores and whether planes meet there (here they do not), the front-end
network, and the lengths of cables.

Source: Qian et al., "Alibaba HPN: A Data Center Network for Large Language Model Training", SIGCOMM'24, sections 3 and
5.1, tables 2 and 4.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from fabrictune.topology.builders.clos import ClosSpec, preset


@dataclass(frozen=True, kw_only=True)
class HpnSpec(ClosSpec):
    """A CLOS with HPN's counts and rates: a pod of 15 segments, or several. `nic_rate` is that of each of two ports.

    Smaller segments want fewer `uplinks_per_tor` and `uplinks_per_aggregation`.
    """

    kind: ClassVar[str] = "hpn"

    num_hosts: int = preset("num_hosts", 15 * 128)
    hosts_per_tor_set: int = preset("hosts_per_tor_set", 128)
    ports_per_nic: Literal[1, 2] = preset("ports_per_nic", 2)
    planes: int = preset("planes", 2)
    switch_radix: int = preset("switch_radix", 128)
    uplinks_per_tor: int | None = preset("uplinks_per_tor", 60)
    uplinks_per_aggregation: int | None = preset("uplinks_per_aggregation", 8)
