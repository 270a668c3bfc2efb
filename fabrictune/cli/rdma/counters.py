"""`fabrictune rdma counters`: counters of NICs, and what rose between two snapshots of them."""

import time
from pathlib import Path
from typing import Any

import click

from fabrictune.cli.framework.options import fail_on_option, json_option, quiet_option, read_duration
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.units import PS_PER_S, PS_PER_US, format_bytes, format_duration, format_number


@click.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path), required=False)
@click.option(
    "--interval",
    "interval_ps",
    callback=read_duration,
    metavar="DURATION",
    help="Time between the snapshots, for rates and shares of time.",
)
@click.option(
    "--all", "shows_all", is_flag=True, help="Show also counters that did not rise, or whose name is unknown."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/counters"), show_default=True)
@fail_on_option
@quiet_option
@json_option
def counters(
    before: Path,
    after: Path | None,
    interval_ps: int | None,
    shows_all: bool,
    out: Path,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Say what rose between two snapshots of NICs' counters, and what it means; or read one snapshot.

    A snapshot is a file with the output of `ethtool -S`, `perfquery`, `rdma statistic` (text or -j), `mlnx_qos`, or
    `grep . /sys/class/infiniband/*/ports/*/*counters/*`, also one after the other; a folder of such files, one a host;
    or /sys/class/infiniband itself.

    Counters of 32 bits that wrapped are told from those that were reset. One snapshot alone has no findings: its totals
    count since an unknown time.

    \b
    Example:
      fabrictune rdma counters before.txt after.txt --interval 60s
      fabrictune rdma counters /sys/class/infiniband
    """
    from fabrictune.rdma_bench.counters.record import TABLE, make_counter_record
    from fabrictune.rdma_bench.counters.snapshots import read_snapshot

    started, place = time.perf_counter(), output_folder(out)
    record = make_counter_record(
        read_snapshot(before),
        read_snapshot(after) if after else None,
        interval_ps=interval_ps or 0,
        sources=tuple(map(str, filter(None, (before, after)))),
        started=started,
        rules=site_rules(),
    )
    directory = with_command(record).write(place)
    rows = to_rows(record.tables[TABLE])

    settings = record.run["configuration"]["settings"]

    def show() -> None:
        shows_settings = shows_all or not any(row["class"] for row in rows)
        for one in settings if shows_settings else ():
            print_lines([": ".join(filter(None, (one["device"], one["name"], one["value"])))])
        _print(rows, interval_ps or 0, is_difference=after is not None, shows_all=shows_all)
        if settings and not shows_settings:
            print_lines([f"settings in the files: {len(settings)}; --all lists them"])
        print_lines(f"note: {note}" for note in record.run.get("notes", ()))

    return print_record(
        record,
        directory,
        lambda: {"counters": rows, "settings": settings},
        show,
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )


def _print(rows: list[dict[str, Any]], interval_ps: int, *, is_difference: bool, shows_all: bool) -> None:
    """Print the counters that rose, or those of one snapshot that are not zero."""
    devices = len({row["device"] for row in rows})
    print_lines([f"{_count(len(rows), 'counter')} of {_count(devices, 'device')}"])
    shown = [row for row in rows if shows_all or (row["rise"] and row["class"])]
    heads = ("device", "counter", "what it counts", "rise" if is_difference else "total")
    if shown:
        print_table(
            (*heads, *(("per second",) if interval_ps else ()), ""), [_cells(row, interval_ps) for row in shown]
        )


def _cells(row: dict[str, Any], interval_ps: int) -> tuple[str, ...]:
    rise, unit = row["rise"], row["unit"]
    marks = ", ".join(
        mark for mark, flag in (("wrapped", "has_wrapped"), ("at its largest value", "is_saturated")) if row[flag]
    )
    rate = "" if rise < 0 else _amount(rise * PS_PER_S / interval_ps, unit) if interval_ps else ""
    amount = "unknown (reset)" if rise < 0 else _amount(rise, unit)
    return row["device"], row["counter"], row["class"], amount, *((rate,) if interval_ps else ()), marks


def _amount(amount: float, unit: str) -> str:
    if unit == "us":
        return format_duration(amount * PS_PER_US)
    if unit == "bytes":
        return format_bytes(amount)
    return f"{amount:,.0f}" if amount == round(amount) else format_number(amount)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
