"""A job as the planner sees it: size, checkpoints, phases of a recovery, spares, and flaps of links."""

import math
from dataclasses import dataclass

from fabrictune.foundation.errors import InputError, Mistake

PHASES = ("detection", "diagnosis", "ranks down", "nodes", "start", "restore")


@dataclass(frozen=True, kw_only=True)
class MemoryTier:
    """Checkpoints in the memory of nodes."""

    every_s: float  # of work
    stall_s: float = 0.04  # that a save blocks the step; ByteRobust, Table 8
    copy_s: float = 10.0  # from then until the copy on another node is complete
    restore_s: float = 20.0
    is_copied: bool = True  # to another node: survives the loss of one


@dataclass(frozen=True, kw_only=True)
class Flaps:
    """Flaps of links, and what queue pairs make of them."""

    per_link_day: float
    mean_s: float  # durations are exponential
    longest_s: float  # that a queue pair survives
    mean_stall_s: float  # of a flap that is survived
    basis: str  # which settings on which adapter

    @property
    def killed_fraction(self) -> float:
        """Return the share of flaps that end the job."""
        return math.exp(-self.longest_s / self.mean_s)


@dataclass(frozen=True, kw_only=True)
class SurvivalJob:
    """A job that saves, fails and recovers. Times of phases are means, taken as constant."""

    num_gpus: int
    gpus_per_node: int = 8
    duration_s: float = 54 * 86400.0
    step_s: float = 10.0
    save_every_s: float = 1800.0  # of work, to storage
    stall_s: float = 5.0  # that such a save blocks the step; none where it is copied from memory
    write_s: float = 60.0  # from then until storage has it
    slowdown_fraction: float = 0.0  # of steps, by saves in the background
    memory: MemoryTier | None = None
    detect_s: float = 60.0
    diagnose_s: float = 120.0
    down_s: float = 10.0
    start_s: float = 120.0
    restore_s: float = 60.0
    spares: int = 0
    spare_s: float = 58.0  # to take a warm spare in
    node_s: float = 600.0  # to get a node where no spare is free
    repair_s: float = 86400.0  # until a failed node is a spare again
    flaps: Flaps | None = None

    def __post_init__(self) -> None:
        if mistakes := [*self._below("num_gpus", "gpus_per_node", "duration_s", "step_s", "save_every_s", least=0.0)]:
            raise InputError(*mistakes)

    def _below(self, *names: str, least: float) -> list[Mistake]:
        return [
            Mistake(where=name, found=str(getattr(self, name)), allowed=f"above {least:g}")
            for name in names
            if not least < getattr(self, name) < math.inf
        ]

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes."""
        return -(-self.num_gpus // self.gpus_per_node)

    @property
    def saves_per_upload(self) -> int:
        """Return how many saves to memory one to storage follows; 1 without memory."""
        return 1 if self.memory is None else max(1, round(self.save_every_s / self.memory.every_s))

    @property
    def segment_s(self) -> float:
        """Return the work between two saves."""
        return self.save_every_s if self.memory is None else self.memory.every_s

    @property
    def save_stall_s(self) -> float:
        """Return what each save blocks."""
        return self.stall_s if self.memory is None else self.memory.stall_s

    @property
    def copy_s(self) -> float:
        """Return how long a save takes until memory has it."""
        return 0.0 if self.memory is None else self.memory.copy_s

    def survives_in_memory(self, loses: str) -> bool:
        """Return whether a checkpoint in memory survives a failure that loses this."""
        return self.memory is not None and (loses == "process" or (loses == "node" and self.memory.is_copied))
