"""`fabrictune ecmp`: which links the hash gives more flows than they carry."""

from pathlib import Path

from fabrictune.cli.findings import exit_code, findings_json, print_findings
from fabrictune.cli.groups import Group
from fabrictune.cli.options import fail_on_option, json_option, out_option, quiet_option, scenario_argument
from fabrictune.cli.output import print_json, print_lines
from fabrictune.cli.progress import progress_bar

ecmp = Group(name="ecmp", help="Find the links on which flows collide.")


@ecmp.command()
@scenario_argument
@out_option
@fail_on_option
@quiet_option
@json_option
def analyze(scenario: Path, out: Path | None, fail_on: str, quiet: bool, as_json: bool) -> int:
    """Name the links of SCENARIO that are asked for more than they carry, and the flows that meet there.

    All queue pairs are taken to send at once; no packet is simulated and no law is run.

    \b
    Example:
      fabrictune ecmp analyze scenarios/demo-interleaved.yaml
      fabrictune ecmp analyze my.yaml --fail-on warning --json
    """
    from fabrictune.scenario.analyzing import analyze_scenario, summarize_collisions
    from fabrictune.scenario.reading import load_scenario

    checked = load_scenario(scenario)
    with progress_bar(checked.name, is_quiet=quiet or as_json) as progress:
        record = analyze_scenario(checked, progress)
    directory = record.write(out or Path("runs") / f"{checked.name}-ecmp")
    summary = summarize_collisions(record)
    if as_json:
        print_json({"record": str(directory), **summary.as_json(), "findings": findings_json(record.findings)})
        return exit_code(record.findings, fail_on)
    if not quiet:
        print_lines([checked.headline, *summary.lines])
    print_findings(record.findings)
    print_lines([f"record: {directory}"])
    return exit_code(record.findings, fail_on)
