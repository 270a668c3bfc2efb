"""Plan of a probing: targets, source ports, hops and rate, all bounded here.

A *probe flow* keeps its addresses and ports at every distance, so all its probes take the one path that ECMP gives it.
Source ports are consecutive from the first of the range that RoCEv2 uses: hashes differ most in how they treat near
neighbours, and a range is easily said again to another tool.

Source: the constant 5-tuple is that of Augustin et al., "Avoiding traceroute anomalies with Paris traceroute", IMC'06.
"""

from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import NamedTuple

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.rocev2 import FIRST_DYNAMIC_PORT
from fabrictune.foundation.units import format_duration

MAX_PROBES = 200_000  # of one probing
MAX_DISTANCE = 32  # links; no fabric of three tiers has more than 6
UNUSED_QPN = 0xFFFFFE  # adapters number queue pairs upwards, and the last number is the multicast group's

_PS = 10**12
_RANGES = {
    "rate_per_s": (1, 10_000),
    "num_source_ports": (1, 2**14),
    "first_source_port": (1024, 2**16 - 1),
    "max_hops": (1, MAX_DISTANCE),
    "attempts": (1, 6),
    "timeout_ps": (_PS // 100, 10 * _PS),
    "dscp": (0, 63),
    "destination_qpn": (2, 2**24 - 1),  # 0 and 1 are for management
}


class ProbeFlow(NamedTuple):
    """Fields in which flows to UDP port 4791 differ for ECMP."""

    source_ipv4: int
    target_ipv4: int
    source_port: int


@dataclass(frozen=True, kw_only=True)
class ProbePlan:
    """Probes to send. Targets and rate have no default: they are the choice of the one who probes."""

    targets: tuple[int, ...]  # IPv4
    rate_per_s: int  # probes, over all targets
    num_source_ports: int = field(default=64, metadata={"help": "source ports to each target"})
    first_source_port: int = field(default=FIRST_DYNAMIC_PORT, metadata={"help": "the lowest of them"})
    max_hops: int = field(default=8, metadata={"help": "the furthest distance probed"})
    attempts: int = field(default=3, metadata={"help": "probes to a hop that does not answer"})
    timeout_ps: int = field(default=_PS // 2, metadata={"help": "wait for replies after the last probe of a round"})
    dscp: int = field(default=0, metadata={"help": "traffic class of the probes; 0 is best effort"})
    destination_qpn: int = field(default=UNUSED_QPN, metadata={"help": "queue pair in the probes' RoCE header"})

    def __post_init__(self) -> None:
        mistakes = [*self._out_of_range(), *self._unfit_targets()]
        if not mistakes and self.max_probes > MAX_PROBES:
            mistakes.append(
                Mistake(
                    where="probes",
                    found=f"{self.max_probes:,} of them at most",
                    allowed=f"{MAX_PROBES:,} in one probing",
                    next_step="ask for fewer targets, source ports, hops or attempts",
                )
            )
        if mistakes:
            raise InputError(*mistakes)

    @property
    def source_ports(self) -> range:
        """The source ports probed to each target."""
        return range(self.first_source_port, self.first_source_port + self.num_source_ports)

    @property
    def max_probes(self) -> int:
        """Probes sent if no hop ever answers."""
        return self.num_flows * self.max_hops * self.attempts

    @property
    def num_flows(self) -> int:
        """Source ports over all targets."""
        return len(self.targets) * self.num_source_ports

    @property
    def max_duration_s(self) -> float:
        """Seconds it takes if no hop ever answers."""
        rounds_s = sum(self.num_flows * self.interval_s(attempt, self.num_flows) for attempt in range(self.attempts))
        return self.max_hops * (rounds_s + self.attempts * self.timeout_s)

    @property
    def timeout_s(self) -> float:
        """The timeout in seconds."""
        return self.timeout_ps / _PS

    def interval_s(self, attempt: int, num_probes: int) -> float:
        """Return the time between two of a round's probes.

        A hop that limits its replies answers more of the same probes if they come slowly: each repeat is half as fast
        as the one before, and takes a timeout at least.
        """
        slowed_s = float(2**attempt) / self.rate_per_s
        return max(slowed_s, self.timeout_s / num_probes) if attempt else slowed_s

    def _out_of_range(self) -> list[Mistake]:
        mistakes = []
        for name, (low, high) in _RANGES.items():
            found, show = getattr(self, name), format_duration if name.endswith("_ps") else "{:,}".format
            if not low <= found <= high:
                mistakes.append(Mistake(where=name, found=show(found), allowed=f"{show(low)} to {show(high)}"))
        if not mistakes and self.source_ports[-1] >= 2**16:
            found = f"source ports up to {self.source_ports[-1]}"
            mistakes.append(Mistake(where="num_source_ports", found=found, allowed="up to 65535"))
        return mistakes

    def _unfit_targets(self) -> list[Mistake]:
        if not self.targets:
            return [Mistake(where="targets", found="none", allowed="one address or more")]
        mistakes = []
        for row, target in enumerate(self.targets):
            address = IPv4Address(target)
            if address.is_multicast or address.is_unspecified or address.is_reserved or address.is_loopback:
                mistakes.append(Mistake(where="targets", found=str(address), allowed="the address of one other host"))
            if target in self.targets[:row]:
                mistakes.append(Mistake(where="targets", found=f"{address} a second time", allowed="each target once"))
        return mistakes
