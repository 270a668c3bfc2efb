"""`fabrictune validate testbed train`: a training on a testbed, its steps and links' bytes beside what is planned."""

from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.train.recipes import read_recipe, recipe_argument, set_option
from fabrictune.cli.validate.testbed.sources import name_option

if TYPE_CHECKING:
    from fabrictune.topology.fabric import Fabric
    from fabrictune.validate.testbed_training import StepEvent, TestbedTraining

LEAST_SHARE = 0.02  # of the busiest link's bytes, for links that are shown


@click.command()
@recipe_argument
@set_option
@name_option
@quiet_option
@json_option
def train(recipe_name: str, settings: tuple[str, ...], name: str, quiet: bool, as_json: bool) -> None:
    """Train RECIPE on a testbed that is up, a rank on each host's first NIC; needs torch.

    Prints each step beside the network's part of it, and for every link its bytes beside those that the requests plan
    on the kernel's own paths, headers counted.

    \b
    Example:
      sudo fabrictune validate testbed up --hosts 8 --rate "40 Mbps"
      sudo fabrictune validate testbed train tiny --set num_steps=10
    """
    from fabrictune.scenario.assignments import parse_setting
    from fabrictune.testbed.testbed import find_testbed
    from fabrictune.trainer_probe.recipes.files import find_recipe
    from fabrictune.validate.testbed_training import train_on

    recipe, made = read_recipe(recipe_name, settings), find_testbed(name)

    def on_step(event: "StepEvent") -> None:
        if not (quiet or as_json):
            print_lines([f"step {event.step}: {event.seconds:.3f} s"])

    trained = train_on(made, recipe, find_recipe(recipe_name), dict(map(parse_setting, settings)), on_step=on_step)
    network_s, rows = trained.network_s(made.fabric.port_rate_bps_P), _rows(trained, made.fabric)
    if as_json:
        print_json({"step_s": trained.step_s, "network_s": network_s, "links": rows})
    else:
        _print(trained, network_s, rows)


def _rows(trained: "TestbedTraining", fabric: "Fabric") -> list[dict[str, Any]]:
    planned_P, sent_P = trained.planned_bytes_P(), trained.sent_bytes_P
    return [
        {
            "link": fabric.link_label(port),
            "sent_bytes": int(sent_P[port]),
            "planned_bytes": round(float(planned_P[port])),
        }
        for port in range(fabric.num_ports)
        if sent_P[port] > LEAST_SHARE * sent_P.max()
    ]


def _print(trained: "TestbedTraining", network_s: float, rows: list[dict[str, Any]]) -> None:
    from statistics import median

    from fabrictune.foundation.units import format_bytes

    cells = [
        (
            row["link"],
            format_bytes(row["sent_bytes"]),
            format_bytes(row["planned_bytes"]),
            f"{row['sent_bytes'] / row['planned_bytes'] - 1:+.1%}" if row["planned_bytes"] else "not planned",
        )
        for row in rows
    ]
    print_table(("link", "sent", "planned", "difference"), cells)
    print_lines(
        [
            f"median step {median(trained.step_s):.3f} s, of which the network needs {network_s:.3f} s "
            "(each collective's busiest link)",
            "note: connections made and closed, retransmissions and gloo's own headers are not planned",
        ]
    )
