"""`fabrictune sim`: run a scenario in the packet engine."""

from pathlib import Path

import click

from fabrictune.cli.framework.findings import judged_json
from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.options import (
    fail_on_option,
    is_code_trusted,
    json_option,
    out_option,
    quiet_option,
    settings_option,
    trust_code_option,
)
from fabrictune.cli.framework.output import print_json
from fabrictune.cli.framework.records import output_folder
from fabrictune.cli.sim.running import print_run, run_scenario
from fabrictune.cli.sim.sweep import sweep

sim = CommandGroup(name="sim", help="Run a scenario in the packet engine, once or under many settings.")


@sim.command()
@click.argument("scenario", metavar="[SCENARIO]", type=click.Path(path_type=Path), required=False)
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    metavar="RECORD",
    help="Replay this trace, or that of a record of train run or train plan, without a scenario.",
)
@click.option(
    "--fabric", type=click.Path(path_type=Path), metavar="FILE", help="Topology file of the fabric, with --trace."
)
@click.option("--alone", is_flag=True, help="Run each part of a mixture alone too, and print what the others cost it.")
@settings_option
@out_option
@fail_on_option
@trust_code_option
@quiet_option
@json_option
def run(
    scenario: Path | None,
    trace: Path | None,
    fabric: Path | None,
    alone: bool,
    settings: tuple[str, ...],
    out: Path | None,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run SCENARIO packet by packet and print completion times and broken expectations.

    With --trace and --fabric in place of a scenario a communication trace is replayed, and the answer is step time and
    exposed communication; all that they leave open has its default, which is printed.

    \b
    Example:
      fabrictune sim run scenarios/incast.yaml
      fabrictune sim run scenarios/incast.yaml --set law=dcqcn_firmware --set "engine.ecn.kmin=100 KB"
      fabrictune sim run my.yaml --trust-code --out runs/try-2 --json
      fabrictune sim run two-jobs.yaml --alone
      fabrictune sim run --trace runs/tiny --fabric fabric.json
    """
    from fabrictune.scenario.files import load_scenario
    from fabrictune.scenario.mixture import MixSpec
    from fabrictune.scenario.overrides import override_texts
    from fabrictune.scenario.trace_on_fabric import trace_on_fabric

    assumptions: tuple[str, ...] = ()
    if trace is not None and fabric is not None and scenario is None:
        traced = trace_on_fabric(trace, fabric, settings)
        checked, assumptions = traced.scenario, traced.assumptions
    elif scenario is not None and trace is None and fabric is None:
        checked = override_texts(load_scenario(scenario, trust_code=is_code_trusted()), settings, origin="--set")
    else:
        raise click.UsageError("give a SCENARIO, or --trace and --fabric in its place")
    place = output_folder(out or Path("runs") / checked.name, checked)
    if alone and not isinstance(checked.traffic.spec, MixSpec):
        raise click.UsageError("--alone needs traffic of several parts: workload: mix")
    result = run_scenario(checked, place, assumptions=assumptions, runs_alone=alone, is_quiet=quiet or as_json)
    if as_json:
        print_json({**result.values, **judged_json(result.record)})
    else:
        print_run(result, quiet=quiet)
    return result.exit_code(fail_on)


sim.add_command(sweep)
