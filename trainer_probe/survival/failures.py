"""Failure tables: how often what fails, with what a count leaves open.

A cause was counted over an exposure, in days of nodes or of the job. Its rate then has a gamma distribution of its own,
with its count and its part of the 1/2 of Jeffreys' prior, which the causes of a table share: their sum has that prior
too. A rate without a count has no width.

Source: Gelman et al., Bayesian Data Analysis (3rd edition), section 2.6 (gamma posterior of a Poisson rate).

Shapes: C causes, D draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.quantiles import NORMAL_90
from fabrictune.foundation.seeds import stream

S_PER_DAY = 86400.0
Loss = Literal["process", "node", "nodes"]
Exposure = Literal["node", "job"]
LOSSES: tuple[Loss, ...] = ("process", "node", "nodes")
EXPOSURES: tuple[Exposure, ...] = ("node", "job")


@dataclass(frozen=True, kw_only=True)
class FailureCause:
    """A cause of interruptions, and how often it was counted."""

    name: str
    count: float | None  # None where only a rate is known
    exposure_days: float  # of nodes, or of the job; of a rate without a count, the days in which one is expected
    per: Exposure = "node"
    loses: Loss = "node"  # memory of no node, of one, or of several at once; a lost node is replaced
    detect_s: float | None = None  # None: as the job has it
    diagnose_s: float | None = None
    is_planned: bool = False  # saved before it stops: no work is lost


@dataclass(frozen=True, kw_only=True)
class FailureTable:
    """Causes of interruptions from one source."""

    name: str
    source: str
    causes: tuple[FailureCause, ...]
    notes: tuple[str, ...] = ()  # what is assumed of it

    def rates_per_s(self, num_nodes: int) -> FloatArray:
        """Return the expected rate of each cause for a job of so many nodes, [C]."""
        return np.array([self.rate_per_day(cause) * _scale(cause, num_nodes) for cause in self.causes])

    def draw_rates_per_s(self, num_nodes: int, num_draws: int, *, spread: float, seed: int) -> FloatArray:
        """Return rates drawn from the posterior of each cause, [C, D].

        `spread` is the factor by which another cluster's rates may differ, at the ends of 90 %, for all causes alike.
        """
        generator = stream(seed, "failure rates")
        shared_D = np.exp(generator.normal(0.0, np.log(spread) / NORMAL_90, num_draws)) if spread > 1 else 1.0
        rows = [self._draw(cause, num_draws, generator) * _scale(cause, num_nodes) for cause in self.causes]
        return np.stack(rows) * shared_D

    def rate_per_day(self, cause: FailureCause) -> float:
        """Return the expected number in a day of one node, or of the job."""
        return (1.0 if cause.count is None else cause.count + self._prior) / cause.exposure_days

    @property
    def per_1000_node_days(self) -> float:
        """Return the expected number of unplanned failures in 1000 node-days, of causes counted by node."""
        return 1000 * sum(self.rate_per_day(cause) for cause in unplanned(self.causes) if cause.per == "node")

    @property
    def _prior(self) -> float:
        return 0.5 / max(1, sum(cause.count is not None for cause in self.causes))

    def _draw(self, cause: FailureCause, num_draws: int, generator: np.random.Generator) -> FloatArray:
        if cause.count is None:
            return np.full(num_draws, self.rate_per_day(cause))
        return generator.gamma(cause.count + self._prior, 1 / cause.exposure_days, num_draws)


def unplanned(causes: Sequence[FailureCause]) -> list[FailureCause]:
    """Return the causes that are failures."""
    return [cause for cause in causes if not cause.is_planned]


def _scale(cause: FailureCause, num_nodes: int) -> float:
    return (num_nodes if cause.per == "node" else 1) / S_PER_DAY
