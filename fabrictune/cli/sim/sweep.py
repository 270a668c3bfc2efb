"""`fabrictune sim sweep`: a scenario under many settings, and the best of them."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import (
    INTERRUPTED,
    fail_on_option,
    is_code_trusted,
    json_option,
    quiet_option,
    trust_code_option,
)
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import print_record, with_command
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.run_tables.rows import tables_to_rows, to_rows

if TYPE_CHECKING:
    from fabrictune.foundation.records import RunRecord
    from fabrictune.sweeps.executors import Executor
    from fabrictune.sweeps.schema import Sweep

MAX_SHOWN = 20  # points
MAX_WORKERS = 4096
LEAST_DIRECTED_SHARE = 0.05  # of the variance; a smaller share is noise, whose direction means nothing


@click.command()
@click.argument("sweep", metavar="SWEEP", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Output directory of the runs.  [default: runs/NAME]"
)
@click.option(
    "--vary",
    "axes",
    multiple=True,
    metavar="KEY=VALUE;VALUE",
    help="Key to vary, where SWEEP is a scenario; repeatable.",
)
@click.option(
    "--objective", "metrics", multiple=True, metavar="METRIC", help="Metric to optimize, with --vary; repeatable."
)
@click.option("--seeds", type=click.IntRange(1, 1000), help="Number of runs per point, with --vary.  [default: 3]")
@click.option(
    "--workers",
    type=click.IntRange(1, MAX_WORKERS),
    default=os.cpu_count(),
    show_default="cores",
    help="Number of concurrent runs on this machine.",
)
@click.option(
    "--on", type=click.Choice(["threads", "ray"]), default="threads", show_default=True, help="Execution backend."
)
@click.option("--ray-address", metavar="ADDRESS", help="Address of a Ray cluster.  [default: a local one]")
@click.option(
    "--for",
    "files",
    type=click.Choice(["mlxconfig", "cc_params", "sysfs"]),
    default="mlxconfig",
    show_default=True,
    help="Output format of the NIC settings.",
)
@click.option(
    "--plot",
    "figure",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Figure of every objective over the first: .svg, .pdf or .png.",
)
@trust_code_option
@fail_on_option
@quiet_option
@json_option
def sweep(
    sweep: Path,
    out: Path | None,
    axes: tuple[str, ...],
    metrics: tuple[str, ...],
    seeds: int | None,
    workers: int,
    on: str,
    ray_address: str | None,
    files: str,
    figure: Path | None,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run the scenario of SWEEP under many settings; print Pareto-optimal points, sensitivities and settings.

    Settings are the changes of NICs and switches for the best point; none is applied.

    Every run is kept as it is done: after Ctrl-C, a crash or a full disk the same command goes on from there.

    \b
    Example:
      fabrictune sim sweep scenarios/sweeps/dcqcn-incast.yaml
      fabrictune sim sweep my.yaml --vary "engine.ecn.kmin=50 KB;400 KB" --objective completion_time.p99
    """
    from fabrictune.foundation.output_files import check_output_file
    from fabrictune.sweeps.options import sweep_named

    if figure:
        check_output_file(figure)
    wanted = sweep_named(sweep, axes, metrics, seeds, trust_code=is_code_trusted())
    folder = out or Path("runs") / wanted.name
    with _executor(on, workers, ray_address) as executor, progress_bar(wanted.name, is_quiet=quiet or as_json) as bar:
        try:
            record, directory = _run(wanted, folder, executor, files=files, progress=bar)
        except KeyboardInterrupt:
            print_lines([f"stopped; what is done stays in {folder}, and the same command goes on from there"])
            return INTERRUPTED
    if figure:
        from fabrictune import plot

        plot.save(plot.sweep(record), figure)
    return print_record(
        record,
        directory,
        lambda: {"laws": record.run["laws"], **tables_to_rows(record.tables)},
        lambda: _print(record),
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )


def _run(
    wanted: "Sweep", out: Path, executor: "Executor", *, files: str, progress: Progress | None
) -> tuple["RunRecord", Path]:
    """Return the sweep's record, with settings for NICs and switches, and the folder in which it now is."""
    from fabrictune.scenario.files import load_scenario
    from fabrictune.sweeps.nic_settings import SettingsWriter, settings_of_front
    from fabrictune.sweeps.runner import run_sweep
    from fabrictune.sweeps.store import open_folder

    writer = SettingsWriter.of(load_scenario(wanted.scenario, trust_code=is_code_trusted()), files)
    with open_folder(out) as folder:
        record = run_sweep(wanted, folder, executor, trust_code=is_code_trusted(), progress=progress)
        record = settings_of_front(with_command(record), folder, writer)
        return record, folder.write_result(record)


@contextmanager
def _executor(on: str, num_workers: int, ray_address: str | None) -> Iterator["Executor"]:
    """Give what does the runs."""
    if on == "threads":
        from fabrictune.sweeps.executors import Threads

        yield Threads(num_workers=num_workers)
    else:
        from fabrictune.sweeps.ray_executor import open_cluster

        with open_cluster(num_workers, ray_address) as cluster:
            yield cluster


def _print(record: "RunRecord") -> None:
    from fabrictune.sweeps.results import best_first

    points, num_seeds = to_rows(record.tables["points"]), record.run["num_seeds"]
    objectives = to_rows(record.tables["objectives"])
    metrics = list(record.run["objectives"])
    by_point: dict[int, dict[str, str]] = {}
    for row in objectives:
        by_point.setdefault(row["point"], {})[row["metric"]] = _estimate(row, num_seeds)
    whole = [points[point] for point in best_first(record)]
    shown = sorted(whole, key=lambda point: -point["is_on_front"])[:MAX_SHOWN]
    keys = [name for name in points[0] if name.startswith("vary.")]
    num_front = sum(bool(point["is_on_front"]) for point in points)
    seeds = (
        f"{num_seeds} seeds each" if num_seeds > 1 else "one seed: this front is unfounded, --seeds 5 gives intervals"
    )
    print_lines([f"{num_front} of {len(points)} points are Pareto-optimal (*); {seeds}"])
    headings = ("", *(key.removeprefix("vary.") for key in keys), *metrics)
    rows = [
        (
            "*" if point["is_on_front"] else "-" if point["is_surely_dominated"] else "",
            *(point[key] for key in keys),
            *(by_point[point["point"]][metric] for metric in metrics),
        )
        for point in shown
    ]
    print_table(headings, rows, indent=2)
    if len(shown) < len(whole):
        print_lines([f"  and {len(whole) - len(shown)} more in the record"])
    _print_laws(record.run["laws"])
    print_sensitivity(to_rows(record.tables["sensitivity"]), metrics)
    _print_settings(record.run, metrics[0])


def _print_settings(head: Mapping[str, Any], metric: str) -> None:
    """Print what the best point changes on NICs and switches."""
    from fabrictune.scenario.switch_settings.report import SwitchReport

    if rows := head["nic_settings"]:
        row = rows[0]
        print_lines(["", f"for a NIC, the best in {metric}, changed from {row['since']} (printed, nothing is set):"])
        print_lines([*row["lines"], f"# needs {row['needs']}"] if row["lines"] else ["# nothing changes"])
    if rows := head["switch_settings"]:
        print_lines(["", f"for the switches, the best in {metric} (printed, nothing is set):"])
        print_lines(SwitchReport.lines(rows[0]))


def _print_laws(laws: list[dict[str, str]]) -> None:
    """Print which form of its algorithm each law is, and whose numbers its parameters had."""
    if laws:
        print_lines(["", "laws as they ran:"])
        print_table(("law", "form", "parameters"), [tuple(law.values()) for law in laws], indent=2)


def print_sensitivity(rows: list[dict[str, Any]], metrics: list[str]) -> None:
    """Print the share of each objective's variance that each key explains, with its direction from 5 % on."""
    if not rows:
        return
    values = {(row["key"], row["metric"], row["measure"]): row["value"] for row in rows}

    def cell(key: str, metric: str) -> str:
        share, rank = (values.get((key, metric, measure)) for measure in ("variance_share", "rank_correlation"))
        if share is None:
            return "-"
        if not rank or share < LEAST_DIRECTED_SHARE:
            return f"{share:.0%}"
        return f"{share:.0%} {'rising' if rank > 0 else 'falling'}"

    keys = dict.fromkeys(row["key"] for row in rows)
    print_lines(["", "first-order sensitivity (share of the variance that a key explains alone):"])
    print_table(("key", *metrics), [(key, *(cell(key, metric) for metric in metrics)) for key in keys], indent=2)


def _estimate(row: dict[str, Any], num_seeds: int) -> str:
    from fabrictune.foundation.metrics.measures import metric_of

    metric = metric_of(row["metric"])
    half = (row["high"] - row["low"]) / 2
    return metric.show(row["value"]) + (f" ± {metric.show(half)}" if num_seeds > 1 else "")
