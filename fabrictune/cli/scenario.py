"""`fabrictune scenario`: check a scenario file, list the keys of one, and list and copy the bundled scenarios."""

from dataclasses import asdict
from pathlib import Path

import click

from fabrictune.cli.framework.findings import findings_json, print_findings
from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.keys import print_keys, schema_option
from fabrictune.cli.framework.options import is_code_trusted, json_option, scenario_argument
from fabrictune.cli.framework.output import print_json, print_lines, print_table

scenario = CommandGroup(name="scenario", help="Check a scenario file, list its keys, and copy a bundled one.")


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


@scenario.command("list")
@json_option
def list_scenarios(as_json: bool) -> None:
    """List the bundled scenarios with their questions.

    \b
    Example:
      fabrictune scenario list
    """
    from fabrictune.scenario.bundled import bundled_scenarios

    scenarios = bundled_scenarios()
    if as_json:
        print_json([asdict(one) for one in scenarios])
    else:
        print_table(("scenario", "question"), [(one.name, one.question) for one in scenarios])


@scenario.command()
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Output file.  [default: NAME.yaml]")
@json_option
def copy(name: str, out: Path | None, as_json: bool) -> None:
    """Copy the bundled scenario NAME, to be changed and run.

    \b
    Example:
      fabrictune scenario copy incast --out my-incast.yaml
      fabrictune sim run my-incast.yaml
    """
    from fabrictune.scenario.bundled import copy_bundled

    place = out or Path(f"{name}.yaml")
    copy_bundled(name, place)
    if as_json:
        print_json({"file": str(place)})
    else:
        print_lines([f"file: {place}"])


@scenario.command()
@click.argument("section", default="scenario")
@schema_option
@json_option
def keys(section: str, as_schema: bool, as_json: bool) -> None:
    """List the keys of a scenario, or of the SECTION of it that is named: `fabric.clos`, `traffic.incast`, `engine`.

    \b
    Example:
      fabrictune scenario keys
      fabrictune scenario keys fabric.clos
      fabrictune scenario keys --schema > scenario.schema.json
    """
    from fabrictune.scenario.schema import Scenario

    print_keys(Scenario, "scenario", section, as_json=as_json, as_schema=as_schema)
