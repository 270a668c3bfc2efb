"""`fabrictune ecmp`: which links the hash gives more flows than they carry, why, and what would help."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictune.cli.findings import exit_code, findings_json, print_findings
from fabrictune.cli.groups import Group
from fabrictune.cli.options import fail_on_option, json_option, out_option, quiet_option, scenario_argument
from fabrictune.cli.output import print_json, print_lines, print_table
from fabrictune.cli.progress import progress_bar

if TYPE_CHECKING:
    from topology.explaining import LinkExplanation

ecmp = Group(name="ecmp", help="Find the links on which flows collide, and what would help.")


@ecmp.command()
@scenario_argument
@out_option
@fail_on_option
@quiet_option
@json_option
def analyze(scenario: Path, out: Path | None, fail_on: str, quiet: bool, as_json: bool) -> int:
    """Name the links of SCENARIO that are asked for more than they carry, and the flows that meet there.

    All queue pairs are taken to send at once; no packet is simulated and no law is run.

    \b
    Example:
      fabrictune ecmp analyze scenarios/demo-interleaved.yaml
      fabrictune ecmp analyze my.yaml --fail-on warning --json
    """
    from fabrictune.scenario.analyzing import analyze_scenario, summarize_collisions
    from fabrictune.scenario.reading import load_scenario

    checked = load_scenario(scenario)
    with progress_bar(checked.name, is_quiet=quiet or as_json) as progress:
        record = analyze_scenario(checked, progress)
    directory = record.write(out or Path("runs") / f"{checked.name}-ecmp")
    summary = summarize_collisions(record)
    if as_json:
        print_json({"record": str(directory), **summary.as_json(), "findings": findings_json(record.findings)})
        return exit_code(record.findings, fail_on)
    if not quiet:
        print_lines([checked.headline, *summary.lines])
    print_findings(record.findings)
    print_lines([f"record: {directory}"])
    return exit_code(record.findings, fail_on)


@ecmp.command()
@scenario_argument
@click.argument("link", metavar="[LINK]", required=False)
@quiet_option
@json_option
def explain(scenario: Path, link: str | None, quiet: bool, as_json: bool) -> None:
    """List the flows of SCENARIO that cross LINK: ranks, rails, queue pairs, source ports, and each hop's choice.

    LINK is the port that packets leave through, `NODE:PORT`; without it the link asked for most is explained.

    \b
    Example:
      fabrictune ecmp explain scenarios/demo-interleaved.yaml tor0-5:up0
      fabrictune ecmp explain my.yaml --json
    """
    from fabrictune.scenario.explaining import explain_scenario_link
    from fabrictune.scenario.reading import load_scenario

    checked = load_scenario(scenario)
    with progress_bar(checked.name, is_quiet=quiet or as_json) as progress:
        explanation = explain_scenario_link(checked, link, progress)
    if as_json:
        print_json(asdict(explanation))
    else:
        _print_explanation(explanation)


def _print_explanation(explanation: "LinkExplanation") -> None:
    from foundation.units import format_rate

    print_lines(
        [
            f"{explanation.link}: {len(explanation.flows)} flows ask for {format_rate(explanation.demand_bps)} of "
            f"{format_rate(explanation.rate_bps)}, {explanation.load_fraction:.2f} times what it carries"
        ]
    )
    print_table(
        ("qp", "from", "to", "ranks", "rail", "qpn", "to qpn", "source port", "gets", "choices on the way"),
        [
            (
                str(flow.queue_pair),
                flow.source,
                flow.destination,
                f"{_ranks(flow.source_ranks)} > {_ranks(flow.destination_ranks)}",
                "-" if flow.source_rail < 0 else str(flow.source_rail),
                f"{flow.source_qpn:#x}",
                f"{flow.destination_qpn:#x}",
                str(flow.source_port),
                format_rate(flow.rate_bps),
                ", ".join(
                    f"{hop.port} ({hop.choice + 1} of {hop.num_choices})" for hop in flow.hops if hop.num_choices > 1
                ),
            )
            for flow in explanation.flows
        ],
    )


def _ranks(ranks: Sequence[int]) -> str:
    return ",".join(map(str, ranks)) or "-"
