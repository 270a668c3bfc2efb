"""`fabrictune fleet timeouts`: from the adapter to the scheduler, who waits how long."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from fabrictune.cli.fleet.nodes import (
    NodeOptions,
    collect_nodes,
    node_options,
    print_states,
    show_plan,
    states_json,
)
from fabrictune.cli.framework.options import COULD_NOT_COLLECT, json_option, read_duration, read_durations
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.foundation.units import PS_PER_S, format_duration

if TYPE_CHECKING:
    from fabrictune.fleet.timeouts.ladder import Rung

WIDTH = 32  # of a bar
FOUND = 1


@click.command()
@node_options
@click.option(
    "--profile",
    default="connectx-6",
    show_default=True,
    metavar="NAME|FILE",
    help="Adapter profile of retransmission timers.",
)
@click.option(
    "--group-timeout",
    "group_ps",
    callback=read_duration,
    metavar="DURATION",
    help="Timeout of torch process groups.  [default: 10 min, torch's for NCCL]",
)
@click.option(
    "--flap",
    "flaps_ps",
    callback=read_durations,
    multiple=True,
    metavar="DURATION",
    help="Duration of a link flap to say what ends the job in; repeatable.",
)
@json_option
def timeouts(
    nodes: NodeOptions,
    profile: str,
    group_ps: int | None,
    flaps_ps: tuple[int, ...],
    as_json: bool,
) -> int:
    """Put the timeouts of a cluster on one ladder, and say which stand in the wrong order.

    BFD, PFC watchdog, queue pairs, BGP, process groups, torch's watchdog and Slurm, from what the nodes are set to; a
    default that was assumed is marked. `rdma timers predict` has more on queue pairs. The exit code is 1 where two
    layers stand in the wrong order.

    \b
    Example:
      fabrictune fleet timeouts --from-files runs/fleet --flap 5s --flap 60s
    """
    from fabrictune.fleet.collect.questions import SETTINGS
    from fabrictune.fleet.facts.derived import fleet_facts
    from fabrictune.fleet.timeouts.ladder import ACTIONS, build_ladder, ended_by, find_disorders
    from fabrictune.rdma_bench.timers.profile_files import find_profile

    if show_plan(nodes, SETTINGS, as_json=as_json):
        return 0
    known = find_profile(profile, where="--profile")
    collection = collect_nodes(nodes, SETTINGS, is_quiet=as_json)
    group_s = None if group_ps is None else group_ps / PS_PER_S
    rungs = build_ladder(fleet_facts(collection.readings), known, group_timeout_s=group_s)
    disorders = list(find_disorders(rungs))
    flaps = [(flap_ps, ended_by(rungs, flap_ps / PS_PER_S)) for flap_ps in flaps_ps]
    if as_json:
        print_json(
            {
                **states_json(collection),
                "rungs": [asdict(rung) for rung in rungs],
                "disorders": [
                    {"longer": one.longer.layer, "shorter": one.shorter.layer, "reason": one.reason}
                    for one in disorders
                ],
                "flaps": [{"flap_s": ps / PS_PER_S, "ended_by": rung and rung.layer} for ps, rung in flaps],
            }
        )
    else:
        print_states(collection)
        print_table(
            ("layer", "after", "", "what it does", "source"),
            [
                (
                    rung.layer,
                    format_duration(rung.time_s * PS_PER_S) if math.isfinite(rung.time_s) else "never",
                    _bar(rung, rungs),
                    ACTIONS[rung.layer],
                    ", ".join(filter(None, (rung.where, rung.assumed and f"assumed: {rung.assumed}"))),
                )
                for rung in rungs
            ],
        )
        for one in disorders:
            print_lines([f"wrong order: {one.longer.layer} should be longer than {one.shorter.layer}: {one.reason}"])
        for flap_ps, ending in flaps:
            end = f"ended by: {ending.layer}" if ending else "the job goes on"
            print_lines([f"link down for {format_duration(flap_ps)}: {end}"])
    if collection.missing:
        return COULD_NOT_COLLECT
    return FOUND if disorders else 0


def _bar(rung: "Rung", rungs: "tuple[Rung, ...]") -> str:
    """Return a bar as long as the logarithm of a time among those of the ladder."""
    finite = [one.time_s for one in rungs if math.isfinite(one.time_s) and one.time_s > 0]
    if rung.time_s <= 0 or not math.isfinite(rung.time_s):
        return ""
    least, most = math.log(min(finite)), math.log(max(finite))
    share = (math.log(rung.time_s) - least) / (most - least) if most > least else 1.0
    return "#" * (1 + round(share * (WIDTH - 1)))
