"""Real processes on this machine, against one process and arithmetic."""

import math

from fabrictune.foundation.cases import Case, exactly
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.settings.binding import Chosen
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.optimizers.learning_rate import LearningRateSchedule
from fabrictune.trainer_probe.optimizers.spec import OptimizerSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.parallel.volumes import step_volumes
from fabrictune.trainer_probe.recipes.schema import Overlap, Recipe, SyntheticSource
from fabrictune.trainer_probe.training.local import train_locally
from fabrictune.trainer_probe.training.outcome import Outcome

_MODEL = GptSpec(width=16, depth=2, num_heads=2, vocabulary=64, sequence=16)
_LAYOUT = ParallelLayout(tp=2, dp=2)
_SAMPLES = 4  # of a step
_TOLERANCE = 1e-12  # double precision: only the order of additions differs
_TIMEOUT_S = 300.0
_DRIVERS_OWN = ("optimizer.", "driver.")  # begin the tags of requests that are not the step's


def cases() -> tuple[Case, ...]:
    """Return the cases; running one raises UnavailableError where torch is missing."""
    return (_equality("none"), _equality("all"), _ledger_bytes())


def _recipe(layout: ParallelLayout, overlap: Overlap) -> Recipe:
    return Recipe(
        name="conformance",
        model=_MODEL,
        degrees=Degrees(layout=layout, num_batches=_SAMPLES // layout.dp),
        overlap=overlap,
        optimizer=OptimizerSpec(epsilon=1e-6),
        schedule=LearningRateSchedule(peak=0.02, num_steps=3),
        precision="float64",
        data=Chosen(name="synthetic", spec=SyntheticSource(num_tokens=4096)),
        num_steps=3,
        num_traced_steps=1,
    )


def _train(layout: ParallelLayout, overlap: Overlap) -> Outcome:
    return train_locally(_recipe(layout, overlap), on_step=lambda report: None, timeout_s=_TIMEOUT_S)


def _equality(overlap: Overlap) -> Case:
    return Case(
        name=f"trainer_probe.four-processes-equal-one-{overlap}",
        source="closed form: loss and gradient norm of three steps over tp 2, dp 2 are those of one process, in fp64",
        unit="largest relative difference",
        expected=0.0,
        low=0.0,
        high=_TOLERANCE,
        run=lambda: _largest_difference(overlap),
    )


def _largest_difference(overlap: Overlap) -> float:
    one, four = _train(ParallelLayout(), "none"), _train(_LAYOUT, overlap)
    pairs = [
        pair
        for alone, together in zip(one.reports, four.reports, strict=True)
        for pair in ((alone.loss, together.loss), (alone.gradient_norm, together.gradient_norm))
    ]
    assert all(math.isfinite(expected) for expected, _ in pairs), "differences of no numbers say nothing"
    return max(abs(found - expected) / expected for expected, found in pairs)


def _ledger_bytes() -> Case:
    volumes = step_volumes(_MODEL, _recipe(_LAYOUT, "none").degrees, place=0, element_bytes=8)
    return Case(
        name="trainer_probe.ledger-bytes",
        source="closed form: a step's bytes on each of four ranks of tp 2, dp 2",
        unit="B",
        **exactly(_LAYOUT.world_size * volumes.total()),
        run=_bytes_in_trace,
    )


def _bytes_in_trace() -> float:
    trace = _train(_LAYOUT, "none").trace
    is_steps = [not tag.startswith(_DRIVERS_OWN) for tag in trace.tag_N]
    return float(trace.bytes_N[is_steps].sum())
