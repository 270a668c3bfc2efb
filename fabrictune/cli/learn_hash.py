"""`fabrictune ecmp learn-hash`: what a switch hashes, from next hops that were observed."""

import csv
from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictune.cli.framework.options import json_option
from fabrictune.cli.framework.output import print_json, print_lines
from fabrictune.foundation.errors import InputError, Mistake, nearest_name, quote
from fabrictune.foundation.output_files import check_output_file, replaced_file

if TYPE_CHECKING:
    from fabrictune.topology.hash_learning.linear_choice import LinearChoice
    from fabrictune.topology.hash_learning.report import LearnedGroup
    from fabrictune.topology.hash_learning.source_ports import PlannedPort


@click.command("learn-hash")
@click.argument("observations", type=click.Path(path_type=Path))
@click.option(
    "--flows", type=click.Path(path_type=Path), help="CSV of flows (source, destination) to plan source ports for."
)
@click.option(
    "--ports",
    type=click.Path(path_type=Path),
    default=Path("source_ports.csv"),
    show_default=True,
    help="CSV file for the planned ports.",
)
@click.option("--switch", help="Switch to plan for, where OBSERVATIONS has several.")
@json_option
def learn_hash(observations: Path, flows: Path | None, ports: Path, switch: str | None, as_json: bool) -> int:
    """Find fields, function and polynomial of a switch's hash from the next hops in OBSERVATIONS.

    OBSERVATIONS is a record of `topo probe`, or a CSV file with the columns source, destination, source_port, next_hop
    and, if there are several, switch. Instead of a next hop it may have the port whose counter a flow's packets raised.
    CRC, exclusive-or and Toeplitz hashes are found; others are reported as not linear (exit 1).

    \b
    Example:
      fabrictune topo probe --target 10.0.3.1 --rate 200 --source-ports 400 --out runs/paths
      fabrictune ecmp learn-hash runs/paths
      fabrictune ecmp learn-hash counters.csv --flows flows.csv --ports source_ports.csv
    """
    from fabrictune.topology.hash_learning.observations import read_choices, read_flows
    from fabrictune.topology.hash_learning.report import learn_hashes
    from fabrictune.topology.hash_learning.source_ports import plan_ports

    choices, num_left_out = read_choices(observations)
    groups = learn_hashes(choices)
    if not groups:
        raise InputError(
            Mistake(
                where=str(observations),
                found="no switch with two next hops",
                next_step="observe flows with more source ports, through a switch with equal-cost next hops",
            )
        )
    planned: Sequence[PlannedPort] = ()
    if flows:
        check_output_file(ports)
        planned = plan_ports(_plannable(groups, switch, observations), read_flows(flows))
        with replaced_file(ports) as half:
            _write_ports(half, planned)
    if as_json:
        shown = {"groups": [group.as_json() for group in groups], "num_left_out": num_left_out}
        print_json({**shown, **({"ports": str(ports), **_plan_json(planned)} if flows else {})})
    else:
        for group in groups:
            print_lines(group.lines)
        print_lines([f"left out, next hop unknown: {num_left_out}"] if num_left_out else [])
        print_lines(_plan_lines(planned, ports) if flows else [])
    return 0 if all(group.linear_choice for group in groups) else 1


def _plannable(groups: "Sequence[LearnedGroup]", switch: str | None, path: Path) -> "LinearChoice":
    """Return the learned choice to plan with; raises InputError."""
    names = list(dict.fromkeys(group.group.switch for group in groups))
    if switch is not None and switch not in names:
        raise InputError(
            Mistake(
                where="--switch",
                found=f"no switch {quote(switch)} in {path}",
                allowed=", ".join(names),
                nearest=nearest_name(switch, names),
            )
        )
    known = [group.linear_choice for group in groups if switch in (None, group.group.switch) and group.linear_choice]
    if len(known) != 1:
        raise InputError(
            Mistake(
                where="--flows",
                found=f"{len(known)} groups of next hops whose hash is known",
                allowed="one to plan for",
                next_step="choose one with --switch" if known else "observe more flows",
            )
        )
    return known[0]


def _write_ports(path: Path, planned: "Sequence[PlannedPort]") -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("source", "destination", "destination_qp", "source_port", "next_hop"))
        for port in planned:
            header = port.header
            ends = (str(IPv4Address(address)) for address in (header.source_ipv4, header.destination_ipv4))
            writer.writerow((*ends, header.destination_qpn, header.source_port, port.next_hop))


def _loads(planned: "Sequence[PlannedPort]") -> Counter[str]:
    return Counter(port.next_hop for port in planned if port.next_hop)


def _plan_json(planned: "Sequence[PlannedPort]") -> dict[str, object]:
    return {
        "num_flows": len(planned),
        "num_unplanned": sum(not port.next_hop for port in planned),
        "flows_by_next_hop": dict(sorted(_loads(planned).items())),
    }


def _plan_lines(planned: "Sequence[PlannedPort]", path: Path) -> list[str]:
    loads, num_unplanned = _loads(planned), sum(not port.next_hop for port in planned)
    spread = f"{min(loads.values())} to {max(loads.values())} flows on each next hop" if loads else "none planned"
    unplanned = f"; {num_unplanned} keep their port: addresses unlike those observed" if num_unplanned else ""
    return [f"source ports of {len(planned)} flows: {spread}{unplanned}", f"file: {path}"]
