"""`fabrictune topo probe`: ask a live network which equal-cost paths it has, and which source port takes which."""

import sys
import time
from dataclasses import replace
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.findings import conclude, judged_json, print_findings
from fabrictune.cli.framework.options import (
    fail_on_option,
    is_code_trusted,
    json_option,
    quiet_option,
    read_duration,
    trust_code_option,
)
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import output_folder, print_answer, record_json, with_command
from fabrictune.foundation.errors import InputError

if TYPE_CHECKING:
    from fabrictune.topology.probing.comparison import Model, PathComparison
    from fabrictune.topology.probing.plan import ProbePlan
    from fabrictune.topology.probing.report import ProbeReport


def _read_addresses(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[int, ...]:
    """Return dotted addresses as numbers; a name would need a look-up, which sends packets too."""
    try:
        return tuple(int(IPv4Address(text)) for text in texts)
    except AddressValueError as error:
        raise click.BadParameter(f"no IPv4 address: {error}", context, option) from None


@click.command()
@click.option(
    "--target",
    "targets",
    callback=_read_addresses,
    metavar="IPV4",
    multiple=True,
    required=True,
    help="Address to probe; repeatable.",
)
@click.option(
    "--rate", "rate_per_s", type=int, metavar="N", required=True, help="Maximum number of probes per second, in total."
)
@click.option(
    "--source-ports",
    "num_source_ports",
    type=int,
    default=64,
    show_default=True,
    help="Number of UDP source ports, one flow each.",
)
@click.option("--first-source-port", type=int, default=49152, show_default=True, help="Lowest UDP source port.")
@click.option("--max-hops", type=int, default=8, show_default=True, help="Maximum TTL.")
@click.option(
    "--attempts", type=int, default=3, show_default=True, help="Number of probes to a hop that does not answer."
)
@click.option(
    "--timeout",
    "timeout_ps",
    callback=read_duration,
    metavar="DURATION",
    default="500 ms",
    show_default=True,
    help="Waiting time for late answers.",
)
@click.option("--dscp", type=int, default=0, show_default=True, help="DSCP of the probes.")
@click.option(
    "--qpn",
    "destination_qpn",
    type=int,
    default=0xFFFFFE,
    show_default=True,
    help="Destination queue pair number of the probes.",
)
@click.option(
    "--names",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Host names of addresses, in the format of /etc/hosts.",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="SCENARIO",
    help="Scenario with the fabric and hash to compare with.",
)
@trust_code_option
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Output directory of the record.")
@click.option("--dry-run", is_flag=True, help="Print the probes without sending any.")
@fail_on_option
@quiet_option
@json_option
@click.pass_context
def probe(
    context: click.Context,
    /,
    names: Path | None,
    against: Path | None,
    out: Path | None,
    dry_run: bool,
    fail_on: str,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Find the equal-cost paths to live targets, by probes from many UDP source ports.

    Sends small UDP packets to port 4791 of the targets and of nobody else, with increasing TTL, and listens for
    the ICMP messages of the hops. Needs CAP_NET_RAW, and permission of the network owner. What is going to be
    sent is said on stderr first.

    \b
    Example:
      fabrictune topo probe --target 10.0.3.1 --rate 200 --dry-run
      fabrictune topo probe --target 10.0.3.1 --rate 200 --source-ports 256 --names hosts --out runs/paths
      fabrictune topo probe --target 10.0.3.1 --rate 200 --names hosts --against fabric.yaml --json
    """
    from fabrictune.topology.probing.discovery import discover
    from fabrictune.topology.probing.names import read_names
    from fabrictune.topology.probing.report import report_probing
    from fabrictune.topology.probing.sockets import open_raw_sockets

    started, place = time.perf_counter(), output_folder(out) if out else None
    plan = _plan(context, settings)
    known_names = read_names(names) if names else {}
    model = _model(against, plan) if against else None
    if dry_run:
        print(_announcement(plan, "would send"), file=sys.stderr)
        if as_json:
            print_json(_bounds(plan))
        return 0
    with open_raw_sockets() as wire:
        print(_announcement(plan, "sending"), file=sys.stderr)
        with progress_bar("probing", is_quiet=quiet or as_json) as progress:
            discovery = discover(plan, wire, progress)
    report = report_probing(discovery, known_names, model)
    record = with_command(report.record(started=started))
    written = (record, record.write(place)) if place else None
    if as_json:
        head = record_json(*written) if written else {}
        print_json({**head, **report.as_json(), **judged_json(report)})
        return conclude(fail_on, report)
    if not quiet:
        _print(report)
    print_findings(report)
    if written:
        print_answer(*written, quiet=quiet)
    return conclude(fail_on, report)


def _plan(context: click.Context, settings: dict[str, Any]) -> "ProbePlan":
    """Return the plan; a mistake in a setting names its option."""
    from fabrictune.topology.probing.plan import ProbePlan

    try:
        return ProbePlan(**settings)
    except InputError as error:
        option = {one.name: f"{context.command_path}: {one.opts[0]}" for one in context.command.params}
        raise InputError(*(replace(one, where=option.get(one.where, one.where)) for one in error.mistakes)) from None


def _model(scenario: Path, plan: "ProbePlan") -> "Model":
    """Return the scenario's model; raises InputError, before anything is sent, if it lacks a target."""
    from fabrictune.scenario.composition import compose_fabric
    from fabrictune.scenario.files import load_scenario
    from fabrictune.topology.probing.comparison import Model

    checked = load_scenario(scenario, trust_code=is_code_trusted())
    model = Model(compose_fabric(checked), checked.routing, plan.destination_qpn)
    for target in plan.targets:
        model.find_nic(target)
    return model


def _announcement(plan: "ProbePlan", verb: str) -> str:
    from fabrictune.topology.probing.packets import PROBE_BYTES

    targets = ", ".join(str(IPv4Address(target)) for target in plan.targets)
    return (
        f"{verb} at most {plan.max_probes:,} UDP packets of {PROBE_BYTES} bytes to port 4791 of {targets}, "
        f"at most {plan.rate_per_s:,} a second, for at most {plan.max_duration_s:.0f} s"
    )


def _bounds(plan: "ProbePlan") -> dict[str, Any]:
    return {
        "targets": [str(IPv4Address(target)) for target in plan.targets],
        "max_probes": plan.max_probes,
        "max_rate_per_s": plan.rate_per_s,
        "max_duration_s": plan.max_duration_s,
    }


def _print(report: "ProbeReport") -> None:
    from fabrictune.topology.probing.names import hop_text

    print_lines([f"{report.num_probes} probes and {report.num_replies} replies in {report.duration_s:.1f} s"])
    compared = {comparison.target_ipv4: comparison for comparison in report.comparisons}
    for target in report.targets:
        ends = f"{IPv4Address(target.source_ipv4)} to {IPv4Address(target.target_ipv4)}"
        print_lines([f"{ends}: {len(target.paths)} paths of {target.num_source_ports} source ports"])
        rows = [
            (
                str(len(path.source_ports)),
                f"{len(path.source_ports) / target.num_source_ports:.0%}",
                path.ending.value,
                " > ".join(hop_text(hop, report.names) for hop in path.hops),
            )
            for path in target.paths
        ]
        print_table(("source ports", "share", "ending", "path"), rows, indent=2)
        print_lines([f"  a path not seen carries at most {target.unseen_fraction:.1%} of all source ports (95 % sure)"])
        if target.target_ipv4 in compared:
            print_lines([f"  {_verdict(compared[target.target_ipv4])}"])


def _verdict(comparison: "PathComparison") -> str:
    return (
        f"the model has {len(comparison.predicted)} paths, {len(comparison.missing)} of them missing here; "
        f"{len(comparison.unpredicted)} paths here are not in it; "
        f"{comparison.num_agreeing} of {comparison.num_source_ports} source ports take the path predicted"
    )
