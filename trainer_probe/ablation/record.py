"""The record of an ablation: a row for each technique, with its gain over the ablation step it adds to.

Gains are compared within a round and then over rounds, so that a machine that is slow for a while adds no gain.

Shapes: R rounds that were finished for both steps.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.metrics.formulas import percentiles
from fabrictune.foundation.records import Columns, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.trainer_probe.ablation.steps import ablation_steps
from fabrictune.trainer_probe.ablation.trials import TrialStep
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.outcome import training_table


def make_record(recipe: Recipe, trial_steps: Sequence[TrialStep], *, num_rounds: int, started: float) -> RunRecord:
    """Return a record of kind "train ablate"; `started` is `time.perf_counter` at the start.

    Its tables are `ablation_steps` and `ablation_trials`; there are none without a finished trial.
    """
    steps = ablation_steps(recipe)
    rows = [_row(trial_steps, step.name, step.base) for step in steps]
    rows = [row for row in rows if row["rounds"]]
    is_whole = all(row["rounds"] == num_rounds for row in rows) and len(rows) == len(steps)
    return RunRecord(
        kind="train ablate",
        checks=(),
        run={
            "name": f"{recipe.name}-ablation",
            "question": "What does each technique gain here?",
            "configuration": recipe.settings(),
            "outcome": "finished" if is_whole else "interrupted",
            **describe_run(seed=recipe.seed, started=started),
        },
        tables={"ablation_steps": to_columns("ablation_steps", rows), "ablation_trials": _trials_table(trial_steps)}
        if rows
        else {},
    )


def _tables(rows: Sequence[Mapping[str, Any]], trial_steps: Sequence[TrialStep]) -> dict[str, Columns]:
    return {"ablation_steps": to_columns("ablation_steps", rows), "ablation_trials": _trials_table(trial_steps)}


def _trials_table(trial_steps: Sequence[TrialStep]) -> Columns:
    return {
        "round": np.array([step.round for step in trial_steps]),
        "technique": np.array([step.technique for step in trial_steps]),
        **training_table([step.report for step in trial_steps]),
    }


def _row(trial_steps: Sequence[TrialStep], technique: str, base: str | None) -> dict[str, Any]:
    own = [step for step in trial_steps if step.technique == technique]
    speeds = _speeds(trial_steps, technique)
    low, median, high = _spread(list(speeds.values()))
    bases = _speeds(trial_steps, base) if base else speeds
    gains = _spread([speed / bases[number] - 1 for number, speed in speeds.items() if number in bases])
    mfu = np.array([step.report.mfu_fraction for step in own])
    return {
        "technique": technique,
        "base": base or "",
        "rounds": len(speeds),
        "tokens_per_s": median,
        "tokens_per_s_low": low,
        "tokens_per_s_high": high,
        "mfu_fraction": -1.0 if np.isnan(mfu).any() or not own else float(np.median(mfu)),
        "gain_fraction": gains[1],
        "gain_fraction_low": gains[0],
        "gain_fraction_high": gains[2],
        **{f"exposed_{axis}_ns": _median([step.report.exposed_ns[axis] for step in own]) for axis in _axes(own)},
    }


def _axes(trial_steps: Sequence[TrialStep]) -> Sequence[str]:
    """Return the axes of the recipe's layout, as reported."""
    return tuple(trial_steps[0].report.exposed_ns) if trial_steps else ()


def _speeds(trial_steps: Sequence[TrialStep], technique: str) -> Mapping[int, float]:
    """Return by round the tokens per second of a technique's counted training steps."""
    tokens: dict[int, float] = {}
    elapsed_s: dict[int, float] = {}
    for step in trial_steps:
        if step.technique == technique:
            seconds = step.report.elapsed_ns / 1e9
            tokens[step.round] = tokens.get(step.round, 0.0) + step.report.tokens_per_s * seconds
            elapsed_s[step.round] = elapsed_s.get(step.round, 0.0) + seconds
    return {number: tokens[number] / elapsed_s[number] for number in tokens}


def _spread(values_R: Sequence[float] | FloatArray) -> tuple[float, float, float]:
    if not len(values_R):
        return 0.0, 0.0, 0.0
    low, high = percentiles(values_R, (0.25, 0.75)).tolist()
    return low, float(np.median(values_R)), high


def _median(values: Sequence[int]) -> int:
    return int(np.median(values)) if values else 0
