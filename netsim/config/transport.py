"""Configuration of the transport: reliability, RNR NAKs and congestion notifications.

Defaults are the standard's timer 14 with seven retries, and the notification interval of NVIDIA's adapters. What an
application asks for is here; what the adapter makes of it is a timer model (`adapter` in a scenario).

Source: InfiniBand Architecture Specification 1.4, section 9.7; foundation/retransmission.py for what adapters do.
"""

from dataclasses import dataclass, field
from typing import Literal

from fabrictune.foundation.retransmission import (
    MAX_EXPONENT,
    MAX_RETRIES,
    NEVER_PS,
    RNR_RETRIES_FOREVER,
    RNR_TIMERS_MS,
    STANDARD,
    TimerModel,
)
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.netsim.config.settings import LONGEST_WAIT_NS, MAX_BUFFER_BYTES, require, setting

MAX_WINDOW = MAX_RECEIVES = 2**20
MAX_GRANT_PACKETS = 2**10


@dataclass(frozen=True, kw_only=True)
class RnrConfig:
    """Receiver not ready: a message without a posted receive gets an RNR NAK, and is sent again later."""

    receives: int | None = setting(
        None, "messages of a queue pair for which receives are posted; by default any number"
    )
    replenish_ns: int = setting(0, "time an application takes to post a receive anew, one after another")
    timer_code: int = setting(12, "RNR NAK timer: InfiniBand's code of the wait, 12 for 0.64 ms as NCCL sets it")
    retries: int = setting(7, "RNR NAKs without progress before a queue pair fails on the next; 7 never fails")

    def __post_init__(self) -> None:
        is_right = self.receives is None or 1 <= self.receives <= MAX_RECEIVES
        require(is_right, "transport.rnr.receives", f"{self.receives}", f"1 to {MAX_RECEIVES}")
        is_right = 0 <= self.replenish_ns <= LONGEST_WAIT_NS
        require(is_right, "transport.rnr.replenish", f"{self.replenish_ns} ns", f"0 to {LONGEST_WAIT_NS} ns")
        for name, most in (("timer_code", len(RNR_TIMERS_MS) - 1), ("retries", RNR_RETRIES_FOREVER)):
            value = getattr(self, name)
            require(0 <= value <= most, f"transport.rnr.{name}", f"{value}", f"0 to {most}")


@dataclass(frozen=True, kw_only=True)
class CreditsConfig:
    """Receiver credits (RCCC of Ultra Ethernet): senders send what the receiver's NIC has granted, beside any law.

    They need selective repeat. Defaults are those of the consortium's public htsim model.
    """

    enabled: bool = setting(False, "whether senders need credit")
    window_bytes: int | None = setting(
        None,
        "most credit of a sender, on the wire, and what it has at the start; by default one and a half times what its"
        " NIC sends in an unloaded round trip",
    )
    grant_packets: int = setting(4, "most of a grant, in full packets")
    rate_fraction: float = setting(0.99, "rate of a NIC's grants, as a share of its link's")

    def __post_init__(self) -> None:
        is_right = 1 <= (self.window_bytes or 1) <= MAX_BUFFER_BYTES
        require(is_right, "transport.credits.window", f"{self.window_bytes} B", f"1 to {MAX_BUFFER_BYTES} B")
        is_right = 1 <= self.grant_packets <= MAX_GRANT_PACKETS
        require(is_right, "transport.credits.grant", f"{self.grant_packets}", f"1 to {MAX_GRANT_PACKETS}")
        require(0 < self.rate_fraction <= 1, "transport.credits.rate", f"{self.rate_fraction}", "above 0, up to 1")


@dataclass(frozen=True, kw_only=True)
class TransportConfig:
    """Reliability of a queue pair: retransmission, timeouts and retry limits.

    Go-back-N sends everything again from the first packet that did not arrive in its turn. Selective repeat sends again
    only what is lost: a packet that another one, sent later, has overtaken by more than the reorder window.

    With `acknowledge_after` acknowledgements are coalesced. A packet counts 1 KiB at least; a mark, a message's end, a
    packet that came before, and one after which its sender waits are acknowledged at once.
    """

    reliability: Literal["go-back-n", "selective-repeat"] = setting("go-back-n", "go-back-n or selective-repeat")
    window_packets: int = setting(
        1024, "selective repeat: packets from the oldest not acknowledged on that both ends keep track of"
    )
    reorder_window_ns: int | None = setting(
        None, "selective repeat: how far packets may overtake one another; by default the unloaded round trip"
    )
    acknowledge_after_bytes: int | None = setting(
        None,
        "selective repeat: payload after which a receiver acknowledges, whatever the order of packets, with a bitmap of"
        " 64; Ultra Ethernet's 16 KiB; by default every packet out of order is acknowledged",
        known_as=("ACK_Gen_Trigger",),
    )

    timeout_exponent: int = setting(
        14,
        "local-ack timeout T: 4.096 us * 2**T (NCCL_IB_TIMEOUT); 0 waits forever",
        known_as=("NCCL_IB_TIMEOUT", "ib_timeout", "ack_timeout", "local_ack_timeout"),
    )
    retries: int = setting(
        7,
        "sendings without progress before a queue pair fails on the next timeout",
        known_as=("NCCL_IB_RETRY_CNT", "retry_cnt", "retry_count"),
    )
    timeout_ns: int | None = setting(
        None, "a wait of its own length instead of the adapter's, once and `retries` times more"
    )
    rnr: RnrConfig = field(default=RnrConfig(), metadata={"help": "receivers that are not ready"})
    credits: CreditsConfig = field(default=CreditsConfig(), metadata={"help": "credits that receivers grant"})
    timers: TimerModel = field(default=STANDARD, metadata={"file": False})  # a scenario's `adapter` names them

    def __post_init__(self) -> None:
        found = f"reliability {self.reliability}"
        is_right = self.is_selective or not self.credits.enabled
        require(is_right, "transport.credits", found, "reliability selective-repeat")
        fewest = self.timers.fewest_retries
        for name, least, most in (("timeout_exponent", 0, MAX_EXPONENT), ("retries", fewest, MAX_RETRIES)):
            value = getattr(self, name)
            require(least <= value <= most, f"transport.{name}", f"{value}", f"{least} to {most}")
        require(
            1 <= self.window_packets <= MAX_WINDOW, "transport.window", f"{self.window_packets}", f"1 to {MAX_WINDOW}"
        )
        is_right = 0 <= (self.reorder_window_ns or 0) <= LONGEST_WAIT_NS
        allowed = f"0 to {LONGEST_WAIT_NS} ns"
        require(is_right, "transport.reorder_window", f"{self.reorder_window_ns} ns", allowed)
        is_right = 1 <= (self.acknowledge_after_bytes or 1) <= MAX_BUFFER_BYTES
        found = f"{self.acknowledge_after_bytes} B"
        require(is_right, "transport.acknowledge_after", found, f"1 to {MAX_BUFFER_BYTES} B")
        is_right = self.timeout_ns is None or 1 <= self.timeout_ns <= LONGEST_WAIT_NS
        require(is_right, "transport.timeout", f"{self.timeout_ns} ns", f"1 to {LONGEST_WAIT_NS} ns")

    @property
    def is_selective(self) -> bool:
        """Whether only what is lost is sent again."""
        return self.reliability == "selective-repeat"

    @property
    def coalesces(self) -> bool:
        """Whether one acknowledgement stands for several packets in any order."""
        return self.is_selective and self.acknowledge_after_bytes is not None

    @property
    def waits_ps(self) -> tuple[int, ...]:
        """Successive retransmission timeouts; the queue pair fails after the last. NEVER_PS: no limit."""
        if self.timeout_ns is not None:
            return (self.timeout_ns * PS_PER_NS,) * (self.retries + 1)
        return self.timers.waits_ps(self.timeout_exponent, self.retries)

    @property
    def budget_ps(self) -> int:
        """Time without an acknowledgement after which a queue pair fails; NEVER_PS: never."""
        return min(NEVER_PS, sum(self.waits_ps))


@dataclass(frozen=True, kw_only=True)
class CnpConfig:
    """Congestion notifications: how often a receiver sends one, and how long it takes until the sender acts.

    Adapters take their time: about 55 us in all on one real deployment, which is why real fabrics pause where
    simulators without this delay do not.
    """

    interval_ns: int = setting(4_000, "least time between two congestion notifications of a queue pair")
    generation_delay_ns: int = setting(0, "from a marked packet's arrival to its notification")
    handling_delay_ns: int = setting(0, "from a notification's arrival to the law's reaction")

    def __post_init__(self) -> None:
        for name in ("interval", "generation_delay", "handling_delay"):
            value = getattr(self, f"{name}_ns")
            require(0 <= value <= LONGEST_WAIT_NS, f"cnp.{name}", f"{value} ns", f"0 to {LONGEST_WAIT_NS} ns")
