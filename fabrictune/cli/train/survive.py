"""`fabrictune train survive`: what effective time a job would have, and what to change first."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import fail_on_option, json_option, out_option, quiet_option
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.cli.rdma.predict import nccl_option, profile_option, retries_option, timeout_exponent_option
from fabrictune.cli.train.flaps import flap_knobs, flaps_of
from fabrictune.foundation.records import notes_of
from fabrictune.foundation.run_tables.rows import tables_to_rows, to_rows
from fabrictune.foundation.units import PS_PER_S, format_duration, parse_duration_ps

if TYPE_CHECKING:
    from fabrictune.foundation.records import RunRecord
    from fabrictune.trainer_probe.survival.job import SurvivalJob
    from fabrictune.trainer_probe.survival.plan import SurvivalPlan

MAX_CAUSES = 8
MAX_RUNS = 400
Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def _seconds(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    where = f"{context.command_path}: {option.opts[0]}"
    return None if text is None else parse_duration_ps(text, where=where) / PS_PER_S


def _duration(name: str, field: str, default: str | None, meaning: str) -> Option:
    return click.option(
        name,
        field,
        callback=_seconds,
        default=default,
        show_default=default is not None,
        metavar="DURATION",
        help=meaning,
    )


def _fields(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a job's times; each is called as the field of SurvivalJob that it sets."""
    for option in reversed(
        (
            _duration("--step", "step_s", "10 s", "Time of a step."),
            _duration("--save-every", "save_every_s", "30 min", "Work between two saves to storage."),
            _duration("--stall", "stall_s", "5 s", "Time that a save to storage blocks the step."),
            _duration("--write", "write_s", "60 s", "Time from then until storage has it."),
            _duration("--memory-every", "memory_every_s", None, "Work between two saves to memory.  [default: none]"),
            _duration("--memory-stall", "memory_stall_s", "40 ms", "Time that a save to memory blocks the step."),
            _duration("--memory-copy", "memory_copy_s", "10 s", "Time from then until another node has its copy."),
            _duration("--memory-restore", "memory_restore_s", "20 s", "Time to restore from memory."),
            _duration("--detect", "detect_s", "60 s", "Time to detect a failure, of causes without their own."),
            _duration("--diagnose", "diagnose_s", "120 s", "Time to diagnose and decide, likewise."),
            _duration("--down", "down_s", "10 s", "Time to end all ranks."),
            _duration("--start", "start_s", "120 s", "Time to start all ranks."),
            _duration("--restore", "restore_s", "60 s", "Time to restore from storage."),
            _duration("--spare-time", "spare_s", "58 s", "Time to take a warm spare in."),
            _duration("--node-time", "node_s", "10 min", "Time to get a node where no spare is free."),
            _duration("--repair", "repair_s", "24 h", "Time until a failed node is a spare again."),
        )
    ):
        command = option(command)
    return command


@click.command()
@click.option(
    "--failures",
    "failures",
    required=True,
    metavar="NAME|FILE",
    help="Failure rates: llama3, byterobust, meta, meta-rsc2, or a .csv or .yaml file.",
)
@click.option("--gpus", type=click.IntRange(1, 10_000_000), help="Number of GPUs.  [default: as --recipe has]")
@click.option("--recipe", metavar="RECIPE", help="Recipe whose number of ranks is taken for --gpus.")
@click.option("--gpus-per-node", type=click.IntRange(1, 1024), default=8, show_default=True, help="GPUs of a node.")
@click.option("--days", type=click.FloatRange(min=0.01, max=3660), default=54.0, show_default=True, help="Job's days.")
@_fields
@click.option("--one-copy", is_flag=True, help="Keep checkpoints in a node's own memory only, not on another node.")
@click.option("--slowdown", type=click.FloatRange(0, 1), default=0.0, help="Share by which saves slow the steps.")
@click.option("--spares", type=click.IntRange(0, 4096), default=0, show_default=True, help="Warm spare nodes.")
@click.option("--flaps", type=click.FloatRange(min=0), help="Flaps of a link in a day; each GPU has one link.")
@click.option(
    "--flap-time", "flap_s", callback=_seconds, default="5 s", show_default=True, help="Mean duration of a flap."
)
@timeout_exponent_option
@retries_option
@nccl_option
@profile_option
@click.option(
    "--spread",
    type=click.FloatRange(1, 100),
    default=1.0,
    show_default=True,
    help="Factor by which this cluster's failure rates may differ from the table's, at the ends of 90 %.",
)
@click.option("--runs", type=click.IntRange(0, MAX_RUNS), default=100, show_default=True, help="Runs to simulate.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Seed.")
@click.option("--plot", "figure", type=click.Path(path_type=Path), metavar="FILE", help="Figure: .svg, .pdf or .png.")
@out_option
@fail_on_option
@quiet_option
@json_option
def survive(
    failures: str,
    gpus: int | None,
    recipe: str | None,
    days: float,
    spread: float,
    runs: int,
    seed: int,
    figure: Path | None,
    out: Path | None,
    fail_on: str,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Predict a job's effective training time from failure rates, and which knob to turn first.

    Effective time is what steps that are kept take of all time, with a 90 % interval by what the counts of failures
    leave open. It follows in closed form; runs are simulated to show how much one run varies, and to check it.

    \b
    Example:
      fabrictune train survive --failures llama3 --gpus 16384
      fabrictune train survive --failures meta --gpus 4096 --memory-every 60s --spares 4
      fabrictune train survive --failures ours.csv --gpus 2048 --flaps 0.05 --timeout 18 --json
    """
    from fabrictune.foundation.output_files import check_output_file
    from fabrictune.trainer_probe.survival.failure_files import find_failures
    from fabrictune.trainer_probe.survival.plan import plan_survival
    from fabrictune.trainer_probe.survival.plan_record import make_plan_record

    if figure:
        check_output_file(figure)
    started = time.perf_counter()
    where = f"{click.get_current_context().command_path}: --failures"
    table = find_failures(failures, where=where)
    job = _job(_num_gpus(gpus, recipe), days, settings)
    name = f"{table.name}-{job.num_gpus}"
    place = output_folder(out or Path("runs") / f"{name}-survive")
    knobs = flap_knobs(job, table, settings)
    plan = plan_survival(job, table, spread=spread, num_runs=runs, seed=seed, others=knobs)
    record = with_command(make_plan_record(plan, name=name, seed=seed, started=started, rules=site_rules()))
    directory = record.write(place)
    if figure:
        from fabrictune import plot

        plot.save(plot.survival(record), figure)

    def values() -> dict[str, Any]:
        return {**record.run["outcome"], **tables_to_rows(record.tables)}

    return print_record(
        record, directory, values, lambda: _print(record, plan), as_json=as_json, quiet=quiet, fail_on=fail_on
    )


def _num_gpus(gpus: int | None, recipe: str | None) -> int:
    """Return the number of GPUs; raises InputError unless one option says it."""
    from fabrictune.foundation.errors import InputError, Mistake

    if (gpus is None) == (recipe is None):
        found = "neither is given" if gpus is None else "both are given"
        where = f"{click.get_current_context().command_path}: --gpus, --recipe"
        raise InputError(Mistake(where=where, found=found, allowed="one of them"))
    if gpus is not None:
        return gpus
    from fabrictune.cli.train.recipes import read_recipe

    assert recipe is not None
    return read_recipe(recipe, ()).degrees.layout.world_size


def _job(gpus: int, days: float, settings: dict[str, Any]) -> "SurvivalJob":
    """Return the job that options describe; raises InputError."""
    from fabrictune.trainer_probe.survival.failures import S_PER_DAY
    from fabrictune.trainer_probe.survival.job import MemoryTier, SurvivalJob

    memory = None
    if settings["memory_every_s"] is not None:
        memory = MemoryTier(
            every_s=settings["memory_every_s"],
            stall_s=settings["memory_stall_s"],
            copy_s=0.0 if settings["one_copy"] else settings["memory_copy_s"],
            restore_s=settings["memory_restore_s"],
            is_copied=not settings["one_copy"],
        )
    names = ("step_s", "save_every_s", "stall_s", "write_s", "detect_s", "diagnose_s", "down_s", "start_s", "restore_s")
    return SurvivalJob(
        num_gpus=gpus,
        duration_s=days * S_PER_DAY,
        slowdown_fraction=settings["slowdown"],
        memory=memory,
        flaps=flaps_of(settings),
        **{name: settings[name] for name in (*names, "gpus_per_node", "spares", "spare_s", "node_s", "repair_s")},
    )


def _print(record: "RunRecord", plan: "SurvivalPlan") -> None:
    from fabrictune.trainer_probe.survival.plan_record import advice

    print_lines([*_head(record.run["outcome"], plan), ""])
    parts = to_rows(record.tables["survival_parts"])
    cells = [
        (row["part"], f"{row['share_fraction']:.2%}", _span(row, "share_fraction"))
        for row in sorted(parts, key=lambda row: -row["share_fraction"])
        if row["share_fraction"] >= 5e-5
    ]
    print_table(("part", "share", "interval"), cells)
    print_lines([""])
    causes = to_rows(record.tables["survival_causes"])
    rows = [
        (
            row["cause"],
            f"{row['num_failures']:.1f}",
            f"{row['num_failures_low']:.1f} to {row['num_failures_high']:.1f}",
            f"{row['recovery_fraction']:.2%}",
            f"{row['recomputed_fraction']:.2%}",
        )
        for row in causes[:MAX_CAUSES]
    ]
    print_table(("cause", "failures", "interval", "recovery", "recomputed"), rows)
    if len(causes) > MAX_CAUSES:
        print_lines([f"and {len(causes) - MAX_CAUSES} more in the record"])
    print_lines(["", *advice(plan), "", *(f"assumed: {note}" for note in notes_of(record))])


def _head(outcome: dict[str, Any], plan: "SurvivalPlan") -> list[str]:
    job = plan.job
    lines = [
        f"{job.num_gpus:,} GPUs, failures of {plan.table.name}: {plan.table.source}",
        f"effective {outcome['effective_fraction']:.2%} ({_span(outcome, 'effective_fraction')}); "
        f"a failure each {_time(outcome['mttf_s'])} "
        f"({_time(outcome['mttf_s_low'])} to {_time(outcome['mttf_s_high'])}), "
        f"{outcome['num_failures']:,.0f} in {job.duration_s / 86400:g} days",
    ]
    if plan.runs is not None:
        lines.append(
            f"simulated: {outcome['simulated_fraction']:.2%} +- {outcome['simulated_error_fraction']:.2%} "
            f"in {outcome['num_runs']} runs; one run: {_span(outcome, 'single_run_fraction')}"
        )
    if job.flaps is not None:
        lines.append(
            f"link flaps: {outcome['num_flaps_survived']:,.0f} survived, {outcome['num_flaps_fatal']:,.0f} end the "
            f"job; {job.flaps.basis}"
        )
    lines.append(
        f"best interval between saves: {_time(outcome['best_interval_s'])} of work "
        f"(within 0.1 points from {_time(outcome['near_best_s_low'])} to {_time(outcome['near_best_s_high'])}); "
        f"Young {_time(outcome['young_s'])}, Daly {_time(outcome['daly_s'])}"
    )
    return lines


def _span(row: dict[str, Any], name: str) -> str:
    return f"{row[f'{name}_low']:.2%} to {row[f'{name}_high']:.2%}"


def _time(time_s: float) -> str:
    """Return a time for people, of hours and minutes too."""
    if time_s >= 2 * 3600:
        return f"{time_s / 3600:.1f} h"
    if time_s >= 120:
        return f"{time_s / 60:.1f} min"
    return format_duration(time_s * PS_PER_S) if time_s else "0"
