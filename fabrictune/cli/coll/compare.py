"""`fabrictune coll compare`: measured collectives beside their model."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.coll.options import gigabytes_per_s, operation_option, ranks_option
from fabrictune.cli.coll.sizes import MAX_ROWS, all_sizes_option
from fabrictune.cli.framework.options import (
    fail_on_option,
    hardware_option,
    is_code_trusted,
    json_option,
    quiet_option,
    trust_code_option,
)
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.foundation.run_tables.rows import tables_to_rows, to_rows

if TYPE_CHECKING:
    from fabrictune.hardware.profile import HardwareProfile

LEAST_SHOWN = 0.01  # of the measured time, for a cause to be explained


@click.command()
@click.argument("measured", metavar="MEASURED", type=click.Path(path_type=Path))
@click.option(
    "--scenario",
    "scenario_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Scenario of the measured job and fabric.",
)
@trust_code_option
@hardware_option(default=None)
@operation_option
@ranks_option
@click.option(
    "--num-hosts",
    type=click.IntRange(1, 10_000_000),
    metavar="N",
    help="Number of hosts, for a file that does not list them.",
)
@all_sizes_option
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/compare"), show_default=True)
@fail_on_option
@quiet_option
@json_option
def compare(
    measured: Path,
    scenario_file: Path | None,
    hardware: "HardwareProfile | None",
    operation: str | None,
    num_ranks: int | None,
    num_hosts: int | None,
    all_sizes: bool,
    out: Path,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Put MEASURED beside a scenario's model, and say where its time goes: NIC, rounds, collisions, the rest.

    MEASURED is a record of `coll bench` or `coll import`, nccl-tests' text or JSON, or NCCL Inspector's lines. Without
    a scenario only a line is fitted: what a call costs, and what each byte. With --hardware, as of `validate fit`, the
    choice and time of NCCL's model on such hosts stand beside the measured times.

    \b
    Example:
      fabrictune coll compare runs/bench
      fabrictune coll compare all_reduce.txt --scenario my.yaml --json
      fabrictune coll compare all_reduce.txt --hardware my-cluster.yaml
    """
    from fabrictune.collectives.measurement.files import ImportHints, read_measurements
    from fabrictune.scenario.files import load_scenario
    from fabrictune.validate.measured_collectives import compare_measured
    from fabrictune.validate.nccl_comparison import refuse_gloo

    place = output_folder(out)
    scenario = load_scenario(scenario_file, trust_code=is_code_trusted()) if scenario_file else None
    imported = read_measurements(measured, ImportHints(name=operation, num_ranks=num_ranks))
    imported = replace(imported, num_hosts=num_hosts or imported.num_hosts)
    if hardware:
        refuse_gloo(measured)
    with progress_bar("modelling", is_quiet=quiet or as_json) as progress:
        record = compare_measured(imported, scenario, profile=hardware, rules=site_rules(), progress=progress)
    directory = with_command(record).write(place)

    def show() -> None:
        print_lines(f"note: {note}" for note in record.run.get("notes", ()))
        _print_fits(to_rows(record.tables.get("fits", {})))
        _print_nccl(to_rows(record.tables.get("nccl_model", {})), hardware, all_sizes=all_sizes)
        _print_comparison(to_rows(record.tables.get("attribution", {})), all_sizes=all_sizes)
        _print_verdicts(to_rows(record.tables.get("verdicts", {})))

    return print_record(
        record,
        directory,
        lambda: tables_to_rows(record.tables),
        show,
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )


def _print_fits(rows: list[dict[str, Any]]) -> None:
    from fabrictune.foundation.units import format_duration

    if not rows:
        return
    print_lines(["time = alpha + bytes / rate, fitted:"])
    print_table(
        (
            *("operation", "in place", "ranks", "sizes", "alpha", "95 % interval"),
            *("asymptotic busbw, GB/s", "95 % interval", "max fit error"),
        ),
        [
            (
                row["operation"],
                "yes" if row["is_in_place"] else "no",
                str(row["num_ranks"]),
                str(row["num_sizes"]),
                _alpha(row),
                _interval(row["alpha_low_ns"], row["alpha_high_ns"], lambda time_ns: format_duration(time_ns * 1000)),
                gigabytes_per_s(row["busbw_bps"]) if row["busbw_bps"] > 0 else "no line fits",
                _interval(row["busbw_low_bps"], row["busbw_high_bps"], gigabytes_per_s),
                f"{row['worst_error_fraction']:.0%}",
            )
            for row in rows
        ],
    )
    print_lines([""])


def _alpha(row: dict[str, Any]) -> str:
    """Return the cost of a call; a negative one is none, or none that the errors of the times allow to tell."""
    from fabrictune.foundation.units import format_duration

    if row["alpha_ns"] >= 0:
        return format_duration(row["alpha_ns"] * 1000)
    return "no line fits" if row["alpha_high_ns"] < 0 else "not resolved"


def _interval(low: float, high: float, show: Callable[[float], str]) -> str:
    """Return both ends; a bandwidth without upper end is not bounded by its times."""
    if math.isnan(low):
        return "none: two sizes" if math.isnan(high) else f"up to {show(high)}"
    return f"{show(low)} or more" if math.isnan(high) else f"{show(low)} to {show(high)}"


def _print_nccl(rows: list[dict[str, Any]], hardware: "HardwareProfile | None", *, all_sizes: bool) -> None:
    """Print measured times beside NCCL's model."""
    from statistics import median

    from fabrictune.foundation.units import format_duration

    if not rows or hardware is None:
        return
    error, num_inside = median(abs(1 / row["ratio"] - 1) for row in rows), sum(row["is_inside"] for row in rows)
    print_lines(
        [
            f"measured beside NCCL's model on hosts of the profile {hardware.name}: median error {error:.1%},"
            f" {num_inside} of {len(rows)} inside the 90 % interval"
        ]
    )
    shown = rows if all_sizes or len(rows) <= MAX_ROWS else _largest_of_classes(rows)
    print_table(
        ("operation", "in place", "size (B)", "measured", "expected", "90 %", "ratio", "NCCL takes"),
        [
            (
                row["operation"],
                "yes" if row["is_in_place"] else "no",
                str(row["size_bytes"]),
                format_duration(row["measured_ps"]),
                format_duration(row["expected_ps"]),
                f"{format_duration(row['low_ps'])} to {format_duration(row['high_ps'])}",
                f"{row['ratio']:.2f}",
                row["choice"],
            )
            for row in shown
        ],
    )
    if len(shown) < len(rows):
        print_lines([f"the largest size of each class, of {len(rows)} rows; --all-sizes prints every one"])
    print_lines([""])


def _print_verdicts(rows: list[dict[str, Any]]) -> None:
    """Print which cause has most of the time of each largest size, and at which NIC rate that turns."""
    from fabrictune.foundation.units import format_bytes, format_rate

    for row in rows:
        place = " in place" if row["is_in_place"] else ""
        turns = [
            f"{row[f'{side}_cause'].replace('_', ' ')} at {format_rate(row[f'{side}_bps'])} or {word}"
            for side, word in (("below", "less"), ("above", "more"))
            if row[f"{side}_bps"] > 0
        ]
        verdict = f"most is {row['cause'].replace('_', ' ')}, {row['share_fraction']:.0%}"
        what = f"{row['operation']}{place} of {format_bytes(row['size_bytes'])}"
        turn = ", ".join(turns) or "the same at a quarter and at four times that rate"
        print_lines([f"{what}: {verdict}, with NICs of {format_rate(row['rate_bps'])}; {turn}"])


def _print_comparison(rows: list[dict[str, Any]], *, all_sizes: bool) -> None:
    from fabrictune.foundation.units import format_duration
    from fabrictune.validate.attribution import CAUSES

    if not rows:
        return
    num_rows = len(rows)
    if not all_sizes and num_rows > MAX_ROWS:
        rows = _largest_of_classes(rows)
    shown = [name for name in CAUSES if any(row[f"{name}_ps"] >= LEAST_SHOWN * row["measured_ps"] for row in rows)]
    print_lines(["measured beside modelled, and the parts of the measured time:"])
    print_table(
        (
            "operation",
            "in place",
            "size (B)",
            "measured",
            "model",
            "ratio",
            *(name.replace("_", " ") for name in shown),
        ),
        [
            (
                row["operation"],
                "yes" if row["is_in_place"] else "no",
                str(row["size_bytes"]),
                format_duration(row["measured_ps"]),
                format_duration(row["fair_ps"]),
                f"{row['ratio']:.2f}",
                *(f"{row[f'{name}_ps'] / row['measured_ps']:.0%}" for name in shown),
            )
            for row in rows
        ],
    )
    if len(rows) < num_rows:
        print_lines([f"the largest size of each class, of {num_rows} rows; --all-sizes prints every one"])
    print_lines([""])
    for name in shown:
        print_lines([f"{name.replace('_', ' ')}: {CAUSES[name].what}", f"    to test: {CAUSES[name].test}"])
    print_lines([""])


def _largest_of_classes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the row of the largest size of each class of sizes."""
    from fabrictune.collectives.measurement.size_classes import size_class

    largest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = row["operation"], row["is_in_place"], row["num_ranks"], size_class(row["size_bytes"])
        if key not in largest or row["size_bytes"] > largest[key]["size_bytes"]:
            largest[key] = row
    return list(largest.values())
