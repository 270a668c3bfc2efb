"""`fabrictune scenario`: check a scenario file, and list the keys that one may have."""

from pathlib import Path

import click

from fabrictune.cli.framework.findings import findings_json, print_findings
from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.keys import print_keys
from fabrictune.cli.framework.options import is_code_trusted, json_option, scenario_argument
from fabrictune.cli.framework.output import print_json, print_lines

scenario = CommandGroup(name="scenario", help="Check a scenario file, and list the keys it can have.")


@scenario.command()
@scenario_argument
@json_option
def check(scenario: Path, as_json: bool) -> None:
    """Read SCENARIO and build its fabric, traffic, paths and faults, without running it.

    \b
    Example:
      fabrictune scenario check scenarios/incast.yaml
    """
    from fabrictune.scenario.compilation import assemble
    from fabrictune.scenario.composition import compose
    from fabrictune.scenario.engines import without_ignored
    from fabrictune.scenario.files import load_scenario

    compiled = assemble(
        compose(without_ignored(load_scenario(scenario, trust_code=is_code_trusted()))), law=None
    )  # no law is needed to check the rest
    num_faults = len(compiled.faults.faults)
    counts = {
        "nics": compiled.network.fabric.num_nics,
        "queue_pairs": len(compiled.network.queue_pairs),
        "transfers": len(compiled.traffic),
        **({"faults": num_faults} if num_faults else {}),
    }
    if as_json:
        remarks = {"notes": list(compiled.notes), "findings": findings_json(compiled.findings)}
        print_json({"name": compiled.scenario.name, **counts, **remarks})
    else:
        print_lines(
            [f"{scenario}: good; " + ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in counts.items())]
        )
        if compiled.findings:
            print_findings(compiled.check_files())


@scenario.command()
@click.argument("section", default="scenario")
@json_option
def keys(section: str, as_json: bool) -> None:
    """List the keys of a scenario, or of the SECTION of it that is named: `fabric.clos`, `traffic.incast`, `engine`.

    \b
    Example:
      fabrictune scenario keys
      fabrictune scenario keys fabric.clos
    """
    from fabrictune.scenario.schema import Scenario

    print_keys(Scenario, "scenario", section, as_json=as_json)
