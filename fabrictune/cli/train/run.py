"""`fabrictune train run`: train a recipe."""

import os
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.findings import conclude, judged_json, print_findings
from fabrictune.cli.framework.options import INTERRUPTED, fail_on_option, json_option, out_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines
from fabrictune.cli.framework.records import output_folder, print_answer, record_json, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.cli.sim.running import print_run
from fabrictune.cli.train.checkpoint_options import checkpoint_options, settings_of
from fabrictune.cli.train.recipes import (
    FLOPS_PER_TFLOPS,
    peak_option,
    read_recipe,
    recipe_argument,
    set_option,
    timeout_option,
)
from fabrictune.cli.train.replay import check_replay, replay_record
from fabrictune.foundation.errors import FabrictuneWarning
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.span_writer import spans_beside
from fabrictune.foundation.units import PS_PER_NS

if TYPE_CHECKING:
    from fabrictune.trainer_probe.recipes.schema import Recipe
    from fabrictune.trainer_probe.training.progress import StepReport
    from fabrictune.trainer_probe.training.running_record import RunningRecord

COLUMNS = ("step", "loss", "gradient", "tokens/s", "MFU")  # and exposed communication by axis
ROUTING_COLUMNS = ("balance", "dropped")  # of a mixture of experts, behind the axes
WIDTHS = (6, 8, 8, 10, 6, 10)
AXIS_WIDTH = 8  # behind the first axis, and of the routing


@click.command()
@recipe_argument
@set_option
@peak_option
@timeout_option
@click.option(
    "--startup-timeout",
    "startup_timeout_s",
    type=click.FloatRange(min=1),
    default=300.0,
    show_default=True,
    help="Seconds to wait for all ranks of a launcher.",
)
@click.option(
    "--export",
    type=click.Path(path_type=Path),
    help="Folder for the weights at the end, as a Hugging Face checkpoint (safetensors).",
)
@click.option(
    "--then-simulate",
    "fabric",
    type=click.Path(path_type=Path),
    metavar="FABRIC",
    help="Replay the run on the fabric of this topology file afterwards; its record is DIR-on-FABRIC.",
)
@checkpoint_options
@out_option
@fail_on_option
@quiet_option
@json_option
def run(
    recipe_name: str,
    settings: tuple[str, ...],
    peak_tflops: float | None,
    export: Path | None,
    fabric: Path | None,
    checkpoint: str | None,
    save_every: int | None,
    keep: int | None,
    keep_every: int | None,
    resume: bool,
    out: Path | None,
    fail_on: str,
    quiet: bool,
    as_json: bool,
    **timeouts: float,
) -> int:
    """Train RECIPE, a file or the name of a bundled one, and record its communication.

    Starts a process for each rank on this machine. Under torchrun or srun it is one rank of many, on any machines, and
    rank 0 reports. Ctrl-C ends the run after the current step. Needs torch.

    \b
    Example:
      fabrictune train run tiny
      fabrictune train run tiny --then-simulate fabric.json
      fabrictune train run my.yaml --set overlap=none --set degrees.layout.dp=4
      fabrictune train run my.yaml --checkpoint s3://bucket/my-run --save-every 100 --keep 3 --resume
      torchrun --nnodes 2 --nproc-per-node 8 ... -m fabrictune train run my.yaml
    """
    from fabrictune.collectives.startup.launchers import launched_by
    from fabrictune.foundation.errors import RefusedError
    from fabrictune.trainer_probe.training.outcome import make_record
    from fabrictune.trainer_probe.training.run import run_recipe
    from fabrictune.trainer_probe.training.running_record import RunningRecord, make_incomplete_record
    from fabrictune.trainer_probe.training.weights import check_export

    checkpoints = settings_of(checkpoint, save_every, keep, keep_every, resumes=resume)
    started, launched = time.perf_counter(), launched_by(os.environ)
    is_silent = launched is not None and launched.rank > 0
    running: list[RunningRecord] = []
    has_begun: list[bool] = []

    def read() -> "Recipe":
        recipe = read_recipe(recipe_name, settings)
        if not is_silent:
            place = output_folder(out or Path("runs") / recipe.name)
            if export is not None:
                check_export(recipe, export)
            if fabric is not None:
                check_replay(recipe.degrees.layout, fabric, place)
            running.append(RunningRecord(with_command(make_incomplete_record(recipe, started=started)), place))
        return recipe

    def on_step(recipe: "Recipe", report: "StepReport") -> None:
        running[0].on_step(report)
        if not (quiet or as_json):
            _print_step(recipe, report, is_first=not has_begun)
            has_begun.append(True)

    def on_note(text: str) -> None:
        print(text, file=sys.stderr)

    try:
        result = run_recipe(
            read,
            launched,
            on_step=on_step,
            peak_flops_per_s=peak_tflops * FLOPS_PER_TFLOPS if peak_tflops else None,
            export=export,
            checkpoints=checkpoints,
            on_note=on_note,
            spans=lambda recipe: spans_beside(out or Path("runs") / recipe.name),
            **timeouts,
        )
    except RefusedError as error:
        if is_silent:
            return error.exit_code  # rank 0 prints it for all
        raise
    finally:
        for unfinished in running:
            _close(unfinished)
    if result is None:
        return 0
    recipe, outcome = result
    record = with_command(make_record(recipe, outcome, started=started, rules=site_rules()))
    directory = record.write(out or Path("runs") / recipe.name)
    replay = replay_record(directory, fabric, is_quiet=quiet or as_json) if fabric and not outcome.was_stopped else None
    is_partial = outcome.was_stopped or (replay is not None and replay.is_partial)
    judged = (record,) if replay is None else (record, replay.record)
    code = INTERRUPTED if is_partial else conclude(fail_on, *judged)
    if as_json:
        steps = to_rows(record.tables["training"])
        head: dict[str, Any] = {key: record.run[key] for key in ("outcome", "data_state")}
        replayed = {} if replay is None else {"simulation": {**replay.values, **judged_json(replay.record)}}
        print_json({**record_json(record, directory), **head, "steps": steps, **replayed, **judged_json(record)})
        return code
    print_findings(record)
    if export is not None:
        print_lines([f"weights: {export}"])
    print_answer(record, directory, quiet=quiet, is_partial=outcome.was_stopped)
    if replay is not None:
        print_run(replay, quiet=quiet)
    return code


def _close(record: "RunningRecord") -> None:
    """Close the record of the run while it went on; warn where its steps could not be written."""
    record.close()
    if record.failure is not None:
        warnings.warn(f"steps not written while running: {record.failure}", FabrictuneWarning, stacklevel=2)


def _print_step(recipe: "Recipe", report: "StepReport", *, is_first: bool) -> None:
    """Print a line for a step; before the first, the recipe and the headings."""
    from fabrictune.trainer_probe.training.hardware import driver_settings

    layout, axes = recipe.degrees.layout, tuple(report.exposed_ns)
    if is_first:
        print_lines(
            [
                f"{recipe.name}: {layout.world_size} ranks, {layout.describe()}; "
                f"overlap {recipe.overlap}, {recipe.precision_name} on {recipe.device}; {_garbage(recipe)}"
                + "".join(f"; {name}={os.environ.get(name, own)}" for name, own in driver_settings(recipe).items()),
                _line((*COLUMNS, f"exposed {axes[0]}", *axes[1:], *(ROUTING_COLUMNS if report.routing else ()))),
            ]
        )
    print_lines([_line(_cells(report))])


def _garbage(recipe: "Recipe") -> str:
    every = recipe.collect_garbage_every
    return f"garbage collected every {every} steps" if every else "garbage collected when Python does"


def _line(cells: tuple[str, ...]) -> str:
    widths = (*WIDTHS, *(AXIS_WIDTH for _ in cells[len(WIDTHS) :]))
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def _cells(report: "StepReport") -> tuple[str, ...]:
    from fabrictune.foundation.units import format_duration

    is_known = report.mfu_fraction == report.mfu_fraction
    return (
        str(report.step),
        f"{report.loss:.4f}",
        "skipped" if report.is_skipped else f"{report.gradient_norm:.3g}",
        f"{report.tokens_per_s:,.0f}",
        f"{report.mfu_fraction:.1%}" if is_known else "n/a",
        *(format_duration(waited_ns * PS_PER_NS) for waited_ns in report.exposed_ns.values()),
        *_routing_cells(report),
    )


def _routing_cells(report: "StepReport") -> tuple[str, ...]:
    if report.routing is None:
        return ()
    return f"{report.routing.balance_loss:.4f}", f"{report.routing.dropped_fraction:.1%}"
