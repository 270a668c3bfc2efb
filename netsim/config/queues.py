"""Configuration of queues: priorities of a port, and the shared buffer of a switch.

Without a list of priorities a port has two queues: acknowledgements and notifications go first, are never paused and
take no buffer; data follow, and each ingress port has a buffer of its own (`pfc.buffer`). `acknowledgement_class: data`
has acknowledgements wait with data, paused and counted as they are. A list gives each priority a queue at every port,
in hosts and switches, and all that arrives takes its place in the buffer.

Lossless priorities are counted by the port through which they came, and pause it; lossy ones are counted by the port
they wait for, and what goes beyond is dropped. Either may take its reserve, and of what is shared no more than alpha
times the bytes that are free.

Source: IEEE 802.1Q (strict priority, bandwidth shares); Shreedhar, Varghese, "Efficient Fair Queuing using Deficit
Round Robin", SIGCOMM 1995; Choudhury, Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
IEEE/ACM Transactions on Networking, 1998.
"""

from dataclasses import dataclass, field
from typing import Literal

from fabrictune.netsim.config.settings import MAX_BUFFER_BYTES, NUM_PRIORITIES, require, setting
from fabrictune.netsim.config.switch import EcnConfig

MAX_WEIGHT = 255
MAX_ALPHA = 128.0


@dataclass(frozen=True, kw_only=True)
class PriorityConfig:
    """One priority of all ports: its scheduling, its buffer and its marking."""

    priority: int = setting(3, "0 to 7, as queue pairs have it; 3 by default")
    weight: int = setting(0, "share of what strict priorities leave; 0: strict, before all weights and lower numbers")
    lossless: bool = setting(False, "whether it pauses its senders; others drop what is too much")
    alpha: float = setting(1.0, "shared buffer: the threshold of a queue in parts of what is free")
    reserve_bytes: int = setting(0, "shared buffer: bytes that each port has for this priority alone")
    ecn: EcnConfig | None = field(default=None, metadata={"help": "marking of its queues; by default that of all"})

    def __post_init__(self) -> None:
        where = f"queues.priorities[{self.priority}]"
        require(0 <= self.priority < NUM_PRIORITIES, "queues.priorities.priority", f"{self.priority}", "0 to 7")
        require(0 <= self.weight <= MAX_WEIGHT, f"{where}.weight", f"{self.weight}", f"0 to {MAX_WEIGHT}")
        require(0 < self.alpha <= MAX_ALPHA, f"{where}.alpha", f"{self.alpha}", f"above 0, up to {MAX_ALPHA:g}")
        is_right = 0 <= self.reserve_bytes <= MAX_BUFFER_BYTES
        require(is_right, f"{where}.reserve", f"{self.reserve_bytes} B", f"0 to {MAX_BUFFER_BYTES} B")


@dataclass(frozen=True, kw_only=True)
class QueuesConfig:
    """The priorities of every port."""

    priorities: tuple[PriorityConfig, ...] = setting((), "one entry for each; without any, data and control")
    acknowledgements: int | None = setting(None, "priority of acknowledgements; by default their queue pair's")
    cnp: int | None = setting(None, "priority of congestion notifications; by default their queue pair's")
    acknowledgement_class: Literal["control", "data"] = setting(
        "control",
        "without priorities: control, sent before data and never paused, or data",
        known_as=("ACK_HIGH_PRIO",),
    )

    def __post_init__(self) -> None:
        numbers = self.numbers
        require(len(set(numbers)) == len(numbers), "queues.priorities", f"{list(numbers)}", "each number once")
        for name in ("acknowledgements", "cnp"):
            value = getattr(self, name)
            require(value is None or value in numbers, f"queues.{name}", f"{value}", f"one of {list(numbers)}")
        is_right = self.acknowledgement_class == "control" or not numbers
        found = f"{self.acknowledgement_class} beside priorities {list(numbers)}"
        require(is_right, "queues.acknowledgement_class", found, "with `queues.priorities`: queues.acknowledgements")

    @property
    def numbers(self) -> tuple[int, ...]:
        """The priorities, ascending."""
        return tuple(sorted(entry.priority for entry in self.priorities))


@dataclass(frozen=True, kw_only=True)
class BufferConfig:
    """The shared buffer of a switch; with it `pfc.buffer`, `pfc.xoff` and `pfc.xon` have no effect."""

    size_bytes: int | None = setting(
        None, "buffer of one switch, reserves and headroom included; by default each port has `pfc.buffer`"
    )
    headroom_pool_bytes: int | None = setting(
        None, "headroom that a switch's lossless queues share; by default each has all of its own"
    )
    resume_offset_bytes: int | None = setting(
        None, "room below its threshold with which a queue ends a pause; by default two full frames"
    )

    def __post_init__(self) -> None:
        for name in ("size", "headroom_pool", "resume_offset"):
            value = getattr(self, f"{name}_bytes")
            is_right = value is None or 1 <= value <= MAX_BUFFER_BYTES
            require(is_right, f"buffer.{name}", f"{value} B", f"1 to {MAX_BUFFER_BYTES} B")
            is_used = value is None or self.size_bytes is not None
            require(is_used, f"buffer.{name}", f"{value} B without a shared buffer", "only with buffer.size")
