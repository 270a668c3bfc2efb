"""Prices of a program's segments and requests, for several variants of a hardware profile at once.

Shapes: K variants, S segments, R requests, C causes of time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.units import PS_PER_S
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.trainer_probe.planning.operation_costs import ExpectedCosts
from fabrictune.trainer_probe.prediction.program import ProgramRequest, ProgramWork, StepProgram
from fabrictune.trainer_probe.prediction.request_costs import expected_s, is_inside_host

LAUNCHES = "launches"
WORK_CAUSES = ("products", "attention", "memory", LAUNCHES, "optimizer")
SHARED_GPU = "work beside collectives"
SYNCHRONISATION = "synchronisation"
AXIS_CAUSES = ("tp", "cp", "ep", "dp", "pp")
CAUSES = (*WORK_CAUSES, SHARED_GPU, *AXIS_CAUSES, SYNCHRONISATION)
CAUSE = {name: number for number, name in enumerate(CAUSES)}


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A profile, and what else a variant of the step changes."""

    profile: HardwareProfile
    work_factor: float = 1.0  # of all operations
    slow_place: int | None = None  # whose operations take `slowdown_fraction` longer
    free_axis: str | None = None  # whose requests take no time


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Seconds of segments and requests in each variant."""

    segment_SCK: FloatArray  # by cause
    issue_SK: FloatArray  # of the host, for a segment's operations
    request_RK: FloatArray
    place_factor_PK: FloatArray  # on segments
    share_RK: FloatArray  # of the GPU that a request takes from the work beside it
    synchronisation_K: FloatArray  # after messages of the pipeline that are waited for at once


def price_program(program: StepProgram, variants: Sequence[Variant]) -> Prices:
    """Return the prices of a program."""
    profiles = {id(variant.profile): variant.profile for variant in variants}
    segment, request = {}, {}
    for key, profile in profiles.items():
        segment[key] = _segments_SC(program, profile)
        request[key] = np.array([expected_s(one, profile) for one in program.requests])
    is_free_RK = np.array([[one.axis == variant.free_axis for variant in variants] for one in program.requests])
    request_RK = np.stack([request[id(variant.profile)] for variant in variants], axis=1)
    work_factor_K = np.array([variant.work_factor for variant in variants])
    synchronisation_K = [variant.profile.network.synchronisation_ps / PS_PER_S for variant in variants]
    is_pp_free_K = np.array([variant.free_axis == "pp" for variant in variants])
    return Prices(
        segment_SCK=np.stack([segment[id(variant.profile)] for variant in variants], axis=2) * work_factor_K,
        issue_SK=np.outer([len(own) for own in program.segments], [_issue_s(variant) for variant in variants]),
        request_RK=np.where(is_free_RK, 0.0, request_RK) if program.requests else request_RK,
        place_factor_PK=np.array([[_slowness(one, place) for one in variants] for place in range(len(program.steps))]),
        share_RK=np.array([[_share(one, variant) for variant in variants] for one in program.requests]),
        synchronisation_K=np.where(is_pp_free_K, 0.0, np.array(synchronisation_K)) * program.is_blocking,
    )


def _issue_s(variant: Variant) -> float:
    """Return the time to issue an operation; a factor on operations' time is one on it, too."""
    factor = variant.work_factor * variant.profile.software.work_factor
    return factor * variant.profile.host.issue_ps / PS_PER_S


def _share(request: ProgramRequest, variant: Variant) -> float:
    """Return the share of a collective over NVLink; one over NICs has few channels."""
    is_taken = is_inside_host(request, variant.profile) and request.axis != variant.free_axis
    return variant.profile.nvlink.compute_share_fraction if is_taken else 0.0


def _slowness(variant: Variant, place: int) -> float:
    return 1.0 + (variant.profile.stragglers.slowdown_fraction if variant.slow_place == place else 0.0)


def _segments_SC(program: StepProgram, profile: HardwareProfile) -> FloatArray:
    """Return the seconds of each segment by cause."""
    costs = ExpectedCosts(profile=profile, attention_kernel=profile.software.attention or None)
    cost = cache(lambda work: _cost(work, costs))
    seconds_SC = np.zeros((len(program.segments), len(CAUSES)))
    for number, segment in enumerate(program.segments):
        for own in segment:
            bound, work_s, launch_s = cost(own)
            is_update = own.part == "optimizer"
            seconds_SC[number, CAUSE["optimizer" if is_update else bound]] += work_s
            seconds_SC[number, CAUSE["optimizer" if is_update else LAUNCHES]] += launch_s
    return seconds_SC * profile.software.work_factor


def _cost(own: ProgramWork, costs: ExpectedCosts) -> tuple[str, float, float]:
    """Return what bounds an operation, its seconds, and those of its launch.

    Fused chunks of a product share waves of tiles, so that each takes its part of the whole, and no rows are copied.
    """
    is_fused = costs.profile.software.chunks == "fused"
    if is_fused and own.is_chunk_copy:
        return "memory", 0.0, 0.0
    work, product, num_chunks = own.work, own.work.product, own.num_chunks if is_fused else 1
    if product is not None and num_chunks > 1:
        whole = replace(product, m=product.m * num_chunks)
        work = replace(work, flops=work.flops * num_chunks, bytes=work.bytes * num_chunks, product=whole)
    found = costs.cost(work)
    return found.bound, found.work_ps / num_chunks / PS_PER_S, found.launch_ps / PS_PER_S
