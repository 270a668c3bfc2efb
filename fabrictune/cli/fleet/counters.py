"""`fabrictune fleet counters`: counters of all nodes, before and after."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.fleet.nodes import (
    NodeOptions,
    collect_nodes,
    node_options,
    print_states,
    show_plan,
    states_json,
)
from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.options import COULD_NOT_COLLECT, INTERRUPTED, fail_on_option, json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.cli.framework.wrapped_commands import run_wrapped, wrapped_command
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.foundation.units import PS_PER_S, format_number

if TYPE_CHECKING:
    from fabrictune.fleet.collect.collection import Collection
    from fabrictune.fleet.counters.snapshots import Place

BYTES_PER_GB = 10**9
SENT = "bytes sent"

counters = CommandGroup(name="counters", help="Read the counters of all nodes, and say what rose on which link.")
_record_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=Path("runs/fleet-counters"),
    show_default=True,
    help="Output directory of the record.",
)


@counters.command()
@node_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=Path("runs/counters-now"),
    show_default=True,
    help="Folder of the snapshot: one JSON file a node.",
)
@click.option("--open-metrics", is_flag=True, help="Print the counters as OpenMetrics text.")
@json_option
def snap(nodes: NodeOptions, out: Path, open_metrics: bool, as_json: bool) -> int:
    """Keep the counters of all nodes as they are now.

    \b
    Example:
      fabrictune fleet counters snap hosts.txt --out runs/before
      fabrictune fleet counters snap hosts.txt --open-metrics > nics.prom
    """
    from fabrictune.fleet.collect.collection import check_collection_place, write_collection
    from fabrictune.fleet.collect.questions import COUNTERS
    from fabrictune.fleet.counters.open_metrics import open_metrics as metric_lines
    from fabrictune.fleet.counters.snapshots import fleet_snapshot, places_of

    if show_plan(nodes, COUNTERS, as_json=as_json):
        return 0
    check_collection_place(out)
    collection = collect_nodes(nodes, COUNTERS, is_quiet=as_json or open_metrics)
    place = write_collection(collection, out)
    if open_metrics:
        values = fleet_snapshot(collection.readings).counters.values()
        print_lines(metric_lines(values, places_of(collection.readings)))
    elif as_json:
        print_json({"collection": str(place), **states_json(collection)})
    else:
        print_states(collection)
        print_lines([f"collection: {place}"])
    if collection.is_partial:
        return INTERRUPTED
    return COULD_NOT_COLLECT if collection.missing else 0


@counters.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@_record_option
@fail_on_option
@quiet_option
@json_option
def diff(before: Path, after: Path, out: Path, fail_on: str, quiet: bool, as_json: bool) -> int:
    """Say what rose between two snapshots, on which rail and link, and how much per GB sent.

    \b
    Example:
      fabrictune fleet counters diff runs/before runs/after
    """
    from fabrictune.fleet.collect.collection import read_collection

    started, place = time.perf_counter(), output_folder(out)
    first, second = read_collection(before), read_collection(after)
    sources = (str(before), str(after))
    return _show(first, second, sources, started, place, 0, fail_on=fail_on, quiet=quiet, as_json=as_json)


@counters.command(context_settings={"ignore_unknown_options": False})
@node_options
@_record_option
@fail_on_option
@quiet_option
@json_option
@click.pass_context
def watch(context: click.Context, nodes: NodeOptions, out: Path, fail_on: str, quiet: bool, as_json: bool) -> int:
    """Run a command, and say what rose on all nodes meanwhile: HOSTS, then `--` and the command.

    \b
    Example:
      fabrictune fleet counters watch hosts.txt -- srun all_reduce_perf -b 8 -e 8G
    """
    from dataclasses import replace

    from fabrictune.fleet.collect.questions import COUNTERS

    command = wrapped_command(context, next_step="HOSTS, then -- CMD")
    nodes = replace(nodes, arguments=nodes.arguments[: len(nodes.arguments) - len(command)])
    if show_plan(nodes, COUNTERS, as_json=as_json):
        return 0
    started, place = time.perf_counter(), output_folder(out)
    first, started_s = collect_nodes(nodes, COUNTERS, is_quiet=True), time.monotonic()
    status = run_wrapped(command, stdout=2 if as_json else None)
    interval_ps = round((time.monotonic() - started_s) * PS_PER_S)
    second = collect_nodes(nodes, COUNTERS, is_quiet=True)
    if status:
        print_lines([] if as_json else [f"the command ended with exit status {status}"])
    sources = nodes.arguments
    return _show(first, second, sources, started, place, interval_ps, fail_on=fail_on, quiet=quiet, as_json=as_json)


def _show(
    first: "Collection",
    second: "Collection",
    sources: tuple[str, ...],
    started: float,
    place: Path,
    interval_ps: int,
    *,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Compare two collections, write the record, and print what rose; returns the exit code."""
    from fabrictune.fleet.counters.snapshots import fleet_snapshot, places_of
    from fabrictune.rdma_bench.counters.record import TABLE, make_counter_record

    record = make_counter_record(
        fleet_snapshot(first.readings),
        fleet_snapshot(second.readings),
        interval_ps=interval_ps,
        sources=sources,
        started=started,
        rules=site_rules(),
    )
    directory = with_command(record).write(place)
    rows = _placed(to_rows(record.tables[TABLE]), places_of(second.readings))

    def show() -> None:
        print_states(second)
        shown = [row for row in rows if row["rise"] > 0 and row["class"]]
        heads = ("device", "rail", "other end", "counter", "what it counts", "rise", "per GB sent")
        print_table(heads, [_cells(row) for row in shown])
        print_lines(f"note: {note}" for note in record.run.get("notes", ()))

    code = print_record(
        record, directory, lambda: {"counters": rows}, show, as_json=as_json, quiet=quiet, fail_on=fail_on
    )
    return COULD_NOT_COLLECT if first.missing or second.missing else code


def _placed(rows: list[dict[str, Any]], places: "Mapping[str, Place]") -> list[dict[str, Any]]:
    """Return rows with rail, other end and rise per GB that the device's interface sent; -1 where it sent nothing."""
    from fabrictune.fleet.counters.snapshots import Place

    sent: dict[tuple[str, str], float] = {}
    keys = {}
    for row in rows:
        place = places.get(row["device"], Place())
        key = keys[row["device"]] = (row["device"].split("/")[0], place.other_end or row["device"])
        if row["class"] == SENT:
            sent[key] = max(sent.get(key, 0.0), row["rise"])
    placed = []
    for row in rows:
        place, total = places.get(row["device"], Place()), sent.get(keys[row["device"]], 0.0)
        share = row["rise"] * BYTES_PER_GB / total if total > 0 and row["rise"] >= 0 else -1.0
        rail = -1 if place.rail is None else place.rail
        placed.append({**row, "rail": rail, "other_end": place.other_end, "rise_per_gb_times": share})
    return placed


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    marks = " (wrapped)" if row["has_wrapped"] else " (at its largest value)" if row["is_saturated"] else ""
    per_gb = "" if row["rise_per_gb_times"] < 0 or row["class"] == SENT else format_number(row["rise_per_gb_times"])
    unit = f" {row['unit']}" if row["unit"] else ""
    return (
        row["device"],
        "" if row["rail"] < 0 else str(row["rail"]),
        row["other_end"],
        row["counter"],
        row["class"],
        f"{row['rise']:,.0f}{unit}{marks}",
        per_gb,
    )


@counters.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    default=Path("fabrictune-nics.json"),
    show_default=True,
    help="Output file.",
)
@json_option
def dashboard(out: Path, as_json: bool) -> None:
    """Write a Grafana dashboard of what `rdma monitor --listen` serves and `snap --open-metrics` prints.

    Import it in Grafana and choose the Prometheus data source that scrapes them.

    \b
    Example:
      fabrictune fleet counters dashboard --out nics.json
    """
    import json

    from fabrictune.fleet.counters.dashboard import dashboard as make_dashboard
    from fabrictune.foundation.output_files import replaced_file

    with replaced_file(out) as half:
        half.write_text(json.dumps(make_dashboard(), indent=1) + "\n")
    if as_json:
        print_json({"file": str(out)})
    else:
        print_lines([f"file: {out}"])
