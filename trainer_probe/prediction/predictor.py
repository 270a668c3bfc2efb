"""Prediction of a training step: its time with an interval, what it consists of, and what each value does to it.

Shapes: K variants, P pipeline places, C causes of time, V values of the profile, A axes.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.units import PS_PER_S
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.trainer_probe.model.spec import flops_per_token
from fabrictune.trainer_probe.planning.memory import MemoryPlan, plan_memory
from fabrictune.trainer_probe.prediction.elasticities import STEP, Elasticity, changed_profiles
from fabrictune.trainer_probe.prediction.prices import AXIS_CAUSES, CAUSES, Variant, price_program
from fabrictune.trainer_probe.prediction.program import StepProgram
from fabrictune.trainer_probe.prediction.stragglers import Outcome, mean_s, outcomes
from fabrictune.trainer_probe.prediction.timeline import time_program
from fabrictune.trainer_probe.recipes.schema import Recipe

ADDED_BY = "added by"


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a step, and what each value does to it."""

    name: str  # of a cause, or `added by AXIS`
    seconds: float
    slope_V: FloatArray  # s for a relative change of each value, for small changes


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A predicted step."""

    recipe: Recipe
    program: StepProgram
    profile: HardwareProfile
    distribution: tuple[Outcome, ...]  # over where slow hosts are
    causes_PC: FloatArray  # s of the critical path without slow hosts, by place and cause
    without_axis_s: dict[str, float]  # the step if an axis' requests took no time
    elasticities: tuple[Elasticity, ...]
    parts: tuple[Part, ...]  # causes, and what each axis adds to the step
    work_s: float  # what the step loses with all operations' time
    memory: tuple[MemoryPlan, ...]  # of a GPU at each place

    @property
    def fixed_s(self) -> float:
        """Seconds of a step beside its work and communication."""
        return self.profile.fixed.step_ps / PS_PER_S

    @property
    def step_s(self) -> float:
        """The expected step."""
        return mean_s(self.distribution)

    @property
    def num_tokens(self) -> int:
        """Tokens of a step."""
        return self.recipe.degrees.samples_per_step * self.recipe.model.sequence

    @property
    def mfu_fraction(self) -> float:
        """The model's operations, by the papers' count, over the GPUs' peak in the expected step."""
        return self.mfu_of(self.step_s)

    def mfu_of(self, step_s: float) -> float:
        """Return the MFU of a step."""
        flops = flops_per_token(self.recipe.model) * self.num_tokens
        return flops / (step_s * self.recipe.degrees.layout.world_size * self.profile.gpu.peak_flops_per_s)

    def causes(self) -> dict[str, float]:
        """Return the seconds of the expected step by cause."""
        parts = {name: float(seconds) for name, seconds in zip(CAUSES, self.causes_PC.sum(0), strict=True)}
        schedule_s = self.distribution[-1].step_s
        return {**parts, "slow hosts": self.step_s - schedule_s, "fixed": self.fixed_s}


def predict(recipe: Recipe, program: StepProgram, profile: HardwareProfile) -> Prediction:
    """Return the prediction of a recipe's step, whose program is given; raises InputError."""
    _check_kernel(profile)
    num_places = len(program.steps)
    places = range(num_places) if profile.stragglers.hosts_fraction and profile.stragglers.slowdown_fraction else ()
    axes = [axis for axis in AXIS_CAUSES if recipe.degrees.layout.degree(axis) > 1]  # type: ignore[arg-type]
    changed = list(changed_profiles(profile))
    variants = [
        Variant(profile=profile),
        *(Variant(profile=profile, slow_place=place) for place in places),
        *(Variant(profile=profile, free_axis=axis) for axis in axes),
        Variant(profile=profile, work_factor=1 + STEP),
        *(Variant(profile=other) for _, other in changed),
        *(Variant(profile=other, free_axis=axis) for axis in axes for _, other in changed),
    ]
    times = time_program(program, price_program(program, variants))
    step_s, *others = (float(seconds) for seconds in times.step_K)
    slow_s, others = others[: len(places)], others[len(places) :]
    free_s, (more_work_s, *others) = others[: len(axes)], others[len(axes) :]
    changed_s, free_AV = others[: len(changed)], np.array(others[len(changed) :]).reshape(len(axes), len(changed))
    first = len(variants) - len(changed) * (1 + len(axes))
    causes_CV = times.causes_CK[:, first : first + len(changed)]
    fixed_s = profile.fixed.step_ps / PS_PER_S
    num_hosts = recipe.degrees.layout.world_size / profile.host.num_gpus / num_places
    distribution = outcomes(
        step_s + fixed_s, [slow + fixed_s for slow in slow_s], num_hosts, profile.stragglers.hosts_fraction
    )
    stretch = (mean_s(distribution) - fixed_s) / step_s  # of everything but the fixed part, by slow hosts
    return Prediction(
        recipe=recipe,
        program=program,
        profile=profile,
        distribution=tuple(distribution),
        causes_PC=times.causes_PC,
        without_axis_s={axis: free * stretch + fixed_s for axis, free in zip(axes, free_s, strict=True)},
        elasticities=tuple(_elasticities(profile, [key for key, _ in changed], changed_s, step_s, distribution)),
        parts=(
            *_parts(CAUSES, times.causes_CK[:, 0], causes_CV),
            *_parts(
                [f"{ADDED_BY} {axis}" for axis in axes],
                (step_s - np.array(free_s)) * stretch,
                (np.array(changed_s) - free_AV) * stretch,
            ),
        ),
        work_s=(more_work_s - step_s) / STEP * stretch,
        memory=tuple(plan_memory(recipe, place) for place in range(num_places)),
    )


def _parts(names: Sequence[str], seconds: FloatArray, changed: FloatArray) -> Iterator[Part]:
    """Yield parts that take time, from their seconds and those with each value changed, a row for each part."""
    for name, part_s, changed_V in zip(names, seconds.tolist(), changed, strict=True):
        if part_s > 0 or changed_V.any():
            yield Part(name=name, seconds=part_s, slope_V=(changed_V - part_s) / math.log(1 + STEP))


def _elasticities(
    profile: HardwareProfile,
    keys: Sequence[str],
    changed_s: Sequence[float],
    step_s: float,
    distribution: Sequence[Outcome],
) -> list[Elasticity]:
    """Return the elasticity of every value, those of slow hosts and of the fixed part in closed form."""
    mean, fixed_s = mean_s(distribution), profile.fixed.step_ps / PS_PER_S
    share = (mean - fixed_s) / mean
    found = {
        key: share * math.log(changed / step_s) / math.log(1 + STEP)
        for key, changed in zip(keys, changed_s, strict=True)
    }
    slow_s = mean - distribution[-1].step_s
    for key, seconds in (("stragglers.hosts", slow_s), ("stragglers.slowdown", slow_s), ("fixed.step", fixed_s)):
        if key in found:
            found[key] = seconds / mean
    return [
        Elasticity(
            key=key, source=profile.source_of(key), uncertainty=profile.uncertainty_of(key), elasticity=elasticity
        )
        for key, elasticity in found.items()
    ]


def _check_kernel(profile: HardwareProfile) -> None:
    kernels = profile.gpu.attention.kernels
    if not kernels or (profile.software.attention and profile.software.attention not in kernels):
        raise InputError(
            Mistake(
                where=f"{profile.name}: gpu.attention",
                found=f"no rates of {profile.software.attention or 'a kernel'}",
                allowed=f"one of {', '.join(kernels)}" if kernels else "flash1, flash2 or flash3",
                next_step="give the kernel's rates, or set software.attention to one that has rates",
            )
        )


def as_rows(causes_PC: FloatArray) -> list[tuple[int, str, float]]:
    """Return place, cause and seconds of what a critical path consists of, the longest first."""
    rows = [
        (place, CAUSES[cause], float(causes_PC[place, cause])) for place, cause in np.argwhere(causes_PC > 0).tolist()
    ]
    return sorted(rows, key=lambda row: -row[2])
