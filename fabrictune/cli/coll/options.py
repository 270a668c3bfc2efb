"""Options shared by the commands on collective times: operations, sizes, and row format."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from fabrictune.cli.framework.options import Command, read_bytes
from fabrictune.collectives.measurement.spec import BENCHED, BenchSpec
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.units import PS_PER_NS

ALL = "all"
BPS_PER_GB_PER_S = 8e9


operations_argument = click.argument("operations", metavar="OPERATION...", nargs=-1, required=True)
operation_option = click.option(
    "--operation",
    type=click.Choice(list(BENCHED)),
    help="Operation, for output of an nccl-tests that does not name it.",
)
ranks_option = click.option(
    "--num-ranks",
    type=click.IntRange(2, 10_000_000),
    metavar="N",
    help="Number of ranks, for a file that does not list them.",
)
_SIZE_OPTIONS = (
    click.option(
        "-b",
        "--min-bytes",
        callback=read_bytes,
        metavar="SIZE",
        default="8 B",
        show_default=True,
        help="Smallest size.",
    ),
    click.option(
        "-e",
        "--max-bytes",
        callback=read_bytes,
        metavar="SIZE",
        default="32 MiB",
        show_default=True,
        help="Largest size.",
    ),
    click.option(
        "-f", "--step-factor", type=int, default=2, show_default=True, help="Factor from one size to the next."
    ),
    click.option(
        "-i",
        "--step-bytes",
        callback=read_bytes,
        metavar="SIZE",
        help="Fixed increment between sizes, in place of the factor.",
    ),
)


def size_options(command: Command) -> Command:
    """Give a command the options of sizes, with nccl-tests' letters."""
    for option in reversed(_SIZE_OPTIONS):
        command = option(command)
    return command


def bench_spec(context: click.Context, operations: tuple[str, ...], settings: Mapping[str, Any]) -> BenchSpec:
    """Return which operations and sizes are meant; raises InputError, whose mistakes name their options."""
    names = tuple(BENCHED) if ALL in operations else tuple(dict.fromkeys(operations))
    try:
        return BenchSpec(names=names, **settings)
    except InputError as error:
        option = {one.name: f"{context.command_path}: {one.opts[-1]}" for one in context.command.params}
        option["names"] = f"{context.command_path}: OPERATION"
        raise InputError(*(replace(one, where=option.get(one.where, one.where)) for one in error.mistakes)) from None


def bandwidth_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return operation, place, size, time, algbw and busbw of a row of the table `measurements`."""
    from fabrictune.foundation.units import format_duration

    return (
        row["operation"],
        "yes" if row["is_in_place"] else "no",
        str(row["size_bytes"]),
        format_duration(row["mean_ns"] * PS_PER_NS),
        *(gigabytes_per_s(row[f"{which}_bandwidth_bps"]) for which in ("algorithm", "bus")),
    )


def gigabytes_per_s(rate_bps: float) -> str:
    """Return a bandwidth in nccl-tests' unit, 10**9 bytes a second."""
    return f"{rate_bps / BPS_PER_GB_PER_S:.3g}"
