"""`fabrictune validate whatif`: what network is enough for a job."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fabrictune.cli.framework.options import (
    INTERRUPTED,
    fail_on_option,
    hardware_option,
    is_code_trusted,
    json_option,
    quiet_option,
    trust_code_option,
)
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.progress import progress_bar, say_on_terminal
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.train.recipes import read_recipe, set_option
from fabrictune.foundation.records import notes_of
from fabrictune.foundation.run_tables.rows import tables_to_rows, to_rows

if TYPE_CHECKING:
    from fabrictune.foundation.records import RunRecord
    from fabrictune.hardware.profile import HardwareProfile

MAX_SHOWN = 36  # variants
MAX_WORKERS = 4096
MAX_REFUSALS = 6
MAX_LINE = 160  # characters


@click.command()
@click.argument("job", metavar="RECIPE|SCENARIO")
@set_option
@hardware_option()
@click.option(
    "--vary",
    "texts",
    multiple=True,
    metavar="KEY=VALUE;VALUE",
    help="Key of the scenario to vary instead of those of the network; repeatable.",
)
@click.option("--seeds", type=click.IntRange(1, 1000), default=3, show_default=True, help="Number of runs per variant.")
@click.option(
    "--workers",
    type=click.IntRange(1, MAX_WORKERS),
    default=os.cpu_count(),
    show_default="cores",
    help="Number of concurrent runs on this machine.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Output directory.  [default: runs/NAME-whatif]"
)
@click.option(
    "--plot",
    "figure",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Figure of the step over each thing whose values have an order: .svg, .pdf or .png.",
)
@trust_code_option
@fail_on_option
@quiet_option
@json_option
def whatif(
    job: str,
    settings: tuple[str, ...],
    hardware: "HardwareProfile",
    texts: tuple[str, ...],
    seeds: int,
    workers: int,
    out: Path | None,
    figure: Path | None,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Show what each thing of its network gains a job, and where more of it stops to matter.

    A RECIPE is priced in closed form on NIC rates and rails; needs torch. A SCENARIO runs in its own engine, one thing
    changed at a time: NIC rate, oversubscription, ToRs a set, placement, law, or the keys of --vary. Every run is kept
    as it is done: after Ctrl-C the same command goes on from there.

    \b
    Example:
      fabrictune validate whatif 175b --hardware a100
      fabrictune validate whatif job.yaml
      fabrictune validate whatif job.yaml --vary "fabric.oversubscription=1;2;4" --seeds 5
    """
    from fabrictune.foundation.output_files import check_output_file

    if figure:
        check_output_file(figure)
    is_scenario = _is_scenario(job)
    _refuse_options(("settings", "hardware") if is_scenario else ("texts", "seeds", "workers"), is_scenario)
    is_quiet = quiet or as_json
    if is_scenario:
        record, directory = _run_scenario(Path(job), texts, out, seeds, workers, is_quiet=is_quiet)
    else:
        record, directory = _price_recipe(job, settings, hardware, out, is_quiet=is_quiet)
    if record is None:
        print_lines([f"stopped; what is done stays in {directory}, and the same command goes on from there"])
        return INTERRUPTED
    if figure:
        from fabrictune import plot

        plot.save(plot.whatif(record), figure)
    return print_record(
        record,
        directory,
        lambda: tables_to_rows(record.tables),
        lambda: _print(record),
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )


def _is_scenario(job: str) -> bool:
    """Return whether a file is there that describes a fabric or traffic; a recipe does not."""
    from fabrictune.foundation.documents import load_yaml
    from fabrictune.scenario.files import MAX_SCENARIO_BYTES

    path = Path(job)
    if not path.is_file():
        return False
    tree = load_yaml(path, max_bytes=MAX_SCENARIO_BYTES).tree
    return isinstance(tree, dict) and bool({"fabric", "traffic"} & set(tree))


def _refuse_options(without_effect: tuple[str, ...], is_scenario: bool) -> None:
    """Raise InputError for options that were given and would have no effect."""
    from fabrictune.foundation.errors import InputError, Mistake

    context = click.get_current_context()
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in without_effect
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        other = "a recipe's; a scenario has its own fabric" if is_scenario else "a scenario's, which a recipe is not"
        raise InputError(*(Mistake(where=option, found="given", allowed=f"{other}") for option in given))


def _price_recipe(
    name: str, settings: tuple[str, ...], hardware: "HardwareProfile", out: Path | None, *, is_quiet: bool
) -> tuple["RunRecord", Path]:
    from fabrictune.validate.whatif_recipe import whatif_recipe

    recipe = read_recipe(name, settings)
    place = output_folder(out or Path("runs") / f"{recipe.name}-whatif")
    say_on_terminal("running the trainer on tensors without values ...", is_quiet=is_quiet)
    record = with_command(whatif_recipe(recipe, hardware))
    return record, record.write(place)


def _run_scenario(
    path: Path, texts: tuple[str, ...], out: Path | None, seeds: int, workers: int, *, is_quiet: bool
) -> tuple["RunRecord | None", Path]:
    """Return the record and its folder; no record where it was stopped."""
    from fabrictune.scenario.files import load_scenario
    from fabrictune.sweeps.executors import Threads
    from fabrictune.sweeps.store import open_folder
    from fabrictune.validate.whatif_scenario import families_named, families_of, whatif_scenario

    scenario = load_scenario(path, trust_code=is_code_trusted())
    families = families_named(texts) if texts else families_of(scenario)
    place = out or Path("runs") / f"{scenario.name}-whatif"
    with open_folder(place) as folder, progress_bar(scenario.name, is_quiet=is_quiet) as bar:
        try:
            record = whatif_scenario(
                scenario,
                families,
                folder,
                Threads(num_workers=workers),
                num_seeds=seeds,
                is_asked=bool(texts),
                trust_code=is_code_trusted(),
                progress=bar,
            )
        except KeyboardInterrupt:
            return None, place
        record = with_command(record)
        return record, folder.write_result(record)


def _print(record: "RunRecord") -> None:
    tables = {name: to_rows(columns) for name, columns in record.tables.items()}
    shares: dict[int, list[str]] = {}
    for row in tables["network_shares"]:
        shares.setdefault(row["point"], []).append(f"{row['axis']} {row['share_fraction']:.1%}")
    cells = [_cells(point, shares.get(row, [])) for row, point in enumerate(tables["network_variants"])]
    print_table(("what", "value", "step", "interval", "change", "interval", "communication"), cells[:MAX_SHOWN])
    if len(cells) > MAX_SHOWN:
        print_lines([f"and {len(cells) - MAX_SHOWN} more in the record"])
    print_lines([_refusal(row) for row in tables["network_refusals"][:MAX_REFUSALS]])
    print_lines([_knee(knee) for knee in tables["network_knees"]])
    print_lines([f"assumed: {note}" for note in notes_of(record)])


def _cells(point: dict[str, Any], shares: list[str]) -> tuple[str, ...]:
    from fabrictune.foundation.units import format_duration

    return (
        point["family"],
        point["value"] + (" *" if point["is_base"] and point["value"] else ""),
        format_duration(point["step_ps"]),
        f"{format_duration(point['step_low_ps'])} to {format_duration(point['step_high_ps'])}",
        f"{point['change_fraction']:+.1%}",
        f"{point['change_low_fraction']:+.1%} to {point['change_high_fraction']:+.1%}",
        ", ".join(shares),
    )


def _refusal(row: dict[str, Any]) -> str:
    return f"not run: {row['family']} {row['value']}: {row['reason']}"[:MAX_LINE]


def _knee(knee: dict[str, Any]) -> str:
    from fabrictune.validate.whatif_points import amount_text
    from fabrictune.validate.whatif_record import BEYOND

    name, most = knee["family"], amount_text(knee["family"], knee["most"])
    if knee["amount"] == BEYOND:
        return f"{name}: matters up to {most}, the most that was tried"
    ends = [knee[end] for end in ("low", "high")]
    text, *span = (amount_text(name, end) if end != BEYOND else f"beyond {most}" for end in (knee["amount"], *ends))
    return f"{name}: from {text} on the step is within 1 % of that at {most} (interval {' to '.join(span)})"
