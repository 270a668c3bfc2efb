"""Rules by which defaults follow the link: from the NICs' rate and the fabric's round trip to a value.

A law's paper gives numbers for the links of its time. Where the paper or its authors' simulator also says how a number
follows the rate or the round trip, the parameter has a `Rule`, and the number stays its `default`: the paper's own. The
curve by which switches mark follows the link in the same way, and a law may have one of its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S, PS_PER_US, format_rate


@dataclass(frozen=True, kw_only=True)
class Link:
    """What the flows of a run share: the slowest NIC in use and the longest unloaded round trip."""

    rate_bps: float
    base_rtt_ps: int
    num_hops: int  # links from source to destination, the most of any flow
    mtu_bytes: int
    queue_limit_bytes: int  # what one ingress port may hold before it pauses its neighbour, or drops

    def bytes_in(self, duration_ps: float) -> float:
        """Return what the rate carries in that time."""
        return self.rate_bps * duration_ps / (BITS_PER_BYTE * PS_PER_S)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How a parameter's default follows the link."""

    value: Callable[[Link, Mapping[str, float]], float]  # the link and the law's other parameters
    text: str  # in words
    source: str


@dataclass(frozen=True, kw_only=True)
class MarkingRule:
    """How the curve by which switches mark follows the link; `kmin_bytes` before what a port's buffer leaves."""

    kmin_bytes: Callable[[Link], float]
    kmax_factor: float  # times kmin; 1 for a step, at which every packet is marked
    pmax_fraction: float
    text: str
    source: str


def of_rate(value: float, rate_bps: float, *, source: str) -> Rule:
    """Return the rule of a value that a source has for links of `rate_bps` and that goes in proportion."""
    return Rule(
        value=lambda link, params: value * link.rate_bps / rate_bps,
        text=f"in proportion to the NICs' rate from {format_rate(rate_bps)}",
        source=source,
    )


def whole_us_above_rtt(link: Link, params: Mapping[str, float]) -> float:
    """Return the first whole microsecond above the longest unloaded round trip, in picoseconds."""
    return (link.base_rtt_ps // PS_PER_US + 1) * PS_PER_US


RED = MarkingRule(
    kmin_bytes=lambda link: 100_000 * link.rate_bps / 25e9,
    kmax_factor=4,
    pmax_fraction=0.2,
    text="100 KB and 400 KB for each 25 Gbps of the NICs, 20 %",
    source="Li et al., HPCC, SIGCOMM 2019, section 5.1",
)
