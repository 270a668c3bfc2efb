"""Limits of a run's sections after setup: the first step, which compiles and waits for late ranks, later steps, saves.

A rank that waits longer than the limit for others ends the run. Once steps have been measured the limit follows from
them, so that a rank that hangs is noticed in minutes and a slow model is not mistaken for one that hangs.

Source: NVIDIA Resiliency Extension 0.7, fault tolerance, "section timeouts" (setup, step, checkpoint) and their
"safety factor" over the longest measured.
"""

from collections.abc import Collection
from dataclasses import dataclass

NUM_RECENT = 32  # steps whose longest counts


@dataclass(frozen=True, kw_only=True)
class SectionTimeouts:
    """Limits of a request within a step, and of a save beside the steps, in seconds."""

    first_step_s: float = 1800.0
    min_step_s: float = 60.0
    safety_factor: float = 10.0
    first_save_s: float = 1800.0
    min_save_s: float = 120.0

    def step_s(self, recent_s: Collection[float]) -> float:
        """Return the limit of the next step after the NUM_RECENT last ones took so long."""
        if not recent_s:
            return self.first_step_s
        return max(self.min_step_s, self.safety_factor * max(recent_s))

    def save_s(self, recent_s: Collection[float]) -> float:
        """Return the limit of the next save, until all ranks' files are written, after the last ones took so long."""
        if not recent_s:
            return self.first_save_s
        return max(self.min_save_s, self.safety_factor * max(recent_s))
