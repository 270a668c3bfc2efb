"""The plan of a job: requests and memory of its ranks, and the shortest possible step.

Shapes: P pipeline places.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.job_traces import JobTrace
from fabrictune.foundation.layout import Axis
from fabrictune.foundation.units import PS_PER_S
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.trainer_probe.model.hardware_flops import hardware_flops_per_token
from fabrictune.trainer_probe.model.spec import flops_per_token
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.memory import MemoryPlan, plan_memory
from fabrictune.trainer_probe.planning.operation_costs import ExpectedCosts, OperationCosts, RooflineCosts
from fabrictune.trainer_probe.planning.timeline import StepGraph, Timeline, durations
from fabrictune.trainer_probe.planning.volumes import Volume, volumes_of_place
from fabrictune.trainer_probe.recipes.schema import Recipe

if TYPE_CHECKING:
    from fabrictune.trainer_probe.planning.dry_run import PassTime
    from fabrictune.trainer_probe.planning.operation_clock import OperationClock


@dataclass(frozen=True, kw_only=True)
class OperationTime:
    """The calls of one operation in one part of a step on a rank, and the time they take.

    Launches are rows of their own, without calls.
    """

    part: str  # forward, backward, weights, optimizer or rest
    operation: str  # torch's name
    bound: str  # products, attention, memory or launch: what its time comes from
    num_calls: int
    flops: int
    bytes: int  # read from and written to memory
    duration_ps: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A plan of a recipe on a cluster."""

    recipe: Recipe
    hardware: HardwareSpec
    trace: JobTrace
    flops_P: IntArray  # of products, on each rank of a place
    operations: tuple[Sequence[OperationTime], ...]  # of a rank at each place
    passes: tuple[Sequence["PassTime"], ...]  # of a rank at each place

    @property
    def num_tokens(self) -> int:
        """Tokens of a step."""
        return self.recipe.degrees.samples_per_step * self.recipe.model.sequence

    @property
    def model_flops(self) -> float:
        """Operations of the model per step and GPU, by the papers' count."""
        return flops_per_token(self.recipe.model) * self.num_tokens / self.recipe.degrees.layout.world_size

    @property
    def hardware_flops(self) -> float:
        """Operations of the model per step and GPU, with those that recomputation repeats, by the same count."""
        of_token = hardware_flops_per_token(self.recipe.model, self.recipe.recompute)
        return of_token * self.num_tokens / self.recipe.degrees.layout.world_size

    @cached_property
    def memory(self) -> tuple[MemoryPlan, ...]:
        """Memory of the ranks at each place."""
        return tuple(plan_memory(self.recipe, place) for place in range(self.recipe.degrees.layout.pp))

    def volumes(self, place: int) -> list[Volume]:
        """Return the volumes of a rank at a place of the pipeline, by axis and operation."""
        return volumes_of_place(self.trace, place, self._duration_ps_N)

    @cached_property
    def _duration_ps_N(self) -> IntArray:
        return durations(self.trace, self.hardware)

    @cached_property
    def _graph(self) -> StepGraph:
        return StepGraph(self.trace)

    @cached_property
    def at_best(self) -> Timeline:
        """Times of a step in which no two requests share a link."""
        return self._graph.timeline(self._duration_ps_N)

    @cached_property
    def without_network(self) -> Timeline:
        """Times of a step in which requests take no time: operations, and the pipeline's bubble."""
        return self._graph.timeline(np.zeros_like(self._duration_ps_N))

    @property
    def work_ps(self) -> int:
        """Time of the operations of the busiest place."""
        return sum(row.duration_ps for row in self.operations[self.busiest_place])

    @cached_property
    def busiest_place(self) -> int:
        """The place whose operations take longest, the first of several."""
        durations_P = [sum(row.duration_ps for row in rows) for rows in self.operations]
        return durations_P.index(max(durations_P))

    def bound_ps(self, bound: str) -> int:
        """Return the time of the busiest place's operations that are bound by `products`, `memory` and so on."""
        return sum(row.duration_ps for row in self.operations[self.busiest_place] if row.bound == bound)

    @property
    def bubble_fraction(self) -> float:
        """Waiting over work of the busiest place, where requests take no time."""
        return self.without_network.step_ps / self.work_ps - 1

    def added_ps(self, axis: Axis) -> int:
        """Return the time that one axis' requests alone add to the step at best."""
        is_own_N = self.trace.is_along_N(axis)
        alone = self._graph.timeline(np.where(is_own_N, self._duration_ps_N, 0))
        return alone.step_ps - self.without_network.step_ps

    @property
    def mfu_fraction(self) -> float:
        """Upper bound of the model's share of the GPU's peak rate (MFU)."""
        return self.model_flops / (self.at_best.step_ps / PS_PER_S * self.hardware.peak_flops_per_s)

    @property
    def achievable_fraction(self) -> float:
        """Upper bound of the model's share of the rate that products achieve."""
        return self.model_flops / (self.at_best.step_ps / PS_PER_S * self.hardware.achieved_flops_per_s)


def place_of_rank(recipe: Recipe, rank: int) -> int:
    """Return a rank's place in its pipeline; raises InputError for a rank outside the layout."""
    layout = recipe.degrees.layout
    if not 0 <= rank < layout.world_size:
        raise InputError(Mistake(where="rank", found=str(rank), allowed=f"0 to {layout.world_size - 1}"))
    return int(layout.coordinates(rank)["pp"])


def make_plan(recipe: Recipe, hardware: HardwareSpec, costs: OperationCosts | None = None) -> Plan:
    """Return the plan of a recipe on a cluster; operations cost what the roofline says, where no `costs` are given.

    Raises UnavailableError where torch is missing.
    """
    require_extra("torch", extra="train", where="trainer")
    from fabrictune.trainer_probe.planning.dry_run import plan_rank

    layout, costs = recipe.degrees.layout, costs or RooflineCosts(hardware)
    firsts = [layout.rank(tp=0, dp=0, pp=place) for place in range(layout.pp)]
    plans = [plan_rank(recipe, rank, costs) for rank in firsts]
    return Plan(
        recipe=recipe,
        hardware=hardware,
        trace=JobTrace.of_places(layout, [plan.trace for plan in plans]),
        flops_P=np.array([plan.clock.flops.total() for plan in plans]),
        operations=tuple(_operation_times(plan.clock) for plan in plans),
        passes=tuple(plan.passes for plan in plans),
    )


def expect_plan(recipe: Recipe, profile: HardwareProfile, *, attention_kernel: str | None = None) -> Plan:
    """Return the plan of a recipe in which operations take the time that a hardware profile expects.

    `attention_kernel` names one of the profile's kernels, by default the newest. Requests still take the least time.
    """
    costs = ExpectedCosts(profile=profile, fuses=recipe.compile == "layers", attention_kernel=attention_kernel)
    return make_plan(recipe, HardwareSpec.of_profile(profile), costs)


def _operation_times(clock: "OperationClock") -> list[OperationTime]:
    """Return the operations of a rank, the longest first."""
    rows = [
        OperationTime(
            part=part,
            operation=name,
            bound=bound,
            num_calls=clock.calls[part, name, bound],
            flops=clock.flops[part, name, bound],
            bytes=clock.bytes[part, name, bound],
            duration_ps=clock.duration_ps[part, name, bound],
        )
        for part, name, bound in clock.duration_ps
    ]
    return sorted(rows, key=lambda row: (-row.duration_ps, row.part, row.operation))
