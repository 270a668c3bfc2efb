"""`fabrictune demo`: the whole suite on a bundled sample."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.findings import findings_json, print_findings
from fabrictune.cli.framework.options import json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar

if TYPE_CHECKING:
    from fabrictune.demonstration.simulations import PlacedJob, Simulations
    from fabrictune.demonstration.training import TwinnedTraining
    from fabrictune.studies.run_summary import Summary

MAX_LINKS = 5
WIDTH = 110
TRAINING = "training"


@click.command()
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/demo"), show_default=True)
@click.option("--no-training", is_flag=True, help="Simulate only.")
@quiet_option
@json_option
def demo(out: Path, no_training: bool, quiet: bool, as_json: bool) -> None:
    """Show the whole suite on a sample: a fabric's collisions, three laws, and a training beside its prediction.

    Places a job of 128 GPUs badly and well on an 8-rail fabric, names the links that collide under ECMP, and runs both
    packet by packet, the bad one under three congestion-control laws. Then trains eight ranks, each step predicted
    beside measured: as root on a testbed of namespaces, where one link becomes slow in mid-run and is named; else over
    the loopback. Needs torch for the training, and says so without. Writes one page.

    \b
    Example:
      fabrictune demo --out /tmp/demo
    """
    from fabrictune.demonstration.page import PAGE_NAME, write_demo_page
    from fabrictune.demonstration.simulations import simulate_job
    from fabrictune.demonstration.training import train_job
    from fabrictune.foundation.output_files import check_output_file
    from fabrictune.foundation.record_folders import record_place

    is_silent, said = quiet or as_json, list[str]()

    def say(line: str) -> None:
        said.append(line)
        if not is_silent:
            print_lines([line])

    record_place(out / TRAINING)
    check_output_file(out / PAGE_NAME, makes_parents=True)
    with progress_bar("simulating", is_quiet=is_silent) as progress:
        simulations = simulate_job(out, progress)
    if not as_json:
        _print_simulations(simulations)
    if not (no_training or as_json):
        print_lines(["", "a training of eight ranks (tp 2, pp 2, dp 2), each step predicted beside measured:"])
    training = None if no_training else train_job(out / TRAINING, say)
    page = write_demo_page(simulations, training, out / PAGE_NAME)
    if as_json:
        print_json(_as_json(simulations, training, page) | {"said": said})
        return
    if training:
        print_lines(["", "what was found of the training:"])
        print_findings(training.report)
    print_lines(["", f"page: {page}"])


def _print_simulations(result: "Simulations") -> None:
    print_lines(
        [
            "One training job of 128 GPUs (tp 8 in the server, dp 16) on 16 servers, 8 rails and 32 ToRs: eight rings",
            "of 16 servers all-reduce 16 MB a GPU; a real step moves gigabytes, and collides in the same places.",
            "",
        ]
    )
    bad, good = result.bad, result.good
    rows = [
        *zip(COLLISION_ROWS, _collisions(bad), _collisions(good), strict=True),
        *_metric_rows([bad.run, good.run]),
    ]
    print_table(("placement", bad.placement, good.placement), rows)
    print_lines(["", f"the {MAX_LINKS} worst of {len(bad.links)} oversubscribed links, {bad.placement}:"])
    for finding in bad.links[:MAX_LINKS]:
        print_lines([f"  {finding.entity}: {finding.actual}, where {finding.expected} fit"])
        print_lines(f"      {flow}" for flow in finding.evidence)
    runs = _runs_by_law(result)
    print_lines(["", f"the same job {bad.placement}, under three congestion-control laws:"])
    print_table(("law", *runs), _metric_rows(list(runs.values())))
    print_lines(["", "what this means:"])
    for sentence in result.meaning:
        print_lines(textwrap.wrap(sentence, WIDTH, initial_indent="  - ", subsequent_indent="    "))


COLLISION_ROWS = ("oversubscribed links", "highest offered load", "expected throughput, by ECMP alone")
METRIC_ROWS = ("makespan", "bus_bandwidth", "completion_time.max", "ecn_marks", "pauses", "drops")


def _runs_by_law(result: "Simulations") -> Mapping[str, "Summary"]:
    return {result.bad.law: result.bad.run, **{run.law: run.run for run in result.laws}}


def _metric_rows(runs: Sequence["Summary"]) -> list[tuple[str, ...]]:
    """Return a row for each metric, a column for each run."""
    from fabrictune.foundation.metrics.catalog import METRICS

    return [(METRICS[name].label, *(METRICS[name].show(run.metrics[name]) for run in runs)) for name in METRIC_ROWS]


def _collisions(job: "PlacedJob") -> tuple[str, str, str]:
    from fabrictune.foundation.units import format_fraction

    collisions = job.collisions
    return (
        f"{collisions.num_overloaded_links} of {collisions.num_loaded_links}",
        format_fraction(collisions.worst_load_fraction),
        format_fraction(collisions.mean_throughput_fraction),
    )


def _as_json(result: "Simulations", training: "TwinnedTraining | None", page: Path) -> dict[str, Any]:
    return {
        "page": str(page),
        "cases": [
            {
                "placement": job.placement,
                "record": str(job.directory),
                "collisions": job.collisions.as_json(),
                "links": findings_json(job.links),
                "run": job.run.as_json(),
            }
            for job in (result.bad, result.good)
        ],
        "laws": [{"law": run.law, "record": str(run.directory), "run": run.run.as_json()} for run in result.laws],
        "meaning": result.meaning,
        "training": None
        if training is None
        else {
            "place": training.place,
            "record": str(training.directory),
            "findings": findings_json(training.report.findings),
        },
    }
