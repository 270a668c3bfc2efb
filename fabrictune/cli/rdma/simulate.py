"""`fabrictune rdma timers simulate`: a scenario's flap under other timers, model and engine side by side."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import (
    fail_on_option,
    is_code_trusted,
    json_option,
    out_option,
    quiet_option,
    read_duration,
    scenario_argument,
)
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.cli.rdma.predict import shown
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.units import PS_PER_NS

if TYPE_CHECKING:
    from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec
    from fabrictune.scenario.schema import Scenario


@click.command()
@scenario_argument
@click.option(
    "--profile",
    "names",
    multiple=True,
    metavar="NAME|FILE",
    help="Adapter profile in place of the scenario's; repeatable.",
)
@click.option(
    "--timeout",
    "timeouts",
    type=click.IntRange(0, 31),
    multiple=True,
    metavar="T",
    help="Timeout exponent in place of the scenario's; repeatable.",
)
@click.option(
    "--retries",
    "counts",
    type=click.IntRange(0, 7),
    multiple=True,
    metavar="R",
    help="Retry count in place of the scenario's; repeatable.",
)
@click.option("--flap", "flap_ps", callback=read_duration, metavar="DURATION", help="Duration of the link flap.")
@click.option(
    "--measured",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Record of `rdma timers measure` to compare with.",
)
@out_option
@fail_on_option
@quiet_option
@json_option
def simulate(
    scenario: Path,
    names: tuple[str, ...],
    timeouts: tuple[int, ...],
    counts: tuple[int, ...],
    flap_ps: int | None,
    measured: Path | None,
    out: Path | None,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run SCENARIO's first flap in the packet engine under other timers, beside what the model says.

    Each pair of timeout and retries is run twice: with the link down for good, which says when a dead peer is noticed,
    and with the flap, which says how long the slowest transfer stalls.

    \b
    Example:
      fabrictune rdma timers simulate scenarios/link-flap.yaml
      fabrictune rdma timers simulate scenarios/link-flap.yaml --profile connectx-6 --timeout 14 --timeout 20 --flap 1s
    """
    from fabrictune.rdma_bench.timers.trials import read_trials
    from fabrictune.scenario.files import load_scenario
    from fabrictune.validate.timers import simulate_timers, timer_record

    started, checked = time.perf_counter(), load_scenario(scenario, trust_code=is_code_trusted())
    place = output_folder(out or Path("runs") / f"{checked.name}-timers", checked)
    trials = read_trials(measured) if measured else ()
    flap_ns = None if flap_ps is None else flap_ps // PS_PER_NS
    with progress_bar("simulating", is_quiet=quiet or as_json) as progress:
        rows = simulate_timers(
            checked, names, _specs(checked, timeouts, counts), trials=trials, flap_ns=flap_ns, progress=progress
        )
    record = timer_record(checked, rows, started=started, rules=site_rules())
    directory = with_command(record).write(place)
    timers = to_rows(record.tables["timers"])
    return print_record(
        record,
        directory,
        lambda: {"timers": timers},
        lambda: _print(timers),
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )


def _specs(scenario: "Scenario", timeouts: tuple[int, ...], counts: tuple[int, ...]) -> "list[RetransmissionSpec]":
    from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec

    transport = scenario.packet_config().transport
    return [
        RetransmissionSpec(timeout_exponent=timeout, retries=retries)
        for timeout in timeouts or (transport.timeout_exponent,)
        for retries in counts or (transport.retries,)
    ]


def _print(rows: list[dict[str, Any]]) -> None:
    print_lines([f"the link goes down; times from then on; the flap is {_shown(rows[0], 'flap_ns')} long:"])
    headings = ["retry exceeded: model", "simulated", "measured", "stall: model", "simulated", "measured"]
    accounts = ("", "simulated_", "measured_")
    columns = [f"{account}{what}_ns" for what in ("gives_up", "stall") for account in accounts]
    if all(row[name] < 0 for row in rows for name in columns if name.startswith("measured")):
        headings, columns = headings[0:2] + headings[3:5], columns[0:2] + columns[3:5]
    cells = [
        (
            *(row["profile"], str(row["timeout"]), str(row["retries"])),
            *(_shown(row, name) for name in columns),
            row["confidence"],
        )
        for row in rows
    ]
    print_table(("profile", "timeout", "retries", *headings, "model is"), cells)
    if any(row["confidence"] == "extrapolated" for row in rows):
        print_lines(["extrapolated: these settings were not tried; `rdma timers predict` gives the interval, if any"])


def _shown(row: dict[str, Any], name: str) -> str:
    """Return a time of the record for people."""
    if row[name] >= 0:
        return shown(row[name])
    return "not tried" if name.startswith("measured") else shown(None)
