"""Configuration of NICs: receive buffers, drain rates and endpoint delays.

Source: Swift (SIGCOMM'20), 3.2, for endpoint delay; "RDMA over Commodity Ethernet at Scale" (SIGCOMM'16), 4.4, for
receivers so slow that they pause their switch.
"""

from dataclasses import dataclass
from typing import Literal

from fabrictune.netsim.config.settings import LONGEST_WAIT_NS, MAX_BUFFER_BYTES, MAX_RATE_BPS, require, setting

MAX_JITTER_NS = 10**9


@dataclass(frozen=True, kw_only=True)
class NicConfig:
    """The receiving side of NICs. With a drain rate, the level of the receive buffer pauses the switch by PFC."""

    drain_rate_bps: int | None = setting(
        None, "rate at which a host takes frames from each port of its NICs; by default as fast as they come"
    )
    slow_hosts: tuple[str, ...] = setting((), "drain rate: hosts by name that are no faster; by default all")
    receive_buffer_bytes: int = setting(
        1_000_000, "drain rate: room for frames not yet taken, with headroom where there is PFC"
    )
    xoff_bytes: int | None = setting(
        None, "drain rate: fill at which to pause the switch; by default the buffer less the headroom"
    )
    endpoint_delay_ns: int = setting(0, "time a host takes to answer a packet it was handed")
    endpoint_jitter_ns: int = setting(0, "up to so much more, anew for each packet")
    ecn_capable: Literal["data", "acknowledgements", "all"] = setting(
        "data", "packets that are sent ECN-capable: data, acknowledgements as well, or all with notifications"
    )

    def __post_init__(self) -> None:
        is_right = 1 <= (self.drain_rate_bps or 1) <= MAX_RATE_BPS
        require(is_right, "nic.drain_rate", f"{self.drain_rate_bps} bps", f"above 0, up to {MAX_RATE_BPS} bps")
        is_right = not self.slow_hosts or self.drain_rate_bps is not None
        require(is_right, "nic.slow_hosts", "slow hosts without a drain rate", "both or neither")
        is_right = 1 <= self.receive_buffer_bytes <= MAX_BUFFER_BYTES
        require(is_right, "nic.receive_buffer", f"{self.receive_buffer_bytes} B", f"1 to {MAX_BUFFER_BYTES} B")
        is_right = 0 <= (self.xoff_bytes or 0) <= MAX_BUFFER_BYTES
        require(is_right, "nic.xoff", f"{self.xoff_bytes} B", f"0 to {MAX_BUFFER_BYTES} B")
        for name, most in (("endpoint_delay", LONGEST_WAIT_NS), ("endpoint_jitter", MAX_JITTER_NS)):
            value = getattr(self, f"{name}_ns")
            require(0 <= value <= most, f"nic.{name}", f"{value} ns", f"0 to {most} ns")
