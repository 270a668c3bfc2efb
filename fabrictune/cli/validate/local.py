"""`fabrictune validate local`: a training on this machine, measured and simulated."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import fail_on_option, json_option, quiet_option
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar, say_on_terminal
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fabrictune.validate.summary import SummaryRow, ValidationSummary

TIMES = ("what", "size", "count", "measured", "quartiles", "simulated", "90 %", "ratio", "90 %", "verdict")
COSTS = ("what", "size", "call", "exchange", "copies", "sum", "new pages", "work", "left")
ASSUMPTIONS = (
    "page faults are counted in each collective, not predicted; a step's work is the measured one",
    "probes and collectives meet the same load: they follow one another within each step",
)


@click.command()
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Number of training steps per model.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/validate-local"), show_default=True
)
@fail_on_option
@quiet_option
@json_option
def local(steps: int | None, out: Path, fail_on: str, quiet: bool, as_json: bool) -> int:
    """Train with two processes on this machine and simulate what they sent: measured beside simulated.

    Probes between the steps say what the parts of a collective cost on this machine: messages, copies, sums, new pages
    and the call itself. Collectives and steps are predicted from them, each with a 90 % interval. Needs torch.

    \b
    Example:
      fabrictune validate local --steps 20
    """
    from fabrictune.validate.local import validate_local
    from fabrictune.validate.local_measurement import LocalSpec
    from fabrictune.validate.summary import summarize_validation

    place = output_folder(out)
    say_on_terminal("training and measuring with two processes on this machine ...", is_quiet=quiet or as_json)
    with progress_bar("simulating", is_quiet=quiet or as_json) as bar:
        record = validate_local(
            LocalSpec() if steps is None else LocalSpec(num_steps=steps), rules=site_rules(), progress=bar
        )
    directory = with_command(record).write(place)
    summary = summarize_validation(record)
    return print_record(
        record,
        directory,
        lambda: _document(summary),
        lambda: _print(summary),
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )


def _document(summary: "ValidationSummary") -> dict[str, Any]:
    rows = [{**asdict(row), "verdict": row.verdict} for row in summary.rows]
    return {**asdict(summary), "rows": rows, "assumptions": ASSUMPTIONS}


def _print(summary: "ValidationSummary") -> None:
    print_lines([*_calibration_lines(summary.calibration), *_machine_lines(summary.processors), ""])
    print_lines([_intervals_line(summary.intervals_of)])
    print_table(TIMES, [_times(row) for row in summary.rows])
    print_lines(["", "parts of the simulated time; what is left of the measured is not in the model:"])
    print_table(COSTS, [_parts(row) for row in summary.rows])
    print_lines([f"assumed: {text}" for text in ASSUMPTIONS])


def _intervals_line(intervals_of: str) -> str:
    return f"medians; measured with quartiles, simulated and ratio to measured with 90 % intervals of {intervals_of}:"


def _calibration_lines(calibration: "Mapping[str, Any]") -> list[str]:
    from fabrictune.foundation.units import format_bytes, format_duration, format_rate

    calls = ", ".join(f"{name} {format_duration(time_ps)}" for name, time_ps in calibration["call_ps"].items())
    smallest, largest = (format_bytes(calibration["exchange_bytes"][place]) for place in (0, -1))
    best, of_largest = (format_rate(calibration[name]) for name in ("rate_bps", "rate_of_largest_bps"))
    return [
        f"probes beside the training: exchange of {smallest} {format_duration(calibration['latency_ps'])}, "
        f"then {best} at best and {of_largest} at {largest};",
        f"copies {format_rate(calibration['copy_bps'])}, sums {format_rate(calibration['sum_bps'])}, "
        f"a new page {format_duration(calibration['page_ps'])}; calls of 16 B: {calls}",
    ]


def _machine_lines(machine: "Mapping[str, Any] | None") -> list[str]:
    if machine is None:
        return ["machine: the system does not say who else had its processors"]
    return [
        f"machine: {machine['num_processors']} processors for 2 ranks of three threads each; meanwhile others had "
        f"{machine['others_fraction']:.0%} of them, the hypervisor {machine['steal_fraction']:.0%}; "
        f"load {machine['load_average']:.1f}"
    ]


def _times(row: "SummaryRow") -> tuple[str, ...]:
    from fabrictune.foundation.units import format_bytes, format_duration

    return (
        row.what,
        format_bytes(row.num_bytes),
        str(row.count),
        format_duration(row.measured_ps),
        f"{format_duration(row.measured_low_ps)} to {format_duration(row.measured_high_ps)}",
        format_duration(row.simulated_ps),
        f"{format_duration(row.simulated_low_ps)} to {format_duration(row.simulated_high_ps)}",
        f"{row.ratio:.2f}",
        f"{row.ratio_low:.2f} to {row.ratio_high:.2f}",
        row.verdict,
    )


def _parts(row: "SummaryRow") -> tuple[str, ...]:
    from fabrictune.foundation.units import format_bytes, format_duration
    from fabrictune.validate.summary import PARTS

    return (
        row.what,
        format_bytes(row.num_bytes),
        *(format_duration(row.parts_ps[name]) if row.parts_ps[name] else "-" for name in PARTS),
        f"{row.unexplained_ps / row.measured_ps:+.0%}",
    )
