"""`fabrictune train plan`: communication, memory and step time of a recipe on a cluster."""

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import (
    fail_on_option,
    hardware_option,
    json_option,
    out_option,
    quiet_option,
    read_bytes,
    read_rate,
)
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.train.recipes import FLOPS_PER_TFLOPS, read_recipe, recipe_argument, set_option
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.units import format_bytes, format_duration, format_rate
from fabrictune.trainer_probe.parallel.schedules.table import schedule_of

if TYPE_CHECKING:
    from fabrictune.foundation.records import RunRecord
    from fabrictune.hardware.profile import HardwareProfile
    from fabrictune.trainer_probe.planning.plan import Plan
    from fabrictune.trainer_probe.recipes.schema import Recipe

MAX_OPERATIONS = 6  # that are printed one by one
FLOP_UNITS = ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP")


@click.command()
@recipe_argument
@set_option
@click.option("--rank", type=click.IntRange(min=0), default=0, show_default=True, help="Rank to show.")
@hardware_option("--gpu")
@click.option(
    "--tflops",
    type=click.FloatRange(min=0, min_open=True),
    help="Achieved matmul rate of a GPU.  [default: by --hardware]",
)
@click.option(
    "--peak-tflops",
    type=click.FloatRange(min=0, min_open=True),
    help="Peak FLOP/s of a GPU, for MFU.  [default: by --hardware]",
)
@click.option(
    "--memory-rate",
    callback=read_bytes,
    metavar="SIZE",
    help="Bytes a second that a GPU reads and writes (`1.8 TB`).  [default: by --hardware]",
)
@click.option("--nvlink", callback=read_rate, help="NVLink rate of a GPU, one direction.  [default: by --hardware]")
@click.option("--nic", callback=read_rate, help="Network rate of a GPU, one direction.  [default: by --hardware]")
@click.option("--gpus-per-host", type=click.IntRange(min=1), help="GPUs joined by NVLink.  [default: by --hardware]")
@click.option(
    "--memory", callback=read_bytes, metavar="SIZE", help="Memory of a GPU (`80 GB`); exceeding it is a finding."
)
@out_option
@fail_on_option
@quiet_option
@json_option
def plan(
    recipe_name: str,
    settings: tuple[str, ...],
    rank: int,
    hardware: "HardwareProfile",
    tflops: float | None,
    peak_tflops: float | None,
    memory_rate: int | None,
    nvlink: int | None,
    nic: int | None,
    gpus_per_host: int | None,
    memory: int | None,
    out: Path | None,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Predict the communication of a step of RECIPE, the memory of a GPU, and the shortest step time.

    Nothing is trained: the trainer runs for one rank of each pipeline place, on tensors without values. The record
    contains the requests of the whole job, as `job_trace.parquet`. Needs torch.

    \b
    Example:
      fabrictune train plan 175b
      fabrictune train plan tiny --set degrees.layout.dp=16 --rank 5 --json
    """
    from fabrictune.trainer_probe.planning.hardware import HardwareSpec
    from fabrictune.trainer_probe.planning.plan import make_plan, place_of_rank
    from fabrictune.trainer_probe.planning.record import make_record

    started, recipe = time.perf_counter(), read_recipe(recipe_name, settings)
    target = output_folder(out or Path("runs") / f"{recipe.name}-plan")
    rates = HardwareSpec.of_profile(
        hardware,
        achieved_flops_per_s=tflops and tflops * FLOPS_PER_TFLOPS,
        peak_flops_per_s=peak_tflops and peak_tflops * FLOPS_PER_TFLOPS,
        memory_bytes_per_s=memory_rate,
        nvlink_rate_bps=nvlink,
        nic_rate_bps=nic,
        gpus_per_host=gpus_per_host,
        memory_bytes=memory,
    )
    place = place_of_rank(recipe, rank)
    result = make_plan(recipe, rates)
    record = with_command(make_record(result, started=started))
    directory = record.write(target)

    def values() -> dict[str, Any]:
        return _as_json(record, rank, place)

    def show() -> None:
        _print_plan(result, record, rank, place)

    return print_record(record, directory, values, show, as_json=as_json, quiet=quiet, fail_on=fail_on)


def _as_json(record: "RunRecord", rank: int, place: int) -> dict[str, Any]:
    """Return the step's figures, and the rows of one rank."""
    volumes, memory = to_rows(record.tables["volumes"]), to_rows(record.tables["memory"])
    return {
        **record.run["outcome"],
        "rank": rank,
        "volumes": [row for row in volumes if row["place"] == place],
        "memory": memory[place],
        "step": to_rows(record.tables["step_parts"]),
        "schedules": to_rows(record.tables["schedules"]),
        "operations": [row for row in to_rows(record.tables["step_operations"]) if row["place"] == place],
    }


def _print_plan(plan: "Plan", record: "RunRecord", rank: int, place: int) -> None:
    hardware = plan.hardware
    recipe, outcome, shown = plan.recipe, record.run["outcome"], _as_json(record, rank, place)
    layout, shape = recipe.degrees.layout, recipe.degrees.pipeline
    print_lines(
        [
            f"{recipe.name}: {layout.world_size:,} ranks, {layout.describe()}; "
            f"overlap {recipe.overlap}, {recipe.precision_name}",
            f"a step of {outcome['num_tokens']:,} tokens makes {outcome['num_requests']:,} requests, "
            f"recorded as {len(plan.trace.templates):,} templates",
            "",
            f"communication of rank {rank}, at place {place} of the pipeline",
        ]
    )
    of_requests = ("axis", "operation", "requests", "message bytes", "bytes sent", "min. time")
    print_table(of_requests, [_volume_cells(row) for row in shown["volumes"]], indent=2)
    print_lines(["", f"rank {rank} memory: {_memory(shown['memory'])}"])
    print_lines(["", "minimum step time, with no two requests on one link"])
    print_table(
        ("part", "time"), [(row["part"], format_duration(row["duration_ps"])) for row in shown["step"]], indent=2
    )
    print_lines(["", f"pipeline schedules, here {shape.schedule_name}"])
    of_schedules = ("schedule", "chunks a rank", "bubble of the work", "activations")
    print_table(of_schedules, [_schedule_cells(row) for row in shown["schedules"]], indent=2)
    print_lines(["", f"where the work of rank {rank} goes"])
    print_table(
        ("part", "operation", "calls", "memory traffic", "time"), _operation_cells(shown["operations"]), indent=2
    )
    print_lines(
        [
            "",
            f"bubble: {outcome['bubble_fraction']:.1%} of the work by {schedule_of(shape).bubble_formula}, "
            f"{outcome['played_bubble_fraction']:.1%} by executing the schedule",
            f"at most {outcome['tokens_per_s']:,.0f} tokens/s: {outcome['mfu_fraction']:.1%} MFU, "
            f"{outcome['achievable_fraction']:.1%} of what products achieve; "
            f"model FLOPs per GPU {_format_flops(outcome['model_flops_per_gpu'])}{_hardware_flops(recipe, outcome)}",
            *(["assumed: operations run one by one, as without compile"] if recipe.compile != "none" else []),
            f"assumed: {_format_flops(hardware.achieved_flops_per_s)}/s a GPU of "
            f"{_format_flops(hardware.peak_flops_per_s)}/s, memory {format_bytes(hardware.memory_bytes_per_s)}/s, "
            f"NVLink {format_rate(hardware.nvlink_rate_bps)}, NICs {format_rate(hardware.nic_rate_bps)}; "
            "times are lower bounds at these rates and have no interval",
        ]
    )


def _hardware_flops(recipe: "Recipe", outcome: dict[str, Any]) -> str:
    """Return the operations with what is recomputed, where there is any."""
    if recipe.recompute == "none":
        return ""
    return f" ({_format_flops(outcome['hardware_flops_per_gpu'])} with {recipe.recompute} recomputation)"


def _format_flops(flops: float) -> str:
    """Return floating-point operations with four digits: `1.103 PFLOP`."""
    exponent = min(max(int(math.log10(flops)) // 3, 0), len(FLOP_UNITS) - 1)
    return f"{flops / 1000**exponent:.4g} {FLOP_UNITS[exponent]}"


def _volume_cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["axis"],
        row["operation"],
        f"{row['num_requests']:,}",
        format_bytes(row["buffer_bytes"]),
        format_bytes(row["sent_bytes"]),
        format_duration(row["duration_ps"]),
    )


def _schedule_cells(row: dict[str, Any]) -> tuple[str, ...]:
    activations = format_bytes(row["activations_bytes"])
    return (row["schedule"], str(row["num_chunks"]), f"{row['bubble_fraction']:.1%}", activations)


def _operation_cells(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return the operations that take longest, and the others as one line."""
    shown, others = rows[:MAX_OPERATIONS], rows[MAX_OPERATIONS:]
    if others:
        totals = {key: sum(row[key] for row in others) for key in ("num_calls", "bytes", "duration_ps")}
        shown = [*shown, {"part": "", "operation": f"{len(others)} others", **totals}]
    return [
        (
            row["part"],
            row["operation"],
            f"{row['num_calls']:,}",
            format_bytes(row["bytes"]),
            format_duration(row["duration_ps"]),
        )
        for row in shown
    ]


def _memory(row: dict[str, Any]) -> str:
    """Return the memory of a GPU with its parts: `4 GB (weights 1 GB, ...)`."""
    parts = {name: row[f"{name}_bytes"] for name in ("weights", "gradients", "optimizer", "activations")}
    shown = ", ".join(f"{name} {format_bytes(size)}" for name, size in parts.items())
    return f"{format_bytes(sum(parts.values()))} ({shown})"
