"""How switches mark and pause.

Source: IEEE 802.1Qbb; HPCC (SIGCOMM'19) public simulator for the marking curve at 100 Gb/s.
"""

from dataclasses import dataclass

from netsim.config.checking import MAX_BUFFER_BYTES, require, setting


@dataclass(frozen=True, kw_only=True)
class EcnConfig:
    """RED marking of data on the queue a packet finds: none up to kmin, rising to pmax at kmax, all beyond."""

    enabled: bool = setting(True, "whether switches mark")
    kmin_bytes: int = setting(400_000, "queue above which packets may be marked")
    kmax_bytes: int = setting(1_600_000, "queue from which every packet is marked")
    pmax_fraction: float = setting(0.2, "share marked just below kmax")

    def __post_init__(self) -> None:
        require(0 <= self.kmin_bytes < self.kmax_bytes, "ecn.kmax", f"{self.kmax_bytes} B", f"above {self.kmin_bytes}")
        require(0 <= self.pmax_fraction <= 1, "ecn.pmax", f"{self.pmax_fraction}", "0 to 1")


@dataclass(frozen=True, kw_only=True)
class PfcConfig:
    """Priority flow control, per ingress port: pause at xoff, resume at xon, room for what is still on its way.

    The pause is sent when one more full frame would pass xoff. What comes beyond xoff and headroom is dropped. Without
    PFC the whole buffer is used and the rest dropped.
    """

    enabled: bool = setting(True, "whether switches pause their neighbours")
    buffer_bytes: int = setting(1_000_000, "buffer of one ingress port, headroom included")
    xoff_bytes: int | None = setting(None, "fill at which to pause; by default the buffer less the headroom")
    xon_bytes: int | None = setting(None, "fill at which to resume; by default four fifths of xoff")
    headroom_bytes: int | None = setting(None, "room above xoff; by default computed from cable delay and rate")
    response_ns: int | None = setting(
        None, "from a pause frame to silence; by default the standard's bound for the rate"
    )

    def __post_init__(self) -> None:
        for name in ("buffer_bytes", "xoff_bytes", "xon_bytes", "headroom_bytes"):
            value = getattr(self, name)
            is_right = value is None or 0 <= value <= MAX_BUFFER_BYTES
            require(is_right, f"pfc.{name.removesuffix('_bytes')}", f"{value} B", f"0 to {MAX_BUFFER_BYTES} B")
        require(0 <= (self.response_ns or 0) <= 10**6, "pfc.response", f"{self.response_ns} ns", "0 to 1 ms")
