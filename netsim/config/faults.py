"""Configuration of faults: each is an interval of time on a link, a port or a switch.

Names are those of `ecmp whatif`: a node, or a link by a port of it (`tor0-5:up0`, or `tor0-5:up0 -> agg0-0:down5`).
A link has a fault in both directions, a port in the one that leaves through it. Times count from the start of the run;
a fault without `until` lasts to its end.

Left out: links that come up at another rate, faults of hosts beyond their NICs.
"""

from dataclasses import dataclass, field
from typing import Any

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.netsim.config.settings import LONGEST_WAIT_NS, MAX_RATE_BPS, require, setting

MAX_FLAPS = 10_000


def _named(meaning: str) -> Any:
    return field(metadata={"help": meaning})


@dataclass(frozen=True, kw_only=True)
class _Interval:
    """Beginning and end of a fault."""

    at_ns: int = _named("when it begins")
    until_ns: int | None = setting(None, "when it ends; by default with the run")

    def __post_init__(self) -> None:
        require(0 <= self.at_ns <= LONGEST_WAIT_NS, "at", f"{self.at_ns} ns", f"0 to {LONGEST_WAIT_NS} ns")
        until_ns = LONGEST_WAIT_NS if self.until_ns is None else self.until_ns
        is_right = self.at_ns < until_ns <= LONGEST_WAIT_NS
        require(is_right, "until", f"{until_ns} ns", f"after {self.at_ns} ns, up to {LONGEST_WAIT_NS} ns")


@dataclass(frozen=True, kw_only=True)
class LinkDown(_Interval):
    """A link fails: packets on it, queued for it and routed to it are lost, and its PFC state is reset."""

    link: str = _named("a link by a port of it: tor0:up1")


@dataclass(frozen=True, kw_only=True)
class SwitchDown(_Interval):
    """All links of a switch are down."""

    switch: str = _named("a switch: agg0-3")


@dataclass(frozen=True, kw_only=True)
class Flap:
    """A link goes down and comes up again, repeatedly."""

    link: str = _named("a link by a port of it: tor0:up1")
    at_ns: int = _named("when it goes down first")
    down_ns: int = _named("how long it stays down each time")
    period_ns: int | None = setting(None, "from one time to the next; needed where there is more than one")
    count: int = setting(1, "how often")

    def __post_init__(self) -> None:
        require(1 <= self.count <= MAX_FLAPS, "count", f"{self.count}", f"1 to {MAX_FLAPS}")
        require(0 <= self.at_ns <= LONGEST_WAIT_NS, "at", f"{self.at_ns} ns", f"0 to {LONGEST_WAIT_NS} ns")
        require(1 <= self.down_ns <= LONGEST_WAIT_NS, "down", f"{self.down_ns} ns", f"1 to {LONGEST_WAIT_NS} ns")
        if self.count > 1:
            found = "none" if self.period_ns is None else f"{self.period_ns} ns"
            is_right = self.period_ns is not None and self.down_ns < self.period_ns <= LONGEST_WAIT_NS
            require(is_right, "period", found, f"above the time down, {self.down_ns} ns, up to {LONGEST_WAIT_NS} ns")
        last_ns = self.at_ns + (self.count - 1) * (self.period_ns or 0) + self.down_ns
        require(last_ns <= LONGEST_WAIT_NS, "count", f"an end at {last_ns} ns", f"up to {LONGEST_WAIT_NS} ns")


@dataclass(frozen=True, kw_only=True)
class BitErrors(_Interval):
    """A link loses packets at random, by a bit error rate or a share of them; each direction draws for itself."""

    link: str = _named("a link by a port of it: tor0:up1")
    ber_fraction: float | None = setting(None, "share of bits in error, on all that a packet takes of the wire")
    loss_fraction: float | None = setting(None, "share of packets lost, of whatever size")

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.ber_fraction is None) == (self.loss_fraction is None):
            raise InputError(Mistake(where="", found="not one rate of errors", allowed="one of ber and loss"))
        for name in ("ber", "loss"):
            value = getattr(self, f"{name}_fraction")
            require(value is None or 0 < value <= 1, name, f"{value}", "above 0, up to 1")


@dataclass(frozen=True, kw_only=True)
class SlowPort(_Interval):
    """A port sends at a lower rate; a packet in transmission keeps the rate it began with."""

    port: str = _named("the port that packets leave through: tor0:up1")
    rate_bps: int = _named("the rate it is left with")

    def __post_init__(self) -> None:
        super().__post_init__()
        is_right = 1 <= self.rate_bps <= MAX_RATE_BPS
        require(is_right, "rate", f"{self.rate_bps} bps", f"above 0, up to {MAX_RATE_BPS} bps")


KNOWN_FAULTS = {  # by what others call them
    "slow_link": "slow_port",
    "link_flap": "flap",
    "port_flap": "flap",
    "loss": "bit_errors",
    "packet_loss": "bit_errors",
    "port_down": "link_down",
    "node_down": "switch_down",
}

Fault = LinkDown | SwitchDown | Flap | BitErrors | SlowPort

FAULTS: dict[str, type[Fault]] = {
    "link_down": LinkDown,
    "switch_down": SwitchDown,
    "flap": Flap,
    "bit_errors": BitErrors,
    "slow_port": SlowPort,
}
