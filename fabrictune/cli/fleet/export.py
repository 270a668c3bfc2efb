"""`fabrictune fleet export-scenario`: what was collected as a scenario of `ecmp` and `sim`."""

from pathlib import Path

import click

from fabrictune.cli.framework.options import json_option
from fabrictune.cli.framework.output import print_json, print_lines


@click.command("export-scenario")
@click.argument("collection", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=Path("runs/fleet-scenario"),
    show_default=True,
    help="Folder of the scenario, its fabric and the switches' files.",
)
@json_option
def export_scenario(collection: Path, out: Path, as_json: bool) -> int:
    """Draft a scenario of what `fleet collect` wrote: cabling and QoS of its switches, DSCPs of its NICs.

    Traffic and law are yours to say. The fabric is that of the switches' configurations, as `topo import --with-qos`
    reads them. The line for `rdma timers` has the shortest timers of the hosts.

    \b
    Example:
      fabrictune fleet export-scenario runs/fleet --out mine
      fabrictune ecmp analyze mine/scenario.yaml
    """
    from fabrictune.fleet.collect.collection import read_collection
    from fabrictune.scenario.fleet_export import check_export_place
    from fabrictune.scenario.fleet_export import export_scenario as write_scenario

    check_export_place(out)
    exported = write_scenario(read_collection(collection), out)
    timers = exported.timers
    words = f"--timeout {timers.timeout_exponent} --retries {timers.retries}" if timers else ""
    if as_json:
        print_json({"scenario": str(exported.scenario), "timers": words, "notes": list(exported.notes)})
        return 0
    print_lines([f"scenario: {exported.scenario}", *(f"note: {note}" for note in exported.notes)])
    if words:
        print_lines([f"timers: fabrictune rdma timers predict {words}"])
    return 0
