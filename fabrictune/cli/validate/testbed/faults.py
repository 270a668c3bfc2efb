"""`fabrictune validate testbed links`, `plant` and `heal`: what the links carry, and faults to try a tool on."""

import time
from typing import TYPE_CHECKING

import click

from fabrictune.cli.framework.findings import conclude, judged_json, print_findings
from fabrictune.cli.framework.options import fail_on_option, json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.validate.testbed.sources import name_option

if TYPE_CHECKING:
    from fabrictune.testbed.links import LinkUse

FAULTS = ("slow", "loss", "flap")
_link_argument = click.argument("link", metavar="NODE:PORT")


@click.command()
@name_option
@click.option("--seconds", type=click.FloatRange(0.1), default=5.0, show_default=True, help="How long to look.")
@click.option(
    "--interval", "interval_s", type=click.FloatRange(0.02), default=0.2, show_default=True, help="Seconds of a window."
)
@fail_on_option
@quiet_option
@json_option
def links(name: str, seconds: float, interval_s: float, fail_on: str, quiet: bool, as_json: bool) -> int:
    """Show what each link of a testbed carries meanwhile, and name those that are slow, lossy or went down.

    \b
    Example:
      sudo fabrictune validate testbed links --seconds 10
    """
    from fabrictune.testbed.links import check_links, link_use
    from fabrictune.testbed.testbed import find_testbed
    from fabrictune.testbed.watching import watch_links

    made = find_testbed(name)
    with progress_bar("counting", is_quiet=quiet or as_json) as progress:
        readings = watch_links(made.built, duration_s=seconds, interval_s=interval_s, progress=progress)
    use = link_use(made.fabric, readings)
    report = check_links(use)
    if as_json:
        print_json({"seconds": use.duration_s, "links": _rows(use), **judged_json(report)})
    else:
        if not quiet:
            _print(use)
        print_findings(report)
    return conclude(fail_on, report)


@click.command()
@click.argument("fault", type=click.Choice(FAULTS))
@_link_argument
@name_option
@click.option("--rate", default="50 %", show_default=True, help="Of a slow link: share of the rate that it keeps.")
@click.option("--loss", default="1 %", show_default=True, help="Of a lossy link: share of packets that are lost.")
@click.option(
    "--down", "down_s", type=click.FloatRange(0.0, 3600.0), default=0.5, show_default=True, help="Seconds of a flap."
)
def plant(fault: str, link: str, name: str, rate: str, loss: str, down_s: float) -> None:
    """Let a link, in the direction out of NODE:PORT, be slow or lossy until `heal`, or go down and up once.

    \b
    Example:
      sudo fabrictune validate testbed plant slow tor0:up1 --rate "20 %"
      sudo fabrictune validate testbed plant flap host3:nic0 --down 2
    """
    from fabrictune.foundation.units import parse_fraction
    from fabrictune.testbed.shaping import change_rate, discard, set_link
    from fabrictune.testbed.testbed import find_testbed
    from fabrictune.topology.lookup import find_port

    made = find_testbed(name)
    port = find_port(made.fabric, link, where="NODE:PORT")
    if fault == "slow":
        kept = parse_fraction(rate, where="--rate")
        change_rate(made.built, port, max(round(made.fabric.port_rate_bps_P[port] * kept), 1))
    elif fault == "loss":
        discard(made.built, port, parse_fraction(loss, where="--loss"))
    else:
        set_link(made.built, port, "down")
        try:
            time.sleep(down_s)
        finally:
            set_link(made.built, port, "up")
    print_lines([f"{fault}: {made.fabric.link_label(port)}"])


@click.command()
@_link_argument
@name_option
def heal(link: str, name: str) -> None:
    """Let a link be as planned again.

    \b
    Example:
      sudo fabrictune validate testbed heal tor0:up1
    """
    from fabrictune.testbed.shaping import heal as heal_link
    from fabrictune.testbed.testbed import find_testbed
    from fabrictune.topology.lookup import find_port

    made = find_testbed(name)
    port = find_port(made.fabric, link, where="NODE:PORT")
    heal_link(made.built, port)
    print_lines([f"as planned: {made.fabric.link_label(port)}"])


def _rows(use: "LinkUse") -> list[dict[str, object]]:
    """Return a row for each direction of a link that carried anything or discarded."""
    fabric = use.fabric
    return [
        {
            "link": fabric.link_label(port),
            "sent_bytes": int(use.sent_bytes_P[port]),
            "rate_bps": float(use.rate_bps_P[port]),
            "planned_bps": int(fabric.port_rate_bps_P[port]),
            "discarded_packets": int(use.discarded_P[port]),
            "queue_drops": int(use.queue_drops_P[port]),
        }
        for port in range(fabric.num_ports)
        if use.sent_bytes_P[port] or use.discarded_P[port]
    ]


def _print(use: "LinkUse") -> None:
    from fabrictune.foundation.units import format_bytes, format_fraction, format_rate

    fabric = use.fabric
    ports = [port for port in range(fabric.num_ports) if use.sent_bytes_P[port] or use.discarded_P[port]]
    cells = [
        (
            fabric.link_label(port),
            format_bytes(int(use.sent_bytes_P[port])),
            format_rate(float(use.rate_bps_P[port])),
            format_fraction(float(use.rate_bps_P[port] / fabric.port_rate_bps_P[port])),
            str(use.discarded_P[port]),
        )
        for port in ports
    ]
    print_table(("link", "sent", "mean rate", "of planned", "discarded"), cells)
    print_lines([f"{len(ports)} of {fabric.num_ports} link directions carried anything in {use.duration_s:.1f} s"])
