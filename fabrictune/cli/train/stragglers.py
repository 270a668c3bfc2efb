"""`fabrictune train stragglers`: which ranks, links or machines a job waits for."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import fail_on_option, json_option, out_option, quiet_option, read_rate
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.foundation.records import notes_of
from fabrictune.foundation.run_tables.rows import tables_to_rows, to_rows
from fabrictune.foundation.units import PS_PER_NS, format_bytes, format_duration, format_rate

if TYPE_CHECKING:
    from fabrictune.foundation.records import RunRecord

MAX_ROWS = 12  # that are printed


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--nic", callback=read_rate, metavar="RATE", help="Rate of a rank's NIC (`400 Gbps`), for its share in use."
)
@out_option
@fail_on_option
@quiet_option
@json_option
def stragglers(run: Path, nic: int | None, out: Path | None, fail_on: str, quiet: bool, as_json: bool) -> int:
    """Find the stragglers of a training run in its spans: who is slow at what, and what its removal would gain.

    RUN is the record of `train run`, the folder of `train operate`, or a folder of spans; it may still be running. A
    rank's passes are compared with those of ranks with the same work, transfers with others of their sort.

    \b
    Example:
      fabrictune train stragglers runs/tiny
      fabrictune train stragglers runs/job --nic "400 Gbps" --json
    """
    from fabrictune.foundation.span_reader import read_spans
    from fabrictune.observability.stragglers.diagnosis import diagnose
    from fabrictune.observability.stragglers.record import limits_of, make_stragglers_record

    started, rules = time.perf_counter(), site_rules()
    name = run.resolve().name
    place = output_folder(out or Path("runs") / f"{name}-stragglers")
    diagnosis = diagnose(read_spans(run), limits_of(rules))
    record = with_command(make_stragglers_record(diagnosis, name=name, started=started, rules=rules, nic_rate_bps=nic))
    directory = record.write(place)

    def values() -> dict[str, Any]:
        return {**record.run["outcome"], **tables_to_rows(record.tables)}

    return print_record(
        record, directory, values, lambda: _print(record), as_json=as_json, quiet=quiet, fail_on=fail_on
    )


def _print(record: "RunRecord") -> None:
    outcome = record.run["outcome"]
    print_lines(
        [
            f"{outcome['num_ranks']:,} ranks ({outcome['layout']}), {outcome['num_steps']:,} steps of "
            f"{_time(outcome['step_ns'])}, {outcome['num_requests']:,} requests joined; replayed, a step takes "
            f"{_time(outcome['replayed_step_ns'])}",
            *_loading(outcome),
            "",
        ]
    )
    found = to_rows(record.tables["stragglers"])
    if found:
        rows = [
            (
                row["cause"],
                row["ranks"] or "the job",
                row["hosts"],
                row["pattern"],
                f"{row['excess_fraction']:.1%}",
                f"{row['steps_fraction']:.0%}",
                f"{row['gain_fraction']:.1%}" if row["gain_fraction"] >= 0 else "n/a",
            )
            for row in found[:MAX_ROWS]
        ]
        print_table(("cause", "rank", "machine", "pattern", "excess", "steps", "gain if removed"), rows)
    late = sorted(
        (row for row in to_rows(record.tables["straggler_arrivals"]) if row["pattern"] != "none"),
        key=lambda row: -row["num_late"] * row["late_ns"],
    )
    if late:
        print_lines(["", "who arrives last in the requests of a group:"])
        late_rows = [
            (
                f"{row['axis']} {row['group']}",
                f"{row['num_late']} of {row['num_requests']}",
                str(row["last_rank"]),
                f"{row['last_share_fraction']:.0%}",
                _time(row["late_ns"]),
                row["pattern"],
            )
            for row in late[:MAX_ROWS]
        ]
        print_table(("group", "late requests", "rank", "its share", "late by", "pattern"), late_rows)
    _print_rates(record)
    print_lines([*([""] if found or late else []), *(f"note: {note}" for note in notes_of(record))])


def _loading(outcome: dict[str, Any]) -> list[str]:
    """Return the line on waits for data, where any rank waits."""
    rank, most, middle = (outcome[name] for name in ("most_loading_rank", "most_loading_fraction", "loading_fraction"))
    return [f"waits for data: {middle:.1%} of the step, rank {rank} {most:.1%}"] if most > 0 else []


def _print_rates(record: "RunRecord") -> None:
    """Print the transfers between hosts, where there are any."""
    rates = to_rows(record.tables["transfer_rates"])
    if not rates:
        return
    print_lines(["", "transfers between hosts (bus bandwidth, median):"])
    rows = [
        (
            f"{row['axis']} {row['operation']}",
            format_bytes(row["num_bytes"]),
            str(row["num_requests"]),
            _time(row["time_ns"]),
            format_rate(row["rate_bps"]),
            f"{row['share_fraction']:.1%}" if row["share_fraction"] >= 0 else "n/a (--nic)",
        )
        for row in rates[:MAX_ROWS]
    ]
    print_table(("request", "size", "requests", "time", "rate", "of the NIC"), rows)
    more = [f"{len(rates) - MAX_ROWS} more sorts in the record"] if len(rates) > MAX_ROWS else []
    unseen = record.run["outcome"]["num_unseen_transfers"]
    print_lines([*more, f"left out: {unseen:,} requests inside hosts, or that no rank waited for"])


def _time(time_ns: int) -> str:
    return format_duration(time_ns * PS_PER_NS)
