"""A scenario's run, its record, and what a terminal shows of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabrictune.cli.framework.findings import conclude, print_findings
from fabrictune.cli.framework.options import INTERRUPTED
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import print_answer, record_json, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.foundation.records import RunRecord, notes_of

if TYPE_CHECKING:
    from fabrictune.scenario.schema import Scenario
    from fabrictune.studies.replay.summary import ReplaySummary
    from fabrictune.studies.run_summary import Summary


@dataclass(frozen=True, kw_only=True)
class ScenarioRun:
    """A run and the folder of its record."""

    scenario: "Scenario"
    record: RunRecord
    directory: Path
    summary: "Summary"
    assumptions: Sequence[str]  # of a run without a scenario file

    @property
    def is_partial(self) -> bool:
        """Whether it was interrupted."""
        return bool(self.record.run["outcome"] == "interrupted")

    @property
    def values(self) -> dict[str, Any]:
        """The run for machines, without its findings."""
        from fabrictune.netsim.skip import bounded_json

        head = record_json(self.record, self.directory)
        return {**head, **self.summary.as_json(), **bounded_json(self.record.run)}

    def exit_code(self, fail_on: str) -> int:
        """Return the exit code of the command."""
        return INTERRUPTED if self.is_partial else conclude(fail_on, self.record)


def run_scenario(
    scenario: "Scenario",
    place: Path,
    *,
    assumptions: Sequence[str] = (),
    runs_alone: bool = False,
    is_quiet: bool = False,
) -> ScenarioRun:
    """Run a scenario and write its record, with `assumptions` among its notes; raises InputError, LawError."""
    from fabrictune.studies.run_summary import summarize
    from fabrictune.studies.simulation import simulate

    with progress_bar(scenario.name, is_quiet=is_quiet) as bar:
        record = simulate(scenario, runs_alone=runs_alone, rules=site_rules(), progress=bar)
    if assumptions:
        record = replace(record, run={**record.run, "notes": [*assumptions, *notes_of(record)]})
    return ScenarioRun(
        scenario=scenario,
        record=record,
        directory=with_command(record).write(place),
        summary=summarize(record),
        assumptions=assumptions,
    )


def print_run(run: ScenarioRun, *, quiet: bool) -> None:
    """Print a run: its results unless `quiet`, its findings, and where its record is."""
    from fabrictune.netsim.skip import skip_lines
    from fabrictune.netsim.threads import thread_lines
    from fabrictune.scenario.engine_notes import ACKNOWLEDGEMENTS, PCIE
    from fabrictune.scenario.rail_fold import NOTE as FOLD

    record, law = run.record, run.scenario.law.name
    if not quiet:
        _print(run.scenario.headline, run.summary)
        print_lines([*skip_lines(record.run), *thread_lines(record.run)])
        print_lines(f"assumed: {assumption}" for assumption in run.assumptions)
        print_lines(
            f"note: {note}"
            for note in notes_of(record)
            if note.startswith((f"law {law}: ", FOLD, ACKNOWLEDGEMENTS, PCIE))
        )
    print_findings(record)
    if capture := record.run.get("capture"):
        print_lines([f"capture: {run.directory / capture['file']}, {capture['packets']} packets"])
    print_answer(record, run.directory, quiet=quiet, is_partial=run.is_partial)


def _print(headline: str, summary: "Summary") -> None:
    from fabrictune.foundation.metrics.catalog import METRICS
    from fabrictune.studies.run_summary import PART_METRICS

    print_lines([headline, _listed(summary)])
    headings = ("transfer", "from", "to", "size", "FCT", "throughput", "slowdown")
    print_table(headings, summary.transfer_rows, indent=2)
    print_table(("metric", "value", "name"), summary.metric_rows)
    if summary.zeros:
        print_lines([f"0: {', '.join(summary.zeros)}"])
    if summary.parts:
        print_table(("part", *(METRICS[name].label for name in PART_METRICS)), summary.part_rows)
    if summary.alone:
        print_table(("part", "JCT beside the others", "JCT alone", "slowdown"), summary.alone_rows)
    if summary.faults:
        fault_headings = ("fault", "from", "until", "goodput before", "during", "after")
        print_table(fault_headings, summary.fault_rows)
        print_lines([f"packets lost to faults: {_causes(summary)}"])
    for replay in summary.replays:
        _print_replay(replay)


def _print_replay(replay: "ReplaySummary") -> None:
    of_part = f"{replay.part}: " if replay.part else ""
    print_lines([f"{of_part}replayed steps of {replay.num_ranks:,} ranks; work and exposed communication of a rank"])
    print_table(replay.headings, replay.rows, indent=2)
    print_lines(replay.lines)


def _listed(summary: "Summary") -> str:
    num_listed = len(summary.transfer_rows)
    first = f"{summary.num_transfers:,} transfers over the fabric"
    return (
        f"{first}, the slowest first" if num_listed == summary.num_transfers else f"{first}, the {num_listed} slowest"
    )


def _causes(summary: "Summary") -> str:
    return ", ".join(f"{packets} {cause}" for cause, packets in summary.drops.items()) or "none"
