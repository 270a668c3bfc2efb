"""Counters and settings as a file has them, before their meaning is looked up."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake, quote

MAX_VALUE = 2**64 - 1
MAX_COUNTERS = 200_000  # of one file, and of all together
_OF_QUEUE = re.compile(r"(?:rx|tx|ch|rxq|txq|xdp)_?\d+_\w+|\[.*|.*\[\d+\].*")  # rx12_packets, [3]: rx_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """One counter of a file."""

    device: str  # "" where the file does not name it
    name: str
    value: int
    where: str
    is_extended: bool | None = None  # of perfquery: whether -x was given


@dataclass(kw_only=True)
class Reading:
    """Values of one file, settings by device and name, and notes on what was left out."""

    path: Path
    values: list[Value] = field(default_factory=list)
    settings: dict[tuple[str, str], str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    num_of_queues: int = 0  # counters of single queues of a driver
    num_left_out: int = 0
    first_left_out: str = ""

    def add(self, value: Value) -> None:
        """Add a counter, or leave out one of a single queue; raises InputError for more than can be used."""
        if _OF_QUEUE.fullmatch(value.name):
            self.num_of_queues += 1
        elif len(self.values) >= MAX_COUNTERS:
            found, next_step = f"more than {MAX_COUNTERS:,} counters", "give fewer devices at a time"
            raise InputError(Mistake(where=value.where, found=found, next_step=next_step))
        else:
            self.values.append(value)

    def leave_out(self, text: str, where: str) -> None:
        """Count something that is no counter."""
        self.num_left_out += 1
        self.first_left_out = self.first_left_out or f"{quote(text.strip())} at {where}"

    def finish(self) -> "Reading":
        """Return the reading with a note of what was left out."""
        if self.num_of_queues:
            self.notes.append(f"{self.path}: counters of single queues, left out: {self.num_of_queues}")
        if self.num_left_out:
            self.notes.append(f"{self.path}: no counters, left out: {self.num_left_out} (first {self.first_left_out})")
        return self


def whole_number(text: str) -> int | None:
    """Return a whole number of at most 64 bits, None for anything else."""
    if re.fullmatch("[0-9]{1,20}", text) and int(text) <= MAX_VALUE:
        return int(text)
    return None
