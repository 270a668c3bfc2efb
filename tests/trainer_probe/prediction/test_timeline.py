"""The schedule at its prices against closed forms, and what may not happen whatever the prices."""

from dataclasses import replace
from typing import Any

import pytest

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.units import PS_PER_S
from fabrictune.hardware.cluster import StragglerSpec
from fabrictune.hardware.files import bundled_profile
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.hardware.software import SoftwareSpec
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.prediction.prices import CAUSE, Variant, price_program
from fabrictune.trainer_probe.prediction.program import EventKind, StepProgram
from fabrictune.trainer_probe.prediction.request_costs import expected_s
from fabrictune.trainer_probe.prediction.timeline import StepTimes, time_program
from fabrictune.trainer_probe.recipes.schema import Overlap, Recipe

pytest.importorskip("torch")

MODEL = GptSpec(width=8192, depth=32, num_heads=64, vocabulary=65536, sequence=4096)
PROFILE = bundled_profile("a100")


def program(degrees: Degrees, overlap: Overlap = "none", model: GptSpec = MODEL) -> StepProgram:
    from fabrictune.trainer_probe.prediction.dry_run import write_program

    return write_program(Recipe(name="play", model=model, degrees=degrees, overlap=overlap, precision="bfloat16"))


def times(of: StepProgram, profile: HardwareProfile = PROFILE, **variant: Any) -> StepTimes:
    return time_program(of, price_program(of, [Variant(profile=profile, **variant)]))


def passes_s(of: StepProgram, place: int) -> list[float]:
    """Return the seconds of the passes of a place, in order, where no pass has requests."""
    segment_S = price_program(of, [Variant(profile=PROFILE)]).segment_SCK[:, :, 0].sum(1)
    blocks = [sum(segment_S[value] for _, value in block) for block in of.blocks]
    return [float(blocks[value]) for kind, value in of.steps[place] if kind == EventKind.RUN]


@pytest.mark.parametrize(
    ("pp", "virtual", "num_batches", "overlap"),
    [
        (4, 1, 24, "none"),
        (4, 1, 24, "all"),
        (4, 2, 32, "none"),
        (4, 2, 32, "all"),
        (8, 1, 64, "none"),
        (8, 1, 64, "all"),
        (8, 2, 64, "none"),
    ],
)
def test_the_step_is_that_of_the_slowest_place(pp: int, virtual: int, num_batches: int, overlap: Overlap) -> None:
    """Within 0.2 % of the closed form: all passes of the last place, which has the head, and one pass each way of the
    chunks before it. Coupled, each pass ends with a synchronisation, and all but the first chunk's with a message.

    Here the head is at most a third of a chunk and a message a thirtieth of a pass; where they are longer (8 places of
    several chunks), warm-up waits for them too, and the closed form is up to 0.7 % short. The textbook's
    (p - 1) / (v m) on the mean of all places misses by up to a fifth.
    """
    of = program(Degrees(layout=ParallelLayout(pp=pp), virtual=virtual, num_batches=num_batches), overlap)
    work_s = [passes_s(of, place) for place in range(pp)]
    one_way_s = sum(sorted(set(work_s[1]))[:2])  # a pass forward and one backward of a chunk without the ends
    message_s = max(expected_s(request, PROFILE) for request in of.requests if request.axis == "pp")
    synchronisation_s = PROFILE.network.synchronisation_ps / PS_PER_S if overlap == "none" else 0.0
    in_turn_s = num_batches * (2 * virtual * synchronisation_s + (2 * virtual - 1) * message_s)
    found = times(of)
    rest_s = float(found.step_K[0]) - max(map(sum, work_s)) - (pp - 1) * (one_way_s + 2 * message_s)
    rest_s -= in_turn_s if overlap == "none" else 0.0
    around_s = sum(times_of_ends(of))
    assert rest_s == pytest.approx(around_s, abs=0.002 * float(found.step_K[0]))


def times_of_ends(of: StepProgram) -> list[float]:
    """Return the seconds of the operations of the last place outside of its passes: gradients' reset, the update."""
    segment_S = price_program(of, [Variant(profile=PROFILE)]).segment_SCK[:, :, 0].sum(1)
    return [float(segment_S[value]) for kind, value in of.steps[-1] if kind == EventKind.WORK]


@pytest.fixture(scope="module")
def parallel() -> StepProgram:
    """A step over three axes, with nothing overlapped."""
    return program(Degrees(layout=ParallelLayout(tp=8, pp=4, dp=8), virtual=2, num_batches=8))


def test_causes_sum_to_the_step(parallel: StepProgram) -> None:
    """The critical path has no gaps."""
    found = times(parallel)
    assert found.causes_PC.sum() == pytest.approx(found.step_K[0], rel=1e-12)
    assert found.causes_PC[:, CAUSE["dp"]].sum() > 0


def test_variants_are_what_they_are_alone(parallel: StepProgram) -> None:
    """A variant's step does not depend on the others that are timed with it."""
    slow = replace(PROFILE, stragglers=StragglerSpec(hosts_fraction=0.1, slowdown_fraction=0.2), sources=_sources())
    variants = [Variant(profile=PROFILE), Variant(profile=slow, slow_place=3), Variant(profile=PROFILE, free_axis="tp")]
    together = time_program(parallel, price_program(parallel, variants)).step_K
    alone = [time_program(parallel, price_program(parallel, [variant])).step_K[0] for variant in variants]
    assert together.tolist() == alone
    assert alone[2] < alone[0] < alone[1]


def test_a_slower_network_never_shortens_the_step(parallel: StepProgram) -> None:
    """Nor a higher latency; each is a variant of the others."""
    profiles = [replace(PROFILE, network=replace(PROFILE.network, nic_rate_bps=rate)) for rate in (8e11, 2e11, 5e10)]
    profiles.append(replace(profiles[-1], network=replace(profiles[-1].network, latency_ps=10**9)))
    steps = time_program(parallel, price_program(parallel, [Variant(profile=own) for own in profiles])).step_K
    assert sorted(steps.tolist()) == steps.tolist()
    assert steps[0] < steps[-1]


def test_overlaps_shorten_the_step(parallel: StepProgram) -> None:
    """Each axis alone, and all of them most."""
    degrees = Degrees(layout=ParallelLayout(tp=8, pp=4, dp=8), virtual=2, num_batches=8)
    policies: tuple[Overlap, ...] = ("tp", "pp", "dp", "all")
    steps = {policy: float(times(program(degrees, policy)).step_K[0]) for policy in policies}
    assert max(steps.values()) < times(parallel).step_K[0]
    assert min(steps, key=lambda policy: steps[policy]) == "all"


def test_fused_chunks_take_the_time_of_whole_products() -> None:
    """And copy no rows: the work of a pass is that of a step without chunks, whose requests are fewer."""
    model = replace(MODEL, depth=4)
    layout = ParallelLayout(tp=8, dp=2)
    whole, cut = (
        program(Degrees(layout=layout, num_batches=2, tensor_chunks=chunks), "tp", model) for chunks in (1, 4)
    )
    fused = replace(
        PROFILE, software=SoftwareSpec(chunks="fused"), sources={**PROFILE.sources, "software": "assumed: fused"}
    )
    names = [CAUSE["products"], CAUSE["memory"]]
    of_whole, apart, together = (
        times(of, profile).causes_PC[:, names].sum() for of, profile in ((whole, PROFILE), (cut, PROFILE), (cut, fused))
    )
    assert together == pytest.approx(of_whole, rel=0.01)
    assert apart > together


def test_a_program_is_the_same_each_time(parallel: StepProgram) -> None:
    """Equal programs have equal steps."""
    assert program(Degrees(layout=ParallelLayout(tp=8, pp=4, dp=8), virtual=2, num_batches=8)) == parallel


def test_passes_are_written_once() -> None:
    """A step of four times the micro-batches has the same blocks, segments and requests."""
    small, large = (program(Degrees(layout=ParallelLayout(pp=4), virtual=2, num_batches=m)) for m in (8, 32))
    assert (small.blocks, small.segments) == (large.blocks, large.segments)
    assert sum(map(len, large.steps)) > 3 * sum(map(len, small.steps))


def _sources() -> dict[str, str]:
    return {**PROFILE.sources, "stragglers": "assumed: slow"}
