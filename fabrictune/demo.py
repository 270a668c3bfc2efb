"""The main job on a bundled sample: one training job, placed badly and placed MegaScale's way, on the same fabric.

Each placement is analysed for ECMP collisions, then run packet by packet with DCQCN; one page shows both side by side.

Source: MegaScale (NSDI'24), section 3.6, for the shape of the fabric and the placement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.finding_rules.paths import LINK_OVERLOADED, RECEIVER_OVERLOADED
from fabrictune.foundation.output_files import check_output_file
from fabrictune.foundation.progress import Progress, stage
from fabrictune.foundation.record_folders import record_place
from fabrictune.foundation.records import Finding
from fabrictune.foundation.units import format_duration
from fabrictune.reports.page import write_page
from fabrictune.scenario.bundled import bundled_path
from fabrictune.scenario.files import load_scenario
from fabrictune.studies.collisions import CollisionSummary, summarize_collisions
from fabrictune.studies.run_summary import Summary, summarize
from fabrictune.studies.simulation import simulate

CASES = ("interleaved", "contiguous")  # the bad one first
PAGE_NAME = "report.html"


@dataclass(frozen=True, kw_only=True)
class DemoCase:
    """The record of one placement, and what it shows."""

    placement: str
    directory: Path  # of its record
    collisions: CollisionSummary
    links: Sequence[Finding]  # the links that collide, those between switches before those to NICs, the worst first
    run: Summary


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Both placements, and the page that compares them."""

    bad: DemoCase
    good: DemoCase
    page: Path

    @property
    def meaning(self) -> list[str]:
        """What the numbers say, in sentences."""
        bad, good = self.bad.run.metrics, self.good.run.metrics
        worst = self.bad.collisions
        return [
            "Interleaved, every step of a ring climbs to the aggregation switches, where the hash gives "
            f"{worst.num_overloaded_links} link directions more than they carry. A ring is as slow as its slowest "
            "step.",
            "Contiguous, three steps of four stay under one ToR, where there is one path and nothing to collide with: "
            f"{self.good.collisions.num_overloaded_links} link directions are overloaded.",
            f"The all-reduce takes {format_duration(bad['makespan'])} against {format_duration(good['makespan'])}, "
            f"{bad['makespan'] / good['makespan']:.1f} times as long for the same bytes on the same fabric. Sharing "
            f"the worst link fairly would cost a factor of {worst.worst_load_fraction:.1f}; the rest is DCQCN, which "
            "cuts the flows that collide and is slow to let them back.",
            f"Queues fill where flows collide: {bad['ecn_marks']:.0f} packets marked and {bad['pauses']:.0f} pauses, "
            f"against {good['ecn_marks']:.0f} and {good['pauses']:.0f}.",
        ]


def run_demo(out: Path, progress: Progress | None = None) -> Demo:
    """Run both placements and write their records and the page into `out`; raises InputError."""
    for placement in CASES:
        record_place(out / placement)
    check_output_file(out / PAGE_NAME, makes_parents=True)
    cases = [
        _run_case(placement, out / placement, stage(progress, number, len(CASES)))
        for number, placement in enumerate(CASES)
    ]
    page = write_page([case.directory for case in cases], out / PAGE_NAME)
    bad, good = cases
    return Demo(bad=bad, good=good, page=page)


def _run_case(placement: str, directory: Path, progress: Progress | None) -> DemoCase:
    scenario = load_scenario(bundled_path(f"demo-{placement}"))
    record = simulate(scenario, progress=progress)
    if record.run["outcome"] == "interrupted":
        raise KeyboardInterrupt  # half a comparison answers nothing
    return DemoCase(
        placement=placement,
        directory=record.write(directory),
        collisions=summarize_collisions(record),
        links=[finding for finding in record.findings if finding.id in (LINK_OVERLOADED.id, RECEIVER_OVERLOADED.id)],
        run=summarize(record),
    )
