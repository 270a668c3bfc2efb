"""Analysis of a decay: whether steps grow, and which part of them does.

The growth of a step is laid to the parts that grow with it. Steps end where the slowest rank does, and what slows one
rank delays all: shares are of the whole growth, and need not sum to 1.
"""

from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.spans import Spans
from fabrictune.observability.decay.parts import PARTS, StepParts, step_parts
from fabrictune.observability.decay.trend import growth, is_trend

MIN_STEPS = 10
MIN_SHARE = 0.2  # of the step's growth, of a part that is named
MIN_RANK_SHARE = 0.5  # of the largest growth of a rank, of those that are named
MAX_RANKS = 8
TENTH = 10


@dataclass(frozen=True, kw_only=True)
class PartGrowth:
    """How a part of the step changes over a run."""

    part: str
    first_ns: float
    last_ns: float
    growth_ns: float
    share: float  # of the step's growth; 0 where the part has no trend
    ranks: tuple[int, ...]  # on which it grows, () where on all of them


@dataclass(frozen=True, kw_only=True)
class Decay:
    """The change of a step over a run; parts with the largest growth first."""

    parts: StepParts
    first_ns: float
    last_ns: float
    growth_ns: float
    is_trend: bool
    growths: tuple[PartGrowth, ...]

    @property
    def growth_fraction(self) -> float:
        """Growth over the first steps' time."""
        return self.growth_ns / self.first_ns

    @property
    def mfu_change_fraction(self) -> float:
        """Change of MFU, which a step's time divides."""
        return 1 / (1 + self.growth_fraction) - 1

    @property
    def causes(self) -> tuple[PartGrowth, ...]:
        """The parts that explain a decay."""
        return tuple(part for part in self.growths if part.share >= MIN_SHARE)


def decay_of(spans: Spans) -> Decay:
    """Return the decay of a job; raises TraceError where it has too few steps."""
    parts = step_parts(spans)
    if len(parts.steps) < MIN_STEPS:
        found = f"{len(parts.steps)} steps that all ranks have whole, the first one left out"
        raise TraceError(Mistake(where="spans", found=found, allowed=f"{MIN_STEPS} or more", next_step="train longer"))
    step_S = parts.steps.astype(np.float64)
    first_ns, last_ns = _ends(parts.step_ns_S)
    grown = growth(parts.step_ns_S, step_S)
    growths = [_part(name, parts.part_ns[name], step_S, grown) for name in PARTS]
    return Decay(
        parts=parts,
        first_ns=first_ns,
        last_ns=last_ns,
        growth_ns=grown,
        is_trend=is_trend(parts.step_ns_S, step_S, grown),
        growths=tuple(sorted(growths, key=lambda part: -part.growth_ns)),
    )


def _part(name: str, part_RS: FloatArray, step_S: FloatArray, step_growth: float) -> PartGrowth:
    largest_S = part_RS.max(axis=0)
    first_ns, last_ns = _ends(largest_S)
    grown = growth(largest_S, step_S)
    has_trend = grown > 0 and is_trend(largest_S, step_S, grown)
    return PartGrowth(
        part=name,
        first_ns=first_ns,
        last_ns=last_ns,
        growth_ns=grown,
        share=grown / step_growth if has_trend and step_growth > 0 else 0.0,
        ranks=_growing_ranks(part_RS) if has_trend else (),
    )


def _growing_ranks(part_RS: FloatArray) -> tuple[int, ...]:
    """Return the ranks whose part grows most from the first third to the last, () where most ranks' does."""
    third = max(1, part_RS.shape[1] // 3)
    grown_R = part_RS[:, -third:].mean(axis=1) - part_RS[:, :third].mean(axis=1)
    ranks = np.flatnonzero(grown_R > MIN_RANK_SHARE * grown_R.max())
    return tuple(ranks.tolist()) if len(ranks) <= max(1, min(MAX_RANKS, len(part_RS) // 2)) else ()


def _ends(value_S: FloatArray) -> tuple[float, float]:
    """Return the means of the first and the last tenth."""
    tenth = max(1, len(value_S) // TENTH)
    return float(value_S[:tenth].mean()), float(value_S[-tenth:].mean())
