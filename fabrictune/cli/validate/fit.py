"""`fabrictune validate fit`: a hardware profile from the user's own measurements."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.coll.options import operation_option, ranks_option
from fabrictune.cli.framework.options import fail_on_option, hardware_option, json_option, quiet_option
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.foundation.run_tables.rows import tables_to_rows, to_rows

if TYPE_CHECKING:
    from fabrictune.hardware.profile import HardwareProfile

MOST_SIZES = 40  # of a series, shown


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    "profile_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    default=Path("profile.yaml"),
    show_default=True,
    help="Output file of the profile.",
)
@hardware_option()
@operation_option
@ranks_option
@click.option(
    "--num-hosts",
    type=click.IntRange(1, 10_000_000),
    metavar="N",
    help="Number of hosts, for a file that does not list them.",
)
@click.option(
    "--algorithm",
    type=click.Choice(["auto", "ring", "hierarchical"]),
    default="auto",
    show_default=True,
    help="Algorithm of collectives between hosts; auto takes a ring unless that needs more than the NIC's rate.",
)
@click.option(
    "--counters",
    type=(click.Path(path_type=Path), click.Path(path_type=Path)),
    metavar="BEFORE AFTER",
    help="Snapshots of the NICs' counters around the measurement.",
)
@click.option(
    "--plot",
    "figure",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Figure of the errors by size (.svg, ...).",
)
@click.option("--record", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/fit"), show_default=True)
@fail_on_option
@quiet_option
@json_option
def fit(
    files: tuple[Path, ...],
    profile_file: Path,
    hardware: "HardwareProfile",
    operation: str | None,
    num_ranks: int | None,
    num_hosts: int | None,
    algorithm: Any,
    counters: tuple[Path, Path] | None,
    figure: Path | None,
    record: Path,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Fit a hardware profile's links to FILES, and say how well these determine each value.

    A FILE is the output of nccl-tests (text or -J), NCCL Inspector or perftest (ib_write_bw, ib_read_lat, ...), or a
    record of `coll bench`, `coll import` or `rdma import`. Latencies, rates and the cost of a message have 90 %
    intervals; what is not determined stays as --hardware has it. The profile goes to any command with --hardware.

    \b
    Example:
      fabrictune validate fit all_reduce.txt --hardware h100 --out my.yaml
      fabrictune validate fit 2-hosts.txt 4-hosts.txt write_lat.txt --counters before.txt after.txt --json
    """
    from fabrictune.foundation.output_files import check_output_file
    from fabrictune.validate.fit.fit import fit_files
    from fabrictune.validate.fit.fitted_profile import write_fitted
    from fabrictune.validate.fit.record import make_fit_record
    from fabrictune.validate.fit.sources import FitHints

    started, place = time.perf_counter(), output_folder(record, option="--record")
    check_output_file(profile_file)
    hints = FitHints(operation=operation, num_ranks=num_ranks, num_hosts=num_hosts)
    result = fit_files(files, hardware, hints=hints, algorithm=algorithm, counters=counters)
    made = make_fit_record(result, profile=profile_file, started=started, rules=site_rules())
    directory = with_command(made).write(place)
    if figure:
        from fabrictune import plot

        plot.save(plot.fit_errors(made), figure)
    write_fitted(hardware, result.values, profile_file)

    def show() -> None:
        print_lines(f"note: {note}" for note in result.notes)
        _print_parameters(to_rows(made.tables["fitted_parameters"]))
        _print_times(to_rows(made.tables["fitted_times"]))
        _print_congestion(made.tables)
        _print_values(result.values, hardware)

    places = [f"profile: {profile_file}; use it with --hardware {profile_file}"]
    return print_record(
        made,
        directory,
        lambda: {"profile": str(profile_file), **tables_to_rows(made.tables)},
        show,
        places=[*places, *([f"figure: {figure}"] if figure else [])],
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )


def _print_parameters(rows: list[dict[str, Any]]) -> None:
    cells = []
    for row in rows:
        low, high = (_shown(row["parameter"], row[end], row["unit"]) for end in ("low", "high"))
        interval = f"{low} to {high}" if low and high else f"{low} or more" if low and row["low"] > 0 else "none"
        value = _shown(row["parameter"], row["value"], row["unit"])
        cells.append(
            (row["parameter"], f"{value} (base)" if row["is_held"] else value, interval, row["verdict"], row["reason"])
        )
    print_table(("parameter", "value", "90 % interval", "verdict", ""), cells)
    print_lines(f"to measure next, {row['parameter']}: {row['next_step']}" for row in rows if row["next_step"])
    print_lines([""])


def _shown(parameter: str, value: float, unit: str) -> str:
    """Return a value for people; a bus bandwidth in bytes, as nccl-tests has it."""
    from fabrictune.foundation.units import BITS_PER_BYTE, format_bytes_per_s, format_duration, format_rate

    if value < 0:
        return ""
    if unit == "ps":
        return format_duration(value)
    return format_bytes_per_s(value / BITS_PER_BYTE) if parameter == "nvlink.collective" else format_rate(value)


def _print_times(rows: list[dict[str, Any]]) -> None:
    from statistics import median

    from fabrictune.foundation.units import format_bytes, format_duration

    for series in dict.fromkeys(row["series"] for row in rows):
        own = [row for row in rows if row["series"] == series]
        errors = [abs(row["error_fraction"]) for row in own]
        print_lines([f"{series}: median error {median(errors):.1%}, largest {max(errors):.1%}"])
        step = -(-len(own) // MOST_SIZES)
        print_table(
            ("size", "measured", "modelled", "error"),
            [
                (
                    format_bytes(row["size_bytes"]),
                    format_duration(row["measured_ps"]),
                    format_duration(row["modelled_ps"]),
                    f"{row['error_fraction']:+.1%}",
                )
                for row in own[::step]
            ],
            indent=2,
        )
        if step > 1:
            print_lines([f"  every {step}th of {len(own)} sizes; the record has all"])
    print_lines([""])


def _print_congestion(tables: Any) -> None:
    for row in to_rows(tables.get("fitted_losses", {})):
        interval = f"{row['low_fraction']:.1%} to {row['high_fraction']:.1%}"
        text = (
            f"{row['series']}: each doubling of {row['of']} ({row['counts']}) takes {row['loss_fraction']:.1%} of the"
        )
        step = f"; {row['next_step']}" if row["next_step"] else ""
        print_lines([f"{text} rate, 90 % interval {interval}: {row['verdict']}{step}"])
    counters = to_rows(tables.get("fitted_counters", {}))
    if counters:
        print_table(
            ("counted", "rise", "per GB sent"),
            [
                (row["class"], f"{row['rise']:,}", f"{row['per_gb']:.3g}" if row["per_gb"] >= 0 else "unknown")
                for row in counters
            ],
        )


def _print_values(values: Any, base: "HardwareProfile") -> None:
    from fabrictune.foundation.settings.quantities import format_setting

    if not values:
        print_lines([f"no value of the profile is determined: it is {base.name}'s"])
    for value in values:
        print_lines([f"{value.key}: {format_setting(value.field, value.value)}, {value.source}"])
