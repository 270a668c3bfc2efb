"""`fabrictune fleet collect`: what the nodes of a cluster are set to, read and kept."""

from pathlib import Path

import click

from fabrictune.cli.fleet.nodes import (
    NodeOptions,
    collect_nodes,
    node_options,
    print_states,
    show_plan,
    states_json,
)
from fabrictune.cli.framework.options import COULD_NOT_COLLECT, INTERRUPTED, json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines


@click.command()
@node_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=Path("runs/fleet"),
    show_default=True,
    help="Folder of the collection: one JSON file a node.",
)
@quiet_option
@json_option
def collect(nodes: NodeOptions, out: Path, quiet: bool, as_json: bool) -> int:
    """Read what hosts and switches are set to, and keep it for `fleet audit` and others.

    HOSTS are inventories (a host file, ssh_config, Ansible, Nornir, containerlab) or names (`gpu[01-64],leaf1`,
    `admin@gpu1:2222`). One read-only script runs on each node, by its python3 or else by its shell; nothing is
    installed, written or changed there. Unknown and changed host keys are refused. Nodes that cannot be read are named,
    and the exit code is 3.

    \b
    Example:
      fabrictune fleet collect hosts.txt --dry-run
      fabrictune fleet collect 'gpu[01-64],leaf[1-4]' --out runs/cluster
      fabrictune fleet collect --print-script > read.sh    # on a node: sh read.sh > NODE.json
    """
    from fabrictune.fleet.collect.collection import check_collection_place, write_collection
    from fabrictune.fleet.collect.questions import SETTINGS

    if show_plan(nodes, SETTINGS, as_json=as_json):
        return 0
    check_collection_place(out)
    collection = collect_nodes(nodes, SETTINGS, is_quiet=quiet or as_json)
    place = write_collection(collection, out)
    if as_json:
        print_json({"collection": str(place), **states_json(collection)})
    else:
        if not quiet or collection.missing:
            print_states(collection)
        print_lines([f"collection: {place}"])
    if collection.is_partial:
        return INTERRUPTED
    return COULD_NOT_COLLECT if collection.missing else 0
