"""Configuration of the packet engine: what is on the wire, how switches queue, mark and pause, how hosts answer.

Defaults are RoCEv2 over Ethernet with lossless data: 4,096 B of payload under 82 B of headers, preamble and gap; the
marking curve of the HPCC simulator for 100 Gb/s; the notification interval of NVIDIA's adapters.

Source: IEEE 802.3 and 802.1Qbb, InfiniBand 1.4 annex A17 (RoCEv2), HPCC (SIGCOMM'19) public simulator.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from foundation.errors import InputError, Mistake
from foundation.rocev2 import ACK_FRAME_BYTES, PREAMBLE_AND_GAP_BYTES, WIRE_OVERHEAD_BYTES

MAX_FRAME_BYTES = 2**16 - 1
MAX_BUFFER_BYTES = 2**30
LONGEST_WAIT_NS = 10**14  # 28 hours


_LEAST_NS = {"cnp_interval": 0, "retransmission_timeout": 1, "endpoint_delay": 0, "time_limit": 1}


def _require(is_right: bool, where: str, found: str, allowed: str) -> None:
    if not is_right:
        raise InputError(Mistake(where=where, found=found, allowed=allowed))


def _setting(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"help": meaning})


@dataclass(frozen=True, kw_only=True)
class EcnConfig:
    """RED marking of data on the queue a packet finds: none up to kmin, rising to pmax at kmax, all beyond."""

    enabled: bool = _setting(True, "whether switches mark")
    kmin_bytes: int = _setting(400_000, "queue above which packets may be marked")
    kmax_bytes: int = _setting(1_600_000, "queue from which every packet is marked")
    pmax_fraction: float = _setting(0.2, "share marked just below kmax")

    def __post_init__(self) -> None:
        _require(0 <= self.kmin_bytes < self.kmax_bytes, "ecn.kmax", f"{self.kmax_bytes} B", f"above {self.kmin_bytes}")
        _require(0 <= self.pmax_fraction <= 1, "ecn.pmax", f"{self.pmax_fraction}", "0 to 1")


@dataclass(frozen=True, kw_only=True)
class PfcConfig:
    """Priority flow control, per ingress port: pause at xoff, resume at xon, room for what is still on its way.

    The pause is sent when one more full frame would pass xoff. What comes beyond xoff and headroom is dropped. Without
    PFC the whole buffer is used and the rest dropped.
    """

    enabled: bool = _setting(True, "whether switches pause their neighbours")
    buffer_bytes: int = _setting(1_000_000, "buffer of one ingress port, headroom included")
    xoff_bytes: int | None = _setting(None, "fill at which to pause; by default the buffer less the headroom")
    xon_bytes: int | None = _setting(None, "fill at which to resume; by default four fifths of xoff")
    headroom_bytes: int | None = _setting(None, "room above xoff; by default computed from cable delay and rate")
    response_ns: int | None = _setting(
        None, "from a pause frame to silence; by default the standard's bound for the rate"
    )

    def __post_init__(self) -> None:
        for name in ("buffer_bytes", "xoff_bytes", "xon_bytes", "headroom_bytes"):
            value = getattr(self, name)
            is_right = value is None or 0 <= value <= MAX_BUFFER_BYTES
            _require(is_right, f"pfc.{name.removesuffix('_bytes')}", f"{value} B", f"0 to {MAX_BUFFER_BYTES} B")
        _require(0 <= (self.response_ns or 0) <= 10**6, "pfc.response", f"{self.response_ns} ns", "0 to 1 ms")


@dataclass(frozen=True, kw_only=True)
class PacketConfig:
    """Everything a packet-level run can be told besides network, traffic and law."""

    mtu_bytes: int = _setting(4096, "payload of a full packet")
    wire_overhead_bytes: int = _setting(WIRE_OVERHEAD_BYTES, "headers, checksums, preamble and gap of a data packet")
    ack_bytes: int = _setting(
        ACK_FRAME_BYTES + PREAMBLE_AND_GAP_BYTES, "an acknowledgement or notification on the wire; no packet is shorter"
    )
    ack_every_packets: int = _setting(1, "packets per acknowledgement; the last of a message always has one")
    ecn: EcnConfig = field(default=EcnConfig(), metadata={"help": "marking"})
    pfc: PfcConfig = field(default=PfcConfig(), metadata={"help": "priority flow control"})
    cnp_interval_ns: int = _setting(4_000, "least time between two congestion notifications of a queue pair")
    retransmission_timeout_ns: int = _setting(67_108_864, "InfiniBand's timer 14: 4.096 us * 2**14")
    retry_limit: int = _setting(7, "timeouts without progress after which a queue pair fails on the next")
    endpoint_delay_ns: int = _setting(0, "time a host takes to answer a packet")
    nvlink_rate_bps: int = _setting(3_600_000_000_000, "rate of transfers over NVLink, per transfer")
    loss_fraction: float = _setting(0.0, "share of packets lost at random on every wire")
    time_limit_ns: int | None = _setting(None, "simulated time after which the run ends, finished or not")

    def __post_init__(self) -> None:
        _require(self.mtu_bytes >= 1, "mtu", f"{self.mtu_bytes} B", "1 B or more")
        _require(self.wire_overhead_bytes >= 0, "wire_overhead", f"{self.wire_overhead_bytes} B", "0 B or more")
        full = self.full_frame_bytes
        _require(full <= MAX_FRAME_BYTES, "mtu", f"{full} B on the wire", f"up to {MAX_FRAME_BYTES} B with overhead")
        _require(self.ack_bytes >= 1, "ack", f"{self.ack_bytes} B", "1 B or more")
        _require(self.ack_every_packets >= 1, "ack_every", f"{self.ack_every_packets} packets", "1 or more")
        for name, least in _LEAST_NS.items():
            value = getattr(self, f"{name}_ns")
            is_right = value is None or least <= value <= LONGEST_WAIT_NS
            _require(is_right, name, f"{value} ns", f"{least} to {LONGEST_WAIT_NS} ns")
        _require(0 <= self.retry_limit < 2**31, "retry_limit", f"{self.retry_limit}", "0 or more")
        _require(self.nvlink_rate_bps >= 1, "nvlink_rate", f"{self.nvlink_rate_bps} bps", "above 0")
        _require(0 <= self.loss_fraction <= 1, "loss", f"{self.loss_fraction}", "0 to 1")

    @property
    def full_frame_bytes(self) -> int:
        """A full packet on the wire."""
        return max(self.mtu_bytes + self.wire_overhead_bytes, self.ack_bytes)


@dataclass(frozen=True, kw_only=True)
class ProbeConfig:
    """Samples of queues over time; taking them changes no result."""

    interval_ns: int | None = _setting(None, "time between samples; none are taken without it")
    ports: Literal["all", "busiest"] = _setting("busiest", "which ports: all, or those on most paths")
    num_busiest: int = _setting(32, "how many ports count as the busiest")

    def __post_init__(self) -> None:
        is_right = self.interval_ns is None or 1 <= self.interval_ns <= LONGEST_WAIT_NS
        _require(is_right, "probe.interval", f"{self.interval_ns} ns", f"1 to {LONGEST_WAIT_NS} ns")
        _require(self.num_busiest >= 1, "probe.num_busiest", f"{self.num_busiest}", "1 or more")
