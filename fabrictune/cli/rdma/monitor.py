"""`fabrictune rdma monitor`: this host's NICs by the millisecond, with alerts and an OpenMetrics endpoint."""

import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.findings import finding_line
from fabrictune.cli.framework.options import fail_on_option, json_option, quiet_option, read_duration
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.foundation.records import notes_of
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.units import PS_PER_S, format_bytes, format_duration, format_fraction, format_number

if TYPE_CHECKING:
    from fabrictune.foundation.findings import Finding
    from fabrictune.foundation.records import RunRecord

LEAST_INTERVAL_S = 0.001


@click.command()
@click.option(
    "--interval", "interval_ps", callback=read_duration, default="10ms", show_default=True, metavar="DURATION"
)
@click.option(
    "--duration",
    "duration_ps",
    callback=read_duration,
    metavar="DURATION",
    help="How long to monitor.  [default: until Ctrl-C]",
)
@click.option(
    "--device", "devices", multiple=True, metavar="NAME", help="Interface or RDMA device, repeatable.  [default: all]"
)
@click.option(
    "--listen", metavar="HOST:PORT", help="Serve OpenMetrics there, at /metrics; 127.0.0.1:9400, for example."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/monitor"), show_default=True)
@fail_on_option
@quiet_option
@json_option
def monitor(
    interval_ps: int,
    duration_ps: int | None,
    devices: tuple[str, ...],
    listen: str | None,
    out: Path,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Sample the counters of this host's NICs, and say what rises that should not, as it happens.

    Counters of /sys/class/net and /sys/class/infiniband are read at the interval, 1 ms or more. Rates and peaks are
    kept by the second for an hour and by the minute for four weeks, in memory that is taken at the start; the newest
    2,000 samples show the phases of transfers, each against the rate of its link. Settings (MTU, speed, ECN, state) are
    compared every second. The record says which interval was achieved and what it cost; `report build` draws it.

    \b
    Example:
      fabrictune rdma monitor --duration 60s
      fabrictune rdma monitor --interval 1ms --device mlx5_0 --listen 127.0.0.1:9400
    """
    from fabrictune.foundation.errors import InputError, Mistake
    from fabrictune.rdma_bench.monitor.endpoint import serving
    from fabrictune.rdma_bench.monitor.monitoring import Monitor
    from fabrictune.rdma_bench.monitor.record import make_monitor_record
    from fabrictune.rdma_bench.monitor.sources import NicSources

    started, place = time.perf_counter(), output_folder(out)
    interval_s = interval_ps / PS_PER_S
    if interval_s < LEAST_INTERVAL_S:
        found = format_duration(interval_ps)
        raise InputError(Mistake(where="--interval", found=found, allowed="1 ms or more"))
    host, port = _read_address(listen) if listen else ("", 0)
    sources = NicSources(devices)
    if not sources.counters:
        next_step = "name another device; `ls /sys/class/net /sys/class/infiniband` has them"
        raise InputError(Mistake(where="--device", found="no counters of known meaning", next_step=next_step))

    def on_alert(finding: "Finding") -> None:
        if not (quiet or as_json):
            print_lines([f"{time.strftime('%H:%M:%S')} {finding_line(finding)}"])

    watch = Monitor(sources=sources, interval_s=interval_s, rules=site_rules(), on_alert=on_alert)
    with ExitStack() as stack:
        stack.callback(sources.close)
        if listen:
            try:
                address = stack.enter_context(serving(watch, host, port))
            except OSError as error:
                raise InputError(Mistake(where="--listen", found=f"{listen}: {error.strerror}")) from error
            if not (quiet or as_json):
                print_lines([f"OpenMetrics: http://{address[0]}:{address[1]}/metrics"])
        try:
            watch.run(duration_ps / PS_PER_S if duration_ps else float("inf"))
        except KeyboardInterrupt:
            watch.stop()
        record = with_command(make_monitor_record(watch, started=started))
    directory = record.write(place)
    return print_record(
        record,
        directory,
        lambda: {
            **record.run["outcome"],
            "seconds": [_with_units(row) for row in to_rows(record.tables["nic_seconds"])],
            **{name: to_rows(record.tables[f"nic_{name}"]) for name in ("devices", "phases", "alerts")},
        },
        lambda: _print(record),
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )


def _with_units(row: dict[str, object]) -> dict[str, object]:
    return {**row, "unit": "per second"}


def _read_address(text: str) -> tuple[str, int]:
    from fabrictune.foundation.errors import InputError, Mistake

    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(Mistake(where="--listen", found=repr(text), allowed="HOST:PORT, as 127.0.0.1:9400"))
    return host, int(port)


def _print(record: "RunRecord") -> None:
    outcome = record.run["outcome"]
    print_lines(
        [
            f"{outcome['num_samples']:,} samples of {outcome['num_counters']} counters in "
            f"{_time(outcome['elapsed_s'])}: one in {_time(outcome['mean_interval_s'])}, "
            f"{outcome['num_missed']:,} missed, the latest {_time(outcome['worst_late_s'])} late",
            f"sampling took {format_fraction(outcome['processor_fraction'])} of a processor; the history has "
            f"{format_bytes(outcome['history_bytes'])}",
        ]
    )
    highest: dict[tuple[str, str], tuple[float, float]] = {}
    for row in to_rows(record.tables["nic_seconds"]):
        key = row["device"], row["counter"]
        mean, peak = highest.get(key, (0.0, 0.0))
        highest[key] = max(mean, row["mean_rate"]), max(peak, row["peak_rate"])
    cells = [(*key, format_number(mean), format_number(peak)) for key, (mean, peak) in highest.items()]
    if cells:
        print_table(("device", "counter", "most per second", "peak between samples, per second"), cells)
    _print_phases(record)
    print_lines([f"note: {note}" for note in notes_of(record)])


def _print_phases(record: "RunRecord") -> None:
    """Print each device's transfer phases against its link's rate."""
    phases: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in to_rows(record.tables["nic_phases"]):
        phases.setdefault((row["device"], row["direction"]), []).append(row)
    if phases:
        cells = [
            (
                *key,
                f"{len(own):,}",
                format_fraction(median(row["share_fraction"] for row in own)),
                format_fraction(min(row["share_fraction"] for row in own)),
                format_number(sum(row["ecn_marked"] + row["cnps"] + row["pauses"] for row in own)),
            )
            for key, own in phases.items()
        ]
        heading = ("device", "transfers", "phases", "of the link, median", "lowest", "marks, CNPs and pauses in them")
        print_table(heading, cells)


def _time(seconds: float) -> str:
    return format_duration(seconds * PS_PER_S) if seconds else "0"
