"""The k-ary fat tree: k pods of k / 2 edge and k / 2 aggregation switches, (k / 2)**2 cores, k**3 / 4 hosts.

It is the CLOS fabric in which every switch has k ports of one rate, half of them down, and every host one NIC.

Source: Al-Fares, Loukissas, Vahdat, "A scalable, commodity data center network architecture", SIGCOMM'08, section 3.
"""

from dataclasses import dataclass, field, replace

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric

MAX_RADIX = 100  # 250,000 hosts


@dataclass(frozen=True, kw_only=True)
class FatTreeSpec:
    """A fat tree of `radix`-port switches; every cable has the same length."""

    radix: int = field(default=8, metadata={"help": "ports of a switch, k; an even number"})
    link_rate_bps: int = field(default=100_000_000_000, metadata={"help": "rate of every link"})
    cable_mm: int = field(default=200_000, metadata={"help": "length of every cable; 200 m take 1 us"})

    def __post_init__(self) -> None:
        mistakes = []
        if not 2 <= self.radix <= MAX_RADIX or self.radix % 2:
            mistakes.append(
                Mistake(where="radix", found=str(self.radix), allowed=f"an even number from 2 to {MAX_RADIX}")
            )
        if self.link_rate_bps < 1:
            mistakes.append(Mistake(where="link_rate_bps", found=str(self.link_rate_bps), allowed="above zero"))
        if self.cable_mm < 0:
            mistakes.append(Mistake(where="cable_mm", found=str(self.cable_mm), allowed="zero or more"))
        if mistakes:
            raise InputError(*mistakes)


def build_fat_tree(spec: FatTreeSpec) -> Fabric:
    """Return the fat tree; host c has NIC c, and hosts are numbered pod by pod."""
    half = spec.radix // 2
    fabric = build_clos(
        ClosSpec(
            num_hosts=spec.radix * half * half,
            hosts_per_tor_set=half,
            nics_per_host=1,
            tiers=3,
            switch_radix=spec.radix,
            nic_rate_bps=spec.link_rate_bps,
            uplink_rate_bps=spec.link_rate_bps,
            downlink_split=1,
            tor_sets_per_pod=half,
            num_cores=half * half,
            host_cable_mm=spec.cable_mm,
            tor_cable_mm=spec.cable_mm,
            core_cable_mm=spec.cable_mm,
        )
    )
    return replace(fabric, name=f"fat-tree-k{spec.radix}")
