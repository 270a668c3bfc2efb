"""Configuration of the packet engine: the wire, switches, transport and NICs.

Defaults are RoCEv2 over Ethernet with lossless data: 4,096 B of payload under 82 B of headers, preamble and gap.

Source: IEEE 802.3, InfiniBand 1.4 annex A17 (RoCEv2).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from fabrictune.foundation.retransmission import TimerModel
from fabrictune.foundation.rocev2 import ACK_FRAME_BYTES, PREAMBLE_AND_GAP_BYTES, WIRE_OVERHEAD_BYTES
from fabrictune.netsim.config.host import HostConfig
from fabrictune.netsim.config.nic import NicConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.queues import BufferConfig, QueuesConfig
from fabrictune.netsim.config.settings import LONGEST_WAIT_NS, MAX_PACKETS, MAX_RATE_BPS, require, setting
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig, TrimmingConfig
from fabrictune.netsim.config.transport import CnpConfig, TransportConfig

MAX_FRAME_BYTES = 2**16 - 1
MAX_THREADS = 128
TELEMETRY_BYTES = 42  # 2 B, and 8 B for each of up to five hops: HPCC (SIGCOMM 2019), section 4.1


@dataclass(frozen=True, kw_only=True)
class PacketConfig:
    """All settings of a packet-level run besides network, traffic and law."""

    mtu_bytes: int = setting(4096, "payload of a full packet")
    wire_overhead_bytes: int = setting(WIRE_OVERHEAD_BYTES, "headers, checksums, preamble and gap of a data packet")
    ack_bytes: int = setting(
        ACK_FRAME_BYTES + PREAMBLE_AND_GAP_BYTES, "an acknowledgement or notification on the wire; no packet is shorter"
    )
    telemetry_bytes: int = setting(
        TELEMETRY_BYTES, "in-band telemetry in data packets and acknowledgements, where the law reads it"
    )
    ack_every_packets: int = setting(1, "packets per acknowledgement; the last of a message always has one")
    ecn: EcnConfig = field(default=EcnConfig(), metadata={"help": "marking"})
    pfc: PfcConfig = field(default=PfcConfig(), metadata={"help": "priority flow control"})
    trimming: TrimmingConfig = field(
        default=TrimmingConfig(), metadata={"help": "what switches do with packets that would wait too long"}
    )
    queues: QueuesConfig = field(default=QueuesConfig(), metadata={"help": "priorities, and the order of their queues"})
    buffer: BufferConfig = field(default=BufferConfig(), metadata={"help": "the buffer that a switch's ports share"})
    path_choice: PathChoiceConfig = field(
        default=PathChoiceConfig(), metadata={"help": "how switches choose among ports of equal cost"}
    )
    transport: TransportConfig = field(default=TransportConfig(), metadata={"help": "timeouts and retries"})
    cnp: CnpConfig = field(default=CnpConfig(), metadata={"help": "congestion notifications"})
    nic: NicConfig = field(default=NicConfig(), metadata={"help": "how hosts take and answer what they receive"})
    host: HostConfig = field(default=HostConfig(), metadata={"help": "PCIe between NICs and memory"})
    nvlink_rate_bps: int = setting(3_600_000_000_000, "rate of a GPU's NVLink, each way")
    loss_fraction: float = setting(0.0, "share of packets lost at random on every wire")
    time_limit_ns: int | None = setting(None, "simulated time after which the run ends, finished or not")

    skip: Literal["exact", "bounded", "fluid", "off"] = setting(
        "exact",
        "exact: take what repeats at once, with the same results; bounded: contended traffic too, at its mean rates, "
        "with an interval; fluid: all traffic at max-min fair rates, with an interval from audits packet by packet; "
        "off: take every event",
    )
    skip_precision_fraction: float = setting(
        0.05, "bounded skip: widest interval of what is taken at once, in parts of it"
    )

    threads: int = setting(1, "threads that share one run, each with a part of the fabric; the results are the same")

    def __post_init__(self) -> None:
        is_right = 1 <= self.threads <= MAX_THREADS
        require(is_right, "threads", f"{self.threads}", f"1 to {MAX_THREADS}")
        require(self.mtu_bytes >= 1, "mtu", f"{self.mtu_bytes} B", "1 B or more")
        require(self.wire_overhead_bytes >= 0, "wire_overhead", f"{self.wire_overhead_bytes} B", "0 B or more")
        is_right = 0 <= self.telemetry_bytes <= MAX_FRAME_BYTES
        require(is_right, "telemetry", f"{self.telemetry_bytes} B", f"0 to {MAX_FRAME_BYTES} B")
        full = self.full_frame_bytes
        require(full <= MAX_FRAME_BYTES, "mtu", f"{full} B on the wire", f"up to {MAX_FRAME_BYTES} B with overhead")
        require(self.ack_bytes >= 1, "ack", f"{self.ack_bytes} B", "1 B or more")
        is_right = 1 <= self.ack_every_packets <= MAX_PACKETS
        require(is_right, "ack_every", f"{self.ack_every_packets} packets", f"1 to {MAX_PACKETS}")
        is_right = self.time_limit_ns is None or 1 <= self.time_limit_ns <= LONGEST_WAIT_NS
        require(is_right, "time_limit", f"{self.time_limit_ns} ns", f"1 to {LONGEST_WAIT_NS} ns")
        is_right = 1 <= self.nvlink_rate_bps <= MAX_RATE_BPS
        require(is_right, "nvlink_rate", f"{self.nvlink_rate_bps} bps", f"above 0, up to {MAX_RATE_BPS} bps")
        require(0 <= self.loss_fraction <= 1, "loss", f"{self.loss_fraction}", "0 to 1")
        is_right = 0 < self.skip_precision_fraction <= 1
        require(is_right, "skip_precision", f"{self.skip_precision_fraction}", "above 0, up to 1")
        self._check_priorities()
        self._check_trimming()

    def _check_priorities(self) -> None:
        """Raise InputError for settings that have no effect without a list of priorities."""
        needing = {
            "buffer.size": self.buffer.size_bytes,
            "pfc.quanta": self.pfc.quanta,
            "pfc.watchdog": self.pfc.watchdog,
            "ecn.not_capable": None if self.ecn.not_capable == "queue" else self.ecn.not_capable,
        }
        for name, value in needing.items():
            is_right = value is None or bool(self.queues.priorities)
            require(is_right, name, "no list of priorities", "with `queues.priorities` only")

    def _check_trimming(self) -> None:
        """Raise InputError for what trimming cannot be together with."""
        if not self.trimming.enabled:
            return
        transport = self.transport
        found = f"transport.reliability {transport.reliability}"
        require(transport.is_selective, "trimming", found, "selective-repeat")
        lossy = [entry.priority for entry in self.queues.priorities if not entry.lossless]
        if self.queues.priorities:
            found, allowed = f"trimming.priority {self.trimming.priority}", f"one of the lossy priorities {lossy}"
            require(self.trimming.priority in lossy, "trimming", found, allowed)
        else:
            found, allowed = "pfc.enabled true", "pfc.enabled false: what waits too long is trimmed"
            require(not self.pfc.enabled, "trimming", found, allowed)
            found = f"trimming.priority {self.trimming.priority} without a list of priorities"
            require(self.trimming.priority is None, "trimming", found, "with `queues.priorities` only")
        for name, value in (
            ("threshold", self.trimming.threshold_bytes),
            ("last_hop_threshold", self.trimming.at_last_hop_bytes),
        ):
            full = self.full_frame_bytes
            require(value >= full, f"trimming.{name}", f"{value} B", f"{full} B, a full packet on the wire, or more")

    def with_telemetry(self) -> Self:
        """Return the configuration with headers longer by in-band telemetry."""
        return replace(
            self,
            wire_overhead_bytes=self.wire_overhead_bytes + self.telemetry_bytes,
            ack_bytes=self.ack_bytes + self.telemetry_bytes,
            telemetry_bytes=0,
        )

    def with_marking(self, fill: Callable[[EcnConfig], EcnConfig] = EcnConfig.filled) -> Self:
        """Return the configuration with all its marking filled, by default for 100 Gbps; raises InputError."""
        entries = (replace(entry, ecn=entry.ecn and fill(entry.ecn)) for entry in self.queues.priorities)
        return replace(self, ecn=fill(self.ecn), queues=replace(self.queues, priorities=tuple(entries)))

    def with_timers(self, timers: TimerModel) -> Self:
        """Return the configuration with an adapter's retransmission timers; raises InputError."""
        return replace(self, transport=replace(self.transport, timers=timers))

    @property
    def full_frame_bytes(self) -> int:
        """A full packet on the wire."""
        return max(self.mtu_bytes + self.wire_overhead_bytes, self.ack_bytes)
