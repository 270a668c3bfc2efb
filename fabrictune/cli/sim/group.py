"""`fabrictune sim`: run a scenario in the packet engine."""

from pathlib import Path
from typing import TYPE_CHECKING

from fabrictune.cli.framework.findings import exit_code, judged_json, print_findings
from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.options import (
    INTERRUPTED,
    fail_on_option,
    is_code_trusted,
    json_option,
    out_option,
    quiet_option,
    scenario_argument,
)
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import output_folder, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.cli.sim.sweep import sweep
from fabrictune.foundation.records import notes_of

if TYPE_CHECKING:
    from fabrictune.studies.replay.summary import ReplaySummary
    from fabrictune.studies.run_summary import Summary

sim = CommandGroup(name="sim", help="Run a scenario in the packet engine, once or under many settings.")


@sim.command()
@scenario_argument
@out_option
@fail_on_option
@quiet_option
@json_option
def run(scenario: Path, out: Path | None, fail_on: str, quiet: bool, as_json: bool) -> int:
    """Run SCENARIO packet by packet and print completion times and broken expectations.

    \b
    Example:
      fabrictune sim run scenarios/incast.yaml
      fabrictune sim run my.yaml --trust-code --out runs/try-2 --json
    """
    from fabrictune.netsim.skip import bounded_json, skip_lines
    from fabrictune.netsim.threads import thread_lines
    from fabrictune.scenario.engine_notes import ACKNOWLEDGEMENTS, PCIE
    from fabrictune.scenario.files import load_scenario
    from fabrictune.studies.run_summary import summarize
    from fabrictune.studies.simulation import simulate

    checked = load_scenario(scenario, trust_code=is_code_trusted())
    law = checked.law.name
    place = output_folder(out or Path("runs") / checked.name, checked)
    with progress_bar(checked.name, is_quiet=quiet or as_json) as bar:
        record = simulate(checked, rules=site_rules(), progress=bar)
    directory = with_command(record).write(place)
    summary = summarize(record)
    is_partial = record.run["outcome"] == "interrupted"
    code = INTERRUPTED if is_partial else exit_code(record.findings, fail_on)
    if as_json:
        shown = {"record": str(directory), "notes": notes_of(record), **summary.as_json(), **bounded_json(record.run)}
        print_json({**shown, **judged_json(record)})
        return code
    if not quiet:
        _print(checked.headline, summary)
        print_lines([*skip_lines(record.run), *thread_lines(record.run)])
        print_lines(
            f"note: {note}" for note in notes_of(record) if note.startswith((f"law {law}: ", ACKNOWLEDGEMENTS, PCIE))
        )
    print_findings(record)
    if capture := record.run.get("capture"):
        print_lines([f"capture: {directory / capture['file']}, {capture['packets']} packets"])
    print_lines([f"stopped; partial record in {directory}" if is_partial else f"record: {directory}"])
    return code


sim.add_command(sweep)


def _print(headline: str, summary: "Summary") -> None:
    from fabrictune.foundation.metrics.catalog import METRICS
    from fabrictune.studies.run_summary import PART_METRICS

    print_lines([headline, _listed(summary)])
    headings = ("transfer", "from", "to", "size", "FCT", "throughput", "slowdown")
    print_table(headings, summary.transfer_rows, indent=2)
    print_table(("metric", "value", "name"), summary.metric_rows)
    if summary.parts:
        print_table(("part", *(METRICS[name].label for name in PART_METRICS)), summary.part_rows)
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
    num_listed = len(summary.slowest)
    first = f"{summary.num_transfers:,} transfers over the fabric"
    return (
        f"{first}, the slowest first" if num_listed == summary.num_transfers else f"{first}, the {num_listed} slowest"
    )


def _causes(summary: "Summary") -> str:
    return ", ".join(f"{packets} {cause}" for cause, packets in summary.drops.items()) or "none"
