"""State that all parts of a run share: inputs as plain lists, the clock, the heap of events, random streams.

Events happen by time, then kind, then the number of the port, queue pair or transfer they are about; never by
insertion (docs/decisions/0003-packet-engine.md).

Source: SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
"""

import heapq
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

from fabrictune.netsim.engine_inputs.inputs import EngineInputs

_MASK = 2**64 - 1
HASH, RANDOM, ROUND_ROBIN, LEAST_QUEUE, WEIGHTED, QUALITY, ENTROPY = range(7)  # rules of path choice


class EventKind(IntEnum):
    """Kinds of events, in the order in which they happen at one instant."""

    ARRIVAL = 0
    PAUSE_FRAME = 1
    WAKE = 2
    REPLY = 3
    PACE = 4
    TIMER = 5
    TRANSFER = 6
    CLOCK = 7


class ClockEvent(IntEnum):
    """Rare events, in the order in which they happen at the end of an instant."""

    TIME_LIMIT = 0
    FAULT = 1
    REROUTE = 2
    DRAIN = 3
    GRANT = 4


class RunState:
    """Inputs and clock of one run."""

    def __init__(self, inputs: EngineInputs) -> None:
        self.settings: Any = SimpleNamespace(**inputs.settings)  # by the names of netsim/engine/state/settings.inl
        arrays = {**inputs.arrays, **inputs.all_transfers()}.items()  # by the names of arrays.inl, transfer_arrays.inl
        self.columns: dict[str, list[Any]] = {name: array.tolist() for name, array in arrays if name != "flow"}
        self.num_pairs = len(inputs["flow"])
        self.has_priorities = bool(self.columns["priority_weight"])
        self.outcome = "running"
        self.now_ps = 0
        self.num_live = 0  # packets on their way, and data packets not yet answered
        self.events: list[tuple[int, EventKind, int, Any]] = []

    def schedule(self, time_ps: int, kind: EventKind, number: int, about: Any = 0) -> None:
        """Schedule an event of a port, queue pair or transfer."""
        heapq.heappush(self.events, (time_ps, kind, number, about))

    def advance(self) -> tuple[EventKind, int, Any]:
        """Set the clock to the next event; return its kind, number and what it is about."""
        self.now_ps, *event = heapq.heappop(self.events)
        return tuple(event)


class RandomStream:
    """Random numbers of which the n-th is a function of key, stream and n: netsim/engine/state/random.hpp."""

    def __init__(self, key: int, stream: int) -> None:
        self.state = _mix64(key ^ _mix64(stream + 1))

    def next_fraction(self) -> float:
        """Return the next number in [0, 1)."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        return (_mix64(self.state) >> 11) * 2.0**-53

    def next_below(self, limit: int) -> int:
        """Return the next number of 0 to limit - 1."""
        return int(self.next_fraction() * limit)


def _mix64(value: int) -> int:
    """Return SplitMix64's output function of a 64-bit number."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31
