"""What the rounds came to: a row for each rung, with what it gains over the rung it adds to.

Gains are compared within a round and then over rounds, so that a machine that is slow for a while makes no gain.

Shapes: R rounds that were finished for both rungs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.layout import AXES
from fabrictune.foundation.records import Columns, RunRecord, describe_run
from fabrictune.trainer_probe.ablation.rounds import Turn
from fabrictune.trainer_probe.ablation.steps import ladder
from fabrictune.trainer_probe.driver.reports import training_table
from fabrictune.trainer_probe.recipes.schema import Recipe

QUARTILES = (25, 50, 75)


def make_record(recipe: Recipe, turns: Sequence[Turn], *, num_rounds: int, started: float) -> RunRecord:
    """Return a record of kind "train ablate"; `started` is what `time.perf_counter` said at the start.

    Its table `rungs` has rung, base ("" for the first), rounds, tokens_per_s with its quartiles tokens_per_s_low and
    _high, mfu_fraction (-1 where no peak is known), gain_fraction with gain_fraction_low and _high (over the base, 0
    for the first), and exposed_tp_ns, exposed_dp_ns, exposed_pp_ns of a step. `turns` has every counted step: round,
    rung, and the columns of a training's table. Where no turn was finished there are no tables.
    """
    rows = [_row(recipe, turns, rung.name, rung.base) for rung in ladder(recipe)]
    rows = [row for row in rows if row["rounds"]]
    is_whole = all(row["rounds"] == num_rounds for row in rows) and len(rows) == len(ladder(recipe))
    return RunRecord(
        kind="train ablate",
        run={
            "name": f"{recipe.name}-ablation",
            "question": "What does each technique gain here?",
            "configuration": recipe.settings(),
            "outcome": "finished" if is_whole else "interrupted",
            **describe_run(seed=recipe.seed, started=started),
        },
        tables={"rungs": _columns(rows), "turns": _turns_table(turns)} if rows else {},
    )


def _columns(rows: Sequence[Mapping[str, Any]]) -> Columns:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _turns_table(turns: Sequence[Turn]) -> Columns:
    return {
        "round": np.array([turn.round for turn in turns]),
        "rung": np.array([turn.rung for turn in turns]),
        **training_table([turn.report for turn in turns]),
    }


def _row(recipe: Recipe, turns: Sequence[Turn], name: str, base: str | None) -> dict[str, Any]:
    own = [turn for turn in turns if turn.rung == name]
    speeds = _speeds(turns, name)
    low, median, high = _spread(list(speeds.values()))
    bases = _speeds(turns, base) if base else speeds
    gains = _spread([speed / bases[number] - 1 for number, speed in speeds.items() if number in bases])
    mfu = np.array([turn.report.mfu_fraction for turn in own])
    return {
        "rung": name,
        "base": base or "",
        "rounds": len(speeds),
        "tokens_per_s": median,
        "tokens_per_s_low": low,
        "tokens_per_s_high": high,
        "mfu_fraction": -1.0 if np.isnan(mfu).any() or not own else float(np.median(mfu)),
        "gain_fraction": gains[1],
        "gain_fraction_low": gains[0],
        "gain_fraction_high": gains[2],
        **{f"exposed_{axis}_ns": _median([turn.report.exposed_ns[axis] for turn in own]) for axis in AXES},
    }


def _speeds(turns: Sequence[Turn], name: str) -> Mapping[int, float]:
    """Return by round the tokens a second of a rung's counted steps."""
    tokens: dict[int, float] = {}
    elapsed_s: dict[int, float] = {}
    for turn in turns:
        if turn.rung == name:
            seconds = turn.report.elapsed_ns / 1e9
            tokens[turn.round] = tokens.get(turn.round, 0.0) + turn.report.tokens_per_s * seconds
            elapsed_s[turn.round] = elapsed_s.get(turn.round, 0.0) + seconds
    return {number: tokens[number] / elapsed_s[number] for number in tokens}


def _spread(values_R: Sequence[float] | FloatArray) -> tuple[float, float, float]:
    if not len(values_R):
        return 0.0, 0.0, 0.0
    low, median, high = np.percentile(np.asarray(values_R), QUARTILES).tolist()
    return low, median, high


def _median(values: Sequence[int]) -> int:
    return int(np.median(values)) if values else 0
