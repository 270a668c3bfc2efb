"""`fabrictune demo`: the main job on a bundled sample."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictune.cli.framework.findings import findings_json
from fabrictune.cli.framework.options import json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabrictune.demo import Demo, DemoCase

MAX_LINKS = 5
WIDTH = 110


@click.command()
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/demo"), show_default=True)
@quiet_option
@json_option
def demo(out: Path, quiet: bool, as_json: bool) -> None:
    """Place one training job badly and well on a 128-GPU, 8-rail fabric, and compare.

    Names the links that collide under ECMP, runs both placements packet by packet with DCQCN, and writes one page.

    \b
    Example:
      fabrictune demo --out /tmp/demo
    """
    from fabrictune.demo import run_demo

    with progress_bar("demo", is_quiet=quiet or as_json) as progress:
        result = run_demo(out, progress)
    if as_json:
        print_json(_as_json(result))
    else:
        _print(result)


def _print(result: "Demo") -> None:
    print_lines(
        [
            "One training job of 128 GPUs (tp 8 in the server, dp 16) on 16 servers, 8 rails and 32 ToRs: eight rings",
            "of 16 servers all-reduce 16 MB a GPU; a real step moves gigabytes, and collides in the same places.",
            "",
        ]
    )
    cases = (result.bad, result.good)
    print_table(("placement", *(case.placement for case in cases)), _rows(cases))
    print_lines(["", f"the {MAX_LINKS} worst of {len(result.bad.links)} oversubscribed links, {result.bad.placement}:"])
    for finding in result.bad.links[:MAX_LINKS]:
        print_lines([f"  {finding.entity}: {finding.actual}, where {finding.expected} fit"])
        print_lines(f"      {flow}" for flow in finding.evidence)
    print_lines(["", "what this means:"])
    for sentence in result.meaning:
        print_lines(textwrap.wrap(sentence, WIDTH, initial_indent="  - ", subsequent_indent="    "))
    print_lines(["", f"page: {result.page}"])


COLLISION_ROWS = ("oversubscribed links", "highest offered load", "expected throughput, by ECMP alone")
METRIC_ROWS = ("makespan", "bus_bandwidth", "completion_time.max", "ecn_marks", "pauses", "drops")


def _rows(cases: "Sequence[DemoCase]") -> list[tuple[str, ...]]:
    """Return a row for each number, a column for each case."""
    from fabrictune.foundation.metrics.catalog import METRICS

    labels = (*COLLISION_ROWS, *(METRICS[name].label for name in METRIC_ROWS))
    columns = [
        (*_collisions(case), *(METRICS[name].show(case.run.metrics[name]) for name in METRIC_ROWS)) for case in cases
    ]
    return list(zip(labels, *columns, strict=True))


def _collisions(case: "DemoCase") -> tuple[str, str, str]:
    from fabrictune.foundation.units import format_fraction

    collisions = case.collisions
    return (
        f"{collisions.num_overloaded_links} of {collisions.num_loaded_links}",
        format_fraction(collisions.worst_load_fraction),
        format_fraction(collisions.mean_throughput_fraction),
    )


def _as_json(result: "Demo") -> dict[str, object]:
    return {
        "page": str(result.page),
        "cases": [
            {
                "placement": case.placement,
                "record": str(case.directory),
                "collisions": case.collisions.as_json(),
                "links": findings_json(case.links),
                "run": case.run.as_json(),
            }
            for case in (result.bad, result.good)
        ],
        "meaning": result.meaning,
    }
