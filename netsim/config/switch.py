"""Configuration of switches: ECN marking, PFC and its watchdog, trimming.

Source: IEEE 802.1Qbb; RFC 3168, section 5; SONiC's WRED_PROFILE and QUEUE tables; HPCC (SIGCOMM'19) public simulator
for the marking curve at 100 Gb/s; Ultra Ethernet Specification 1.0, sections 4.1 and 3.6.17, for trimming.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

from fabrictune.netsim.config.settings import (
    LONGEST_WAIT_NS,
    MAX_BUFFER_BYTES,
    MAX_QUEUE_BYTES,
    NUM_PRIORITIES,
    require,
    setting,
)

MAX_TRIMMED_BYTES = 2**16 - 1
MAX_QUANTA = 2**16 - 1  # of 512 bit times, what a pause frame can say


@dataclass(frozen=True, kw_only=True)
class EcnConfig:
    """RED on the queue a packet finds: none is marked up to kmin, a share rising to pmax at kmax, all beyond.

    What is left open a scenario derives from its law and link (`engine_inputs.link`).
    What is not ECN-capable (`nic.ecn_capable`) cannot be marked: it is queued, or dropped where it would be marked, as
    by SONiC's WRED profiles. These are bound to queues: each of `queues.priorities` may have its own.
    """

    enabled: bool = setting(True, "whether switches mark")
    kmin_bytes: int | None = setting(
        None, "queue above which packets may be marked; by default the law's for the NICs' rate: 400 KB at 100 Gbps"
    )
    kmax_bytes: int | None = setting(
        None, "queue from which every packet is marked; by default the law's for the NICs' rate: 1.6 MB at 100 Gbps"
    )
    pmax_fraction: float | None = setting(None, "share marked just below kmax; by default the law's: 0.2")
    not_capable: Literal["queue", "drop"] = setting(
        "queue", "packets that are not ECN-capable where others are marked: queue or drop them"
    )

    def __post_init__(self) -> None:
        kmin_bytes, kmax_bytes, pmax_fraction = self.kmin_bytes or 0, self.kmax_bytes, self.pmax_fraction
        is_right = 0 <= kmin_bytes < MAX_QUEUE_BYTES
        require(is_right, "ecn.kmin", f"{kmin_bytes} B", f"0 to {MAX_QUEUE_BYTES - 1} B")
        is_right = kmax_bytes is None or kmin_bytes < kmax_bytes <= MAX_QUEUE_BYTES
        require(is_right, "ecn.kmax", f"{kmax_bytes} B", f"above {kmin_bytes}, up to {MAX_QUEUE_BYTES} B")
        require(0 <= (pmax_fraction or 0) <= 1, "ecn.pmax", f"{pmax_fraction}", "0 to 1")

    @property
    def curve(self) -> tuple[int, int, float]:
        """kmin, kmax and pmax; what is open at its value for 100 Gbps."""
        filled = self.filled()
        assert filled.kmin_bytes is not None
        assert filled.kmax_bytes is not None
        assert filled.pmax_fraction is not None
        return filled.kmin_bytes, filled.kmax_bytes, filled.pmax_fraction

    def filled(
        self, *, kmin_bytes: int = 400_000, kmax_bytes: int = 1_600_000, pmax_fraction: float = 0.2
    ) -> "EcnConfig":
        """Return the curve with these values where it has none; raises InputError where kmin is not below kmax."""
        return replace(
            self,
            kmin_bytes=kmin_bytes if self.kmin_bytes is None else self.kmin_bytes,
            kmax_bytes=kmax_bytes if self.kmax_bytes is None else self.kmax_bytes,
            pmax_fraction=pmax_fraction if self.pmax_fraction is None else self.pmax_fraction,
        )


@dataclass(frozen=True, kw_only=True)
class TrimmingConfig:
    """Trimming, per output: a data packet that finds too long a queue goes on without its payload, before all data.

    It needs selective repeat, and no PFC; or `queues.priorities` with one for trimmed packets: what is lossy is
    trimmed, what is lossless pauses. Defaults are one bandwidth-delay product of 100 Gb/s over 12 us, the
    specification's reference network, and headers of UET over UDP and IP in the shortest frame.
    """

    enabled: bool = setting(False, "whether switches trim")
    threshold_bytes: int = setting(150_000, "queue, with the packet, beyond which it is trimmed")
    last_hop_threshold_bytes: int | None = setting(
        None, "the same at ports that lead to hosts; by default one and a half times the other"
    )
    trimmed_bytes: int = setting(84, "a trimmed packet on the wire, with preamble and gap")
    priority: int | None = setting(None, "with `queues.priorities`: priority of trimmed packets, one that is lossy")

    def __post_init__(self) -> None:
        for name in ("threshold", "last_hop_threshold"):
            value = getattr(self, f"{name}_bytes")
            is_right = value is None or 1 <= value <= MAX_BUFFER_BYTES
            require(is_right, f"trimming.{name}", f"{value} B", f"1 to {MAX_BUFFER_BYTES} B")
        is_right = 1 <= self.trimmed_bytes <= MAX_TRIMMED_BYTES
        require(is_right, "trimming.trimmed", f"{self.trimmed_bytes} B", f"1 to {MAX_TRIMMED_BYTES} B")
        is_right = self.priority is None or 0 <= self.priority < NUM_PRIORITIES
        require(is_right, "trimming.priority", f"{self.priority}", f"0 to {NUM_PRIORITIES - 1}")

    @property
    def at_last_hop_bytes(self) -> int:
        """Threshold of ports that lead to hosts."""
        if self.last_hop_threshold_bytes is not None:
            return self.last_hop_threshold_bytes
        return self.threshold_bytes * 3 // 2


@dataclass(frozen=True, kw_only=True)
class WatchdogConfig:
    """PFC watchdog: a switch drops or forwards the packets of a queue that is paused for too long.

    It does so until no pause has come for the time of restoration. Defaults are those of SONiC.
    """

    detect_ns: int = setting(200_000_000, "how long a queue with packets may be paused before it counts as a storm")
    restore_ns: int = setting(200_000_000, "time without a pause after which a storm is over")
    action: Literal["drop", "forward"] = setting("drop", "drop what waits and what comes, or send it all the same")

    def __post_init__(self) -> None:
        for name in ("detect", "restore"):
            value = getattr(self, f"{name}_ns")
            is_right = 1 <= value <= LONGEST_WAIT_NS
            require(is_right, f"pfc.watchdog.{name}", f"{value} ns", f"1 to {LONGEST_WAIT_NS} ns")


@dataclass(frozen=True, kw_only=True)
class PfcConfig:
    """Priority flow control, per ingress port: pause at xoff, resume at xon, room for what is still on its way.

    The pause is sent when one more full frame would pass xoff. What comes beyond xoff and headroom is dropped. Without
    PFC the whole buffer is used and the rest dropped.

    `quanta` and `watchdog` need `queues.priorities`. With those all of it holds for each lossless priority of a port,
    and `buffer` is also what each lossy queue may hold.
    """

    enabled: bool = setting(True, "whether switches pause their neighbours")
    buffer_bytes: int = setting(1_000_000, "buffer of one ingress port, headroom included")
    xoff_bytes: int | None = setting(None, "fill at which to pause; by default the buffer less the headroom")
    xon_bytes: int | None = setting(None, "fill at which to resume; by default four fifths of xoff")
    headroom_bytes: int | None = setting(None, "room above xoff; by default computed from cable delay and rate")
    response_ns: int | None = setting(
        None, "from a pause frame to silence; by default the standard's bound for the rate"
    )
    quanta: int | None = setting(
        None, "length of a pause in 512 bit times, up to 65535; by default it lasts until it is ended"
    )
    refresh: bool = setting(True, "whether a pause that must go on is sent again after half its length")
    watchdog: WatchdogConfig | None = field(
        default=None, metadata={"help": "what is done about storms of pauses; by default nothing"}
    )

    def __post_init__(self) -> None:
        for name in ("buffer_bytes", "xoff_bytes", "xon_bytes", "headroom_bytes"):
            value = getattr(self, name)
            is_right = value is None or 0 <= value <= MAX_BUFFER_BYTES
            require(is_right, f"pfc.{name.removesuffix('_bytes')}", f"{value} B", f"0 to {MAX_BUFFER_BYTES} B")
        require(0 <= (self.response_ns or 0) <= 10**6, "pfc.response", f"{self.response_ns} ns", "0 to 1 ms")
        require(1 <= (self.quanta or 1) <= MAX_QUANTA, "pfc.quanta", f"{self.quanta}", f"1 to {MAX_QUANTA}")
