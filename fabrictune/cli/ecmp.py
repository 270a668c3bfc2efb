"""`fabrictune ecmp`: which links the hash gives more flows than they carry, why, and what would help."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictune.cli.framework.estimates import (
    print_distribution,
    print_effects,
    print_gains,
    print_outcomes,
    print_steps,
)
from fabrictune.cli.framework.findings import conclude, judged_json, print_findings
from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.options import (
    MAX_SEEDS,
    fail_on_option,
    is_code_trusted,
    json_option,
    out_option,
    quiet_option,
    scenario_argument,
    seeds_option,
)
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar
from fabrictune.cli.framework.records import output_folder, print_answer, record_json, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.cli.learn_hash import learn_hash
from fabrictune.foundation.run_tables.rows import tables_to_rows, to_rows

if TYPE_CHECKING:
    from fabrictune.topology.ecmp.link_report import LinkExplanation

ecmp = CommandGroup(name="ecmp", help="Find the links on which flows collide, and what would help.")
ecmp.add_command(learn_hash)


@ecmp.command()
@scenario_argument
@click.option(
    "--seeds",
    type=click.IntRange(2, MAX_SEEDS),
    help="Distribution over unknown hash seeds: exact, or from a sample of this size.",
)
@out_option
@fail_on_option
@quiet_option
@json_option
def analyze(scenario: Path, seeds: int | None, out: Path | None, fail_on: str, quiet: bool, as_json: bool) -> int:
    """List the oversubscribed links of SCENARIO and the flows that collide there.

    All queue pairs are taken to send at once; no packet is simulated and no law is run.

    \b
    Example:
      fabrictune ecmp analyze scenarios/demo-interleaved.yaml
      fabrictune ecmp analyze my.yaml --seeds 1000 --fail-on warning --json
    """
    from fabrictune.scenario.files import load_scenario
    from fabrictune.studies.collisions import analyze_scenario, summarize_collisions

    checked = load_scenario(scenario, trust_code=is_code_trusted())
    place = output_folder(out or Path("runs") / f"{checked.name}-ecmp", checked)
    with progress_bar(checked.name, is_quiet=quiet or as_json) as progress:
        record = analyze_scenario(checked, progress, num_seeds=seeds, rules=site_rules())
    directory = with_command(record).write(place)
    summary = summarize_collisions(record)
    over_seeds = record.tables.get("seeds")
    if as_json:
        distribution = {"over_seeds": to_rows(over_seeds)[0]} if over_seeds is not None else {}
        print_json({**record_json(record, directory), **summary.as_json(), **distribution, **judged_json(record)})
        return conclude(fail_on, record)
    if not quiet:
        print_lines([checked.headline, *summary.lines])
    if over_seeds is not None:
        print_distribution(over_seeds)
    print_findings(record)
    print_answer(record, directory, quiet=quiet)
    return conclude(fail_on, record)


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
    from fabrictune.scenario.files import load_scenario
    from fabrictune.studies.link_report import explain_scenario_link

    checked = load_scenario(scenario, trust_code=is_code_trusted())
    with progress_bar(checked.name, is_quiet=quiet or as_json) as progress:
        explanation = explain_scenario_link(checked, link, progress)
    if as_json:
        print_json(asdict(explanation))
    else:
        _print_explanation(explanation)


@ecmp.command()
@scenario_argument
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Variant with other settings, separated by `;`; repeatable.",
)
@click.option("--fail", "failures", multiple=True, metavar="NAME", help="Variant without a switch or link; repeatable.")
@seeds_option
@out_option
@quiet_option
@json_option
def whatif(
    scenario: Path,
    settings: tuple[str, ...],
    failures: tuple[str, ...],
    seeds: int,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare SCENARIO with variants of it, each over many hash seeds: its own `whatif` list, and those named here.

    A random placement is drawn anew for every seed.

    \b
    Example:
      fabrictune ecmp whatif scenarios/demo-interleaved.yaml --set traffic.placement=contiguous --fail agg0-0
      fabrictune ecmp whatif my.yaml --set "fabric.uplink_rate=200 Gbps; fabric.downlink_split=1" --seeds 1000 --json
    """
    from fabrictune.scenario.files import load_scenario
    from fabrictune.studies.whatif import compare, variants_from

    checked = load_scenario(scenario, trust_code=is_code_trusted())
    place = output_folder(out or Path("runs") / f"{checked.name}-whatif", checked)
    more = variants_from(settings, failures)
    with progress_bar(checked.name, is_quiet=quiet or as_json) as progress:
        record = compare(checked, more, num_seeds=seeds, progress=progress)
    directory = with_command(record).write(place)
    variants = record.tables["variants"]
    if as_json:
        print_json({**record_json(record, directory), "variants": to_rows(variants)})
        return
    print_lines([checked.headline])
    print_outcomes("variant", variants, has_legend=not quiet)
    print_answer(record, directory, quiet=quiet)


@ecmp.command()
@scenario_argument
@seeds_option
@out_option
@quiet_option
@json_option
def factorial(scenario: Path, seeds: int, out: Path | None, quiet: bool, as_json: bool) -> None:
    """Measure all combinations of SCENARIO's `factors`, and the effect of each factor and of factors together.

    \b
    Example:
      fabrictune ecmp factorial scenarios/megascale-three-means.yaml --seeds 100
    """
    from fabrictune.scenario.files import load_scenario
    from fabrictune.studies.factorial import run_factorial

    checked = load_scenario(scenario, trust_code=is_code_trusted())
    place = output_folder(out or Path("runs") / f"{checked.name}-factorial", checked)
    with progress_bar(checked.name, is_quiet=quiet or as_json) as progress:
        record = run_factorial(checked, num_seeds=seeds, progress=progress)
    directory = with_command(record).write(place)
    if as_json:
        print_json({**record_json(record, directory), "seeds": seeds, **tables_to_rows(record.tables)})
        return
    print_lines([checked.headline])
    print_outcomes("design", record.tables["designs"], has_legend=not quiet)
    print_effects(record.tables["effects"])
    print_answer(record, directory, quiet=quiet)


@ecmp.command()
@scenario_argument
@click.option(
    "--seeds",
    type=click.IntRange(2, MAX_SEEDS),
    default=20,
    show_default=True,
    help="Number of hash seeds to evaluate each step on.",
)
@click.option("--keep-placement", is_flag=True, help="Keep the rank placement.")
@click.option("--simulate", is_flag=True, help="Run the scenario packet by packet, as it is and with the plan.")
@out_option
@quiet_option
@json_option
def plan(
    scenario: Path,
    seeds: int,
    keep_placement: bool,
    simulate: bool,
    out: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Propose what would make the flows of SCENARIO collide less, with the gain each step is expected to bring.

    Tries a rank-to-host placement, more queue pairs per connection, hash seeds for each tier, and UDP source ports. The
    record holds `placement.csv` (rank, host, gpu, nic), `source_ports.csv` (for mlx5dv_modify_qp_udp_sport), and
    `planned.yaml`, the scenario with both. --simulate prints the gain of every job, predicted and simulated.

    \b
    Example:
      fabrictune ecmp plan scenarios/demo-interleaved.yaml --out runs/plan
      fabrictune ecmp plan two-jobs.yaml --simulate
      fabrictune ecmp plan running-job.yaml --keep-placement --json
    """
    from fabrictune.scenario.files import load_scenario
    from fabrictune.studies.collision_plan import PLANNED, plan_scenario, write_plan
    from fabrictune.studies.plan_simulation import confirm

    checked = load_scenario(scenario, trust_code=is_code_trusted())
    place = output_folder(out or Path("runs") / f"{checked.name}-plan", checked)
    with progress_bar(checked.name, is_quiet=quiet or as_json) as progress:
        record = with_command(
            plan_scenario(checked, num_seeds=seeds, keeps_placement=keep_placement, progress=progress)
        )
    files = write_plan(record, place, checked)
    if simulate:
        with progress_bar(f"{checked.name}, simulated", is_quiet=quiet or as_json) as progress:
            gains = confirm(checked, load_scenario(place / PLANNED, trust_code=is_code_trusted()), progress=progress)
        record = replace(record, tables={**record.tables, "plan_gains": gains})
        write_plan(record, place, checked)
    steps = record.tables["steps"]
    if as_json:
        head = {**record_json(record, place), "files": [str(file) for file in files]}
        shown = {name: to_rows(record.tables[name]) for name in ("steps", "plan_gains") if name in record.tables}
        print_json({**head, "changes": record.run["changes"], **shown})
        return
    print_lines([checked.headline])
    print_steps(steps, has_legend=not quiet)
    if simulate:
        print_gains(gains, law=checked.law.name)
    print_lines(f"set {key}: {json.dumps(value)}" for key, value in record.run["changes"].items())
    print_lines(f"file: {file}" for file in files if file != place)
    print_answer(record, place, quiet=quiet)


def _print_explanation(explanation: "LinkExplanation") -> None:
    from fabrictune.foundation.units import format_rate

    print_lines(
        [
            f"{explanation.link}: {len(explanation.flows)} flows offer {format_rate(explanation.demand_bps)} on "
            f"{format_rate(explanation.rate_bps)}, {100 * explanation.load_fraction:.0f} % of the link rate"
        ]
    )
    has_parts = any(flow.part for flow in explanation.flows)
    headings = ("from", "to", "ranks", "rail", "qpn", "to qpn", "source port", "gets", "choices on the way")
    print_table(
        ("qp", *(("part",) if has_parts else ()), *headings),
        [
            (
                str(flow.queue_pair),
                *((flow.part,) if has_parts else ()),
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
