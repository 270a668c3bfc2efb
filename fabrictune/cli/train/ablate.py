"""`fabrictune train ablate`: what each technique of the trainer gains here."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import INTERRUPTED, json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import output_folder, print_answer, record_json, with_command
from fabrictune.cli.train.recipes import (
    FLOPS_PER_TFLOPS,
    peak_option,
    read_recipe,
    recipe_argument,
    set_option,
    timeout_option,
)
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.layout import AXES
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.units import PS_PER_NS

if TYPE_CHECKING:
    from fabrictune.foundation.records import RunRecord
    from fabrictune.trainer_probe.ablation.trials import TrialStep


@click.command()
@click.pass_context
@recipe_argument
@set_option
@click.option("--rounds", type=click.IntRange(1, 1000), default=5, show_default=True, help="Trials of each technique.")
@click.option("--steps", type=click.IntRange(1, 1000), default=3, show_default=True, help="Counted steps of a trial.")
@peak_option
@timeout_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Output directory of the record.  [default: runs/NAME-ablation]",
)
@quiet_option
@json_option
def ablate(
    context: click.Context,
    /,
    recipe_name: str,
    settings: tuple[str, ...],
    rounds: int,
    steps: int,
    peak_tflops: float | None,
    timeout_s: float,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Train RECIPE without its techniques, then with one more each, and compare speed and exposed communication.

    Each round is a short trial of every technique, on processes of this machine; gains are compared within a round.
    Needs torch.

    \b
    Example:
      fabrictune train ablate tiny --rounds 5
    """
    from fabrictune.trainer_probe.ablation import steps as ablation
    from fabrictune.trainer_probe.ablation.record import make_record
    from fabrictune.trainer_probe.ablation.trials import run_trials

    _refuse_launchers(context.command_path)
    started, recipe = time.perf_counter(), read_recipe(recipe_name, settings)
    place = output_folder(out or Path("runs") / f"{recipe.name}-ablation")
    recipes = ablation.ablate(recipe)
    num_expected = rounds * steps * len(recipes)
    with progress_bar(f"{recipe.name}, {len(recipes)} techniques", is_quiet=quiet or as_json) as bar:
        num_done = 0

        def on_step(step: "TrialStep") -> None:
            nonlocal num_done
            num_done += 1
            if bar is not None:
                bar(num_done / num_expected, f"round {step.round}, {step.technique}")

        trial_steps = run_trials(
            recipes,
            num_rounds=rounds,
            num_steps=steps,
            on_step=on_step,
            timeout_s=timeout_s,
            peak_flops_per_s=peak_tflops * FLOPS_PER_TFLOPS if peak_tflops else None,
        )
    record = with_command(make_record(recipe, trial_steps, num_rounds=rounds, started=started))
    directory = record.write(place)
    is_partial = record.run["outcome"] == "interrupted"
    if as_json:
        head = {**record_json(record, directory), "outcome": record.run["outcome"]}
        print_json({**head, "ablation_steps": to_rows(record.tables.get("ablation_steps", {}))})
        return INTERRUPTED if is_partial else 0
    if record.tables and not quiet:
        _print(record, rounds, steps)
    print_answer(record, directory, quiet=quiet, is_partial=is_partial)
    return INTERRUPTED if is_partial else 0


def _refuse_launchers(where: str) -> None:
    from fabrictune.collectives.startup.launchers import launched_by

    launched = launched_by(os.environ)
    if launched is not None:
        allowed = "a process by itself, which starts its own ranks on this machine"
        raise InputError(Mistake(where=where, found=f"started by {launched.launcher}", allowed=allowed))


def _print(record: "RunRecord", rounds: int, steps: int) -> None:
    print_lines([f"rounds: {rounds}, counted steps of a trial: {steps}; medians, and quartiles over rounds"])
    steps_table = record.tables["ablation_steps"]
    axes = [axis for axis in AXES if f"exposed_{axis}_ns" in steps_table]
    print_table(
        ("technique", "tokens/s", "quartiles", "MFU", "gain", "quartiles", "over", f"exposed {axes[0]}", *axes[1:]),
        [_cells(row, axes) for row in to_rows(steps_table)],
    )
    print_lines(["exposed: communication that an average rank waits for in a step"])


def _cells(row: dict[str, Any], axes: Sequence[str]) -> tuple[str, ...]:
    from fabrictune.foundation.units import format_duration

    is_first, is_known = not row["base"], row["mfu_fraction"] >= 0
    return (
        row["technique"],
        f"{row['tokens_per_s']:,.0f}",
        f"{row['tokens_per_s_low']:,.0f} to {row['tokens_per_s_high']:,.0f}",
        f"{row['mfu_fraction']:.1%}" if is_known else "n/a",
        "" if is_first else f"{row['gain_fraction']:+.1%}",
        "" if is_first else f"{row['gain_fraction_low']:+.1%} to {row['gain_fraction_high']:+.1%}",
        row["base"],
        *(format_duration(row[f"exposed_{axis}_ns"] * PS_PER_NS) for axis in axes),
    )
