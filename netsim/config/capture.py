"""Configuration of packet captures."""

from dataclasses import dataclass
from typing import Literal

from fabrictune.foundation.pcap import RECORD_BYTES
from fabrictune.netsim.config.settings import require, setting

MAX_FILE_BYTES = 2**30
SENDER, RECEIVER = "sender", "receiver"


@dataclass(frozen=True, kw_only=True)
class CaptureConfig:
    """A capture of the packets of some queue pairs at one place; it changes no result."""

    flows: tuple[int, ...] = setting((), "queue pairs, by row; all, where neither these nor hosts are given")
    hosts: tuple[str, ...] = setting((), "names of hosts: every queue pair from or to one of them")
    at: str = setting(SENDER, "sender or receiver: the queue pair's NIC there; or a link, by a port: tor0:up1")
    headers: Literal["rocev2", "uet"] = setting(
        "rocev2", "rocev2, or uet: frames of Ultra Ethernet, which need selective repeat"
    )
    snap_bytes: int = setting(2**16, "how much of each packet is kept; headers fit into 128 B, by default all is")
    max_packets: int = setting(10_000, "packets kept; the record counts those beyond")

    def __post_init__(self) -> None:
        require(min(self.flows, default=0) >= 0, "capture.flows", f"{self.flows}", "rows, 0 or more")
        require(64 <= self.snap_bytes <= 2**16, "capture.snap", f"{self.snap_bytes} B", "64 to 65536 B")
        require(self.max_packets >= 1, "capture.max_packets", f"{self.max_packets}", "1 or more")
        most = MAX_FILE_BYTES // (self.snap_bytes + RECORD_BYTES)
        require(self.max_packets <= most, "capture.max_packets", f"{self.max_packets}", f"up to {most} of that snap")
