"""The record of a predicted step."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.units import PS_PER_S
from fabrictune.hardware.sources import kind_of
from fabrictune.trainer_probe.planning.record import check_memory
from fabrictune.trainer_probe.prediction.advice import Change
from fabrictune.trainer_probe.prediction.elasticities import Elasticity
from fabrictune.trainer_probe.prediction.intervals import Interval, StepFit, part_intervals
from fabrictune.trainer_probe.prediction.predictor import ADDED_BY, Prediction, as_rows
from fabrictune.trainer_probe.prediction.stragglers import quantile_s

KIND = "validate predict"
_NEGLIGIBLE = 1e-3  # of the step, for values that are assumed


@dataclass(frozen=True, kw_only=True)
class PredictionResult:
    """A predicted step with its interval, and what to change."""

    prediction: Prediction
    interval: Interval
    fit: StepFit | None
    changes: Sequence[Change]
    fabric_step_s: float | None = None  # with its communication simulated


def make_record(result: PredictionResult, *, started: float) -> RunRecord:
    """Return a record of kind "validate predict"; `started` is `time.perf_counter` at the start."""
    prediction, recipe = result.prediction, result.prediction.recipe
    hardware = {f"hardware.{key}": _plain(value) for key, value in prediction.profile.values().items()}
    record = RunRecord(
        kind=KIND,
        run={
            "name": recipe.name,
            "question": recipe.question,
            "configuration": {**recipe.settings(), "hardware.name": prediction.profile.name, **hardware},
            "outcome": outcome(result),
            **describe_run(seed=recipe.seed, started=started),
            "notes": assumptions(prediction),
        },
        tables={
            "step_causes": to_columns(
                "step_causes",
                [
                    {"place": place, "cause": cause, "duration_ps": round(seconds * PS_PER_S)}
                    for place, cause, seconds in as_rows(prediction.causes_PC)
                ],
            ),
            "step_values": to_columns("step_values", _value_rows(prediction)),
            "step_changes": to_columns("step_changes", [_change_row(change) for change in result.changes]),
        },
    )
    return record.with_checks(
        check_memory(prediction.memory, prediction.profile.gpu.memory.capacity_bytes),
    )


def outcome(result: PredictionResult) -> dict[str, Any]:
    """Return the figures of a prediction; each that follows from the step has the ends of its interval beside it."""
    prediction, span = result.prediction, result.interval
    ends = {"": span.step_s, "_low": span.low_s, "_high": span.high_s}
    figures: dict[str, Any] = {f"step{end}_ps": round(step_s * PS_PER_S) for end, step_s in ends.items()}
    turned = {"": span.step_s, "_low": span.high_s, "_high": span.low_s}
    figures |= {f"tokens_per_s{end}": prediction.num_tokens / step_s for end, step_s in turned.items()}
    figures |= {f"mfu_fraction{end}": prediction.mfu_of(step_s) for end, step_s in turned.items()}
    figures["num_ranks"] = prediction.recipe.degrees.layout.world_size
    figures["num_tokens"] = prediction.num_tokens
    for share, name in ((0.5, "median"), (0.95, "p95")):
        figures[f"slow_hosts_{name}_ps"] = round(quantile_s(prediction.distribution, share) * PS_PER_S)
    figures |= {f"cause.{name}_ps": round(seconds * PS_PER_S) for name, seconds in prediction.causes().items()}
    for axis, step_s in prediction.without_axis_s.items():
        figures[f"added_by_{axis}_ps"] = round((prediction.step_s - step_s) * PS_PER_S)
    for name, (low_s, high_s) in part_intervals(prediction).items():
        key = name.replace(" ", "_") if name.startswith(ADDED_BY) else f"cause.{name}"
        figures |= {f"{key}_low_ps": round(low_s * PS_PER_S), f"{key}_high_ps": round(high_s * PS_PER_S)}
    figures["most_memory_bytes"] = max(memory.total_bytes for memory in prediction.memory)
    if result.fabric_step_s is not None:
        for end, step_s in ends.items():  # as far off as the step in closed form
            figures[f"fabric_step{end}_ps"] = round(result.fabric_step_s * step_s / span.step_s * PS_PER_S)
    if result.fit is not None:
        figures |= {"fit.work_factor": result.fit.work_factor, "fit.fixed_ps": round(result.fit.fixed_s * PS_PER_S)}
        figures["num_fitted_steps"] = len(result.fit.steps)
    return figures


def assumptions(prediction: Prediction) -> list[str]:
    """Return what a prediction rests on and nobody has published of this system."""
    recipe, by_source = prediction.recipe, defaultdict[str, list[Elasticity]](list)
    for value in prediction.elasticities:
        if kind_of(value.source) == "assumed" and abs(value.elasticity) * value.uncertainty > _NEGLIGIBLE:
            by_source[value.source].append(value)
    found = [f"{', '.join(map(_with_weight, own))} {source}" for source, own in by_source.items()]
    if recipe.compile == "layers":
        found.append("assumed: compiled layers fuse operations that follow one another into one kernel")
    if prediction.profile.stragglers.hosts_fraction == 0:
        found.append("assumed: no host is slow, as the profile has no stragglers")
    return found


def _with_weight(value: Elasticity) -> str:
    return f"{value.key} (+/- {abs(value.elasticity) * value.uncertainty:.1%} of the step)"


def _value_rows(prediction: Prediction) -> list[dict[str, Any]]:
    rows = sorted(prediction.elasticities, key=lambda value: -abs(value.elasticity))
    return [
        {
            "key": value.key,
            "elasticity_fraction": value.elasticity,
            "uncertainty_fraction": value.uncertainty,
            "source": value.source,
        }
        for value in rows
    ]


def _change_row(change: Change) -> dict[str, Any]:
    return {
        "change": change.what,
        "step_ps": round(change.step_s * PS_PER_S),
        "gain_fraction": change.gain_fraction,
        "gain_fraction_low": change.gain_interval[0],
        "gain_fraction_high": change.gain_interval[1],
    }


def _plain(value: Any) -> Any:
    """Return a value of a profile as JSON has it."""
    return value if isinstance(value, int | float | str) else str(value)
