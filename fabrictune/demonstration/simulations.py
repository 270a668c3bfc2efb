"""The simulated part: one training job, placed badly and placed MegaScale's way, and the bad one under three laws.

Each placement is analysed for ECMP collisions, then run packet by packet with DCQCN. The other laws have the same
traffic on the same paths, so that what differs is how they treat collisions.

Source: MegaScale (NSDI'24), section 3.6, for the shape of the fabric and the placement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.finding_rules.paths import LINK_OVERLOADED, RECEIVER_OVERLOADED
from fabrictune.foundation.progress import Progress, stage
from fabrictune.foundation.record_folders import record_place
from fabrictune.foundation.records import Finding, RunRecord
from fabrictune.foundation.units import format_duration
from fabrictune.scenario.bundled import bundled_path
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.overrides import override
from fabrictune.scenario.schema import Scenario
from fabrictune.studies.collisions import CollisionSummary, summarize_collisions
from fabrictune.studies.run_summary import Summary, summarize
from fabrictune.studies.simulation import simulate

PLACEMENTS = ("interleaved", "contiguous")  # the bad one first
OTHER_LAWS = ("swift", "hpcc")  # beside that of the scenarios


@dataclass(frozen=True, kw_only=True)
class PlacedJob:
    """The record of one placement, and what it shows."""

    placement: str
    directory: Path  # of its record
    law: str
    collisions: CollisionSummary
    links: Sequence[Finding]  # the links that collide, those between switches before those to NICs, the worst first
    run: Summary


@dataclass(frozen=True, kw_only=True)
class LawRun:
    """The bad placement under another law."""

    law: str
    directory: Path
    run: Summary


@dataclass(frozen=True, kw_only=True)
class Simulations:
    """Both placements, and the bad one under other laws."""

    bad: PlacedJob
    good: PlacedJob
    laws: Sequence[LawRun]

    @property
    def meaning(self) -> list[str]:
        """What the numbers say, in sentences."""
        bad, good = self.bad.run.metrics, self.good.run.metrics
        worst = self.bad.collisions
        makespans = {run.law: run.run.metrics["makespan"] for run in self.laws}
        best = min(makespans, key=lambda law: makespans[law])
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
            f"Another law changes what collisions cost, not that they are there: {best} takes "
            f"{format_duration(makespans[best])}, still {makespans[best] / good['makespan']:.1f} times as long.",
        ]


def simulate_job(out: Path, progress: Progress | None = None) -> Simulations:
    """Run both placements and the other laws, and write their records into `out`; raises InputError."""
    for name in (*PLACEMENTS, *OTHER_LAWS):
        record_place(out / name)
    num_runs = len(PLACEMENTS) + len(OTHER_LAWS)
    bad, good = (
        _place(placement, out / placement, stage(progress, number, num_runs))
        for number, placement in enumerate(PLACEMENTS)
    )
    laws = [
        _run_law(law, out / law, stage(progress, number, num_runs))
        for number, law in enumerate(OTHER_LAWS, start=len(PLACEMENTS))
    ]
    return Simulations(bad=bad, good=good, laws=laws)


def _place(placement: str, directory: Path, progress: Progress | None) -> PlacedJob:
    scenario = _scenario(placement)
    record = _finished(simulate(scenario, progress=progress))
    return PlacedJob(
        placement=placement,
        directory=record.write(directory),
        law=scenario.law.name,
        collisions=summarize_collisions(record),
        links=[finding for finding in record.findings if finding.id in (LINK_OVERLOADED.id, RECEIVER_OVERLOADED.id)],
        run=summarize(record),
    )


def _run_law(law: str, directory: Path, progress: Progress | None) -> LawRun:
    scenario = override(_scenario(PLACEMENTS[0]), {"law": law, "name": f"demo-{law}"}, origin="demo")
    record = _finished(simulate(scenario, with_collisions=False, progress=progress))
    return LawRun(law=law, directory=record.write(directory), run=summarize(record))


def _scenario(placement: str) -> Scenario:
    return load_scenario(bundled_path(f"demo-{placement}"))


def _finished(record: RunRecord) -> RunRecord:
    if record.run["outcome"] == "interrupted":
        raise KeyboardInterrupt  # half a comparison answers nothing
    return record
