"""`fabrictune validate`: predictions beside measurements."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.options import fail_on_option, json_option, quiet_option
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar, say_on_terminal
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules

if TYPE_CHECKING:
    from fabrictune.validate.summary import SummaryRow, ValidationSummary

validate = CommandGroup(name="validate", help="Compare predictions with measurements.")


@validate.command()
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Number of training steps per model.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/validate-local"), show_default=True
)
@fail_on_option
@quiet_option
@json_option
def local(steps: int | None, out: Path, fail_on: str, quiet: bool, as_json: bool) -> int:
    """Train with two processes on this machine and simulate what they sent: measured beside simulated.

    Messages exchanged between the steps give the loopback's latency and rate; the collectives are predicted from them.
    Needs torch.

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
        lambda: asdict(summary),
        lambda: _print(summary),
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )


def _print(summary: "ValidationSummary") -> None:
    from fabrictune.foundation.units import format_bytes, format_duration, format_rate

    sizes = ", ".join(format_bytes(size) for size in summary.exchange_bytes)
    print_lines(
        [
            f"calibrated on exchanges of {sizes}: latency {format_duration(summary.latency_ps)}, "
            f"rate {format_rate(summary.rate_bps)}",
            "predicted from these two numbers, medians with quartiles:",
        ]
    )
    print_table(
        ("what", "size", "count", "measured", "quartiles", "simulated", "simulated / measured", "quartiles"),
        [_cells(row) for row in summary.rows],
    )


def _cells(row: "SummaryRow") -> tuple[str, ...]:
    from fabrictune.foundation.units import format_bytes, format_duration

    return (
        row.what,
        format_bytes(row.num_bytes),
        str(row.count),
        format_duration(row.measured_ps),
        f"{format_duration(row.measured_low_ps)} to {format_duration(row.measured_high_ps)}",
        format_duration(row.simulated_ps),
        f"{row.ratio:.2f}",
        f"{row.ratio_low:.2f} to {row.ratio_high:.2f}",
    )
