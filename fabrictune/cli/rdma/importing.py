"""`fabrictune rdma import`: what perftest measured, as a record."""

import time
from pathlib import Path
from typing import Any

import click

from fabrictune.cli.framework.options import fail_on_option, json_option, quiet_option
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.units import PS_PER_NS, format_duration, format_rate

_TIMES = (("median_ns", "median"), ("average_ns", "average"), ("p99_ns", "p99"), ("max_ns", "max"))


@click.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/perftest"), show_default=True)
@fail_on_option
@quiet_option
@json_option
def import_perftest(files: tuple[Path, ...], out: Path, fail_on: str, quiet: bool, as_json: bool) -> int:
    """Read what perftest's programs printed (ib_write_bw, ib_read_lat, ...) and write it as a record.

    Text or JSON, several runs in one file, behind the tags of a launcher, server and client mixed. Bandwidths are
    bits a second, whichever unit was asked for; each is compared with its rate of messages.

    \b
    Example:
      fabrictune rdma import write_bw.txt read_lat.txt --out runs/perftest
    """
    from fabrictune.rdma_bench.measurement.perftest_files import read_perftest
    from fabrictune.rdma_bench.measurement.perftest_record import TABLE, make_perftest_record

    started, place = time.perf_counter(), output_folder(out)
    record = make_perftest_record([read_perftest(file) for file in files], started=started)
    directory = with_command(record).write(place)
    rows = to_rows(record.tables[TABLE])

    def show() -> None:
        print_lines([f"{len(rows)} measurements"])
        _print(rows)
        print_lines(f"note: {note}" for note in record.run.get("notes", ()))

    return print_record(
        record, directory, lambda: {"measurements": rows}, show, as_json=as_json, quiet=quiet, fail_on=fail_on
    )


def _print(rows: list[dict[str, Any]]) -> None:
    """Print the columns that any row has."""
    has_bandwidth = any(row["bandwidth_bps"] >= 0 for row in rows)
    times = [(key, name) for key, name in _TIMES if any(row[key] >= 0 for row in rows)]
    heads = ["test", "device", "QPs", "size (B)", "iterations"]
    heads += ["bandwidth", "peak"] if has_bandwidth else []
    heads += [name for _, name in times]
    print_table(heads, [_cells(row, has_bandwidth, [key for key, _ in times]) for row in rows])


def _cells(row: dict[str, Any], has_bandwidth: bool, times: list[str]) -> list[str]:
    queue_pairs = str(row["queue_pairs"]) if row["queue_pairs"] >= 0 else ""
    cells = [row["test"], row["device"], queue_pairs, str(row["size_bytes"]), str(row["num_iterations"])]
    if has_bandwidth:
        cells += ["" if row[key] < 0 else format_rate(row[key]) for key in ("bandwidth_bps", "peak_bps")]
    return cells + ["" if row[key] < 0 else format_duration(row[key] * PS_PER_NS) for key in times]
