"""`fabrictune validate testbed`: the commands of a testbed's life."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.options import json_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.wrapped_commands import run_wrapped, wrapped_command
from fabrictune.cli.validate.testbed.faults import heal, links, plant
from fabrictune.cli.validate.testbed.sources import fabric_options, name_option
from fabrictune.cli.validate.testbed.train import train

if TYPE_CHECKING:
    from fabrictune.testbed.testbed import Testbed
    from fabrictune.topology.fabric import Fabric

testbed = CommandGroup(
    name="testbed", help="Build a miniature cluster on this machine: hosts, switches and links in namespaces."
)


@testbed.command()
@fabric_options
@json_option
def up(fabric: "Fabric", name: str, no_ssh: bool, out: Path, as_json: bool) -> None:
    """Build a testbed of FABRIC, a topology file or a scenario, which stays until `down`. Needs root.

    Each host and each switch is a network namespace, each link a veth pair shaped to its rate, and Linux chooses among
    equal paths by the 5-tuple. Nothing outside these namespaces is changed; `enter` runs commands inside. Each host has
    an SSH server with keys made for this testbed.

    \b
    Example:
      sudo fabrictune validate testbed up --hosts 8 --rails 2 --rate "50 Mbps"
      sudo fabrictune validate testbed up scenarios/allreduce.yaml --name lab
      sudo fabrictune validate testbed enter -- fabrictune fleet audit runs/testbed/hosts.txt
    """
    from fabrictune.testbed.testbed import bring_up

    _show_made(bring_up(fabric, name, out, with_ssh=not no_ssh), as_json=as_json)


@testbed.command()
@fabric_options
@click.pass_context
def run(context: click.Context, fabric: "Fabric", name: str, no_ssh: bool, out: Path) -> int:
    """Build a testbed, run a command in it, and take it down whatever happens: FABRIC, then `--` and the command.

    The command runs where the hosts are reached by SSH, as with `enter`; its exit code is this command's.

    \b
    Example:
      sudo fabrictune validate testbed run --hosts 4 -- fabrictune fleet audit runs/testbed/hosts.txt ...
    """
    from fabrictune.testbed.testbed import temporary_testbed

    command = wrapped_command(context, next_step="FABRIC, then -- CMD")
    with temporary_testbed(fabric, name, out, with_ssh=not no_ssh) as made:
        return run_wrapped(command, through=made.command())


@testbed.command()
@click.argument("words", nargs=-1, metavar="-- CMD...")
@name_option
@click.option("--host", metavar="HOST", help="In the network of a host or switch; without it, beside them all.")
@click.pass_context
def enter(context: click.Context, words: tuple[str, ...], name: str, host: str | None) -> int:
    """Run a command inside a testbed, where the hosts are reached by SSH, or in the network of one node.

    \b
    Example:
      sudo fabrictune validate testbed enter -- ssh -F runs/testbed/ssh_config host0
      sudo fabrictune validate testbed enter --host tor0 -- tc -s qdisc
    """
    from fabrictune.testbed.testbed import find_testbed
    from fabrictune.topology.lookup import find_node

    command = wrapped_command(context, next_step="-- CMD")
    made = find_testbed(name)
    if host is None:
        return run_wrapped(command, through=made.command())
    find_node(made.fabric, host, where="--host")
    return run_wrapped(command, through=made.host_command(host))


@testbed.command()
@name_option
@json_option
def status(name: str, as_json: bool) -> None:
    """Show a testbed: hosts, how to reach them, and what its links are set to.

    \b
    Example:
      sudo fabrictune validate testbed status --name lab --json
    """
    from fabrictune.testbed.testbed import find_testbed

    _show_made(find_testbed(name), as_json=as_json)


@testbed.command()
@name_option
@click.option("--all", "is_all", is_flag=True, help="Every testbed of this machine.")
@json_option
def down(name: str, is_all: bool, as_json: bool) -> None:
    """End every process of a testbed and remove its namespaces, also what a killed command left.

    \b
    Example:
      sudo fabrictune validate testbed down --name lab
    """
    from fabrictune.foundation.network_namespaces import require_namespaces
    from fabrictune.testbed.testbed import list_testbeds, take_down

    require_namespaces()
    removed = {one: take_down(one) for one in (list_testbeds() if is_all else [name])}
    if as_json:
        print_json({"namespaces_removed": removed})
    else:
        print_lines(f"testbed {one}: {number} namespaces removed" for one, number in removed.items())
        print_lines([] if removed else ["no testbed"])


for command in (links, plant, heal, train):
    testbed.add_command(command)


def _show_made(made: "Testbed", *, as_json: bool) -> None:
    from fabrictune.foundation.units import format_rate

    fabric, reached = made.fabric, made.reached_by()
    hosts = made.interfaces()
    if as_json:
        rows = [
            {"name": host, "address": made.address(host), "interfaces": interfaces}
            for host, interfaces in hosts.items()
        ]
        paths = {what: str(path) for what, path in reached.items()}
        print_json(
            {"name": made.name, "fabric": str(made.fabric_file), **paths, "enter": made.command(), "hosts": rows}
        )
        return
    rates = sorted(set(fabric.port_rate_bps_P.tolist()))
    print_lines(
        [
            f"testbed {made.name}: {len(hosts)} hosts, {fabric.num_nodes - len(hosts)} switches, "
            f"{fabric.num_ports // 2} links of {' and '.join(map(format_rate, rates))}"
        ]
    )
    cells = [(host, made.address(host), ", ".join(interfaces)) for host, interfaces in hosts.items()]
    print_table(("host", "address", "interfaces"), cells, indent=2)
    print_lines([f"fabric: {made.fabric_file}", *(f"{what}: {path}" for what, path in reached.items())])
    print_lines([f"note: {note}" for note in fabric.notes])
    print_lines([f"next: fabrictune validate testbed enter --name {made.name} -- CMD"])
