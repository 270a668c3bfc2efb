"""`fabrictune init`: a new scenario, from a shape of fabric or a topology file."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import json_option
from fabrictune.cli.framework.output import print_json, print_lines

if TYPE_CHECKING:
    from fabrictune.scenario.drafts import Choices

FABRIC, TRAFFIC, LAW = "clos", "all_reduce", "dcqcn_firmware"


@click.command()
@click.argument("file", type=click.Path(path_type=Path), default=Path("scenario.yaml"), metavar="[FILE]")
@click.option("--fabric", metavar="NAME|FILE", help=f"Shape of the fabric, or a topology file.  [default: {FABRIC}]")
@click.option("--traffic", metavar="NAME", help=f"Workload.  [default: {TRAFFIC}]")
@click.option("--law", metavar="NAME", help=f"Congestion-control law.  [default: {LAW}]")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Key of the fabric or the traffic and its value, several separated by `;`; repeatable.",
)
@click.option("--yes", is_flag=True, help="Ask nothing: take the suggestions.")
@json_option
def init(
    file: Path,
    fabric: str | None,
    traffic: str | None,
    law: str | None,
    settings: tuple[str, ...],
    yes: bool,
    as_json: bool,
) -> None:
    """Write a new scenario with every setting and its meaning, into FILE (scenario.yaml).

    On a terminal it asks for what no option says; elsewhere, or with --yes, it takes the suggestions and prints them.
    The fabric is a shape by name, or a file that `fabrictune topo import` reads.

    \b
    Example:
      fabrictune init my.yaml
      fabrictune init my.yaml --fabric clos --set "fabric.num_hosts=64; fabric.oversubscription=2" --traffic all_to_all
      fabrictune init lab.yaml --fabric lab.clab.yml --yes
    """
    from fabrictune.cc.laws import LAWS
    from fabrictune.foundation.output_files import check_output_file, write_new_file
    from fabrictune.scenario.assignments import parse_setting
    from fabrictune.scenario.drafts import BUILDERS, WORKLOADS, Choices, draft
    from fabrictune.scenario.overrides import SEPARATOR

    check_output_file(file)
    asks = not yes and not as_json and sys.stdin.isatty()
    given = dict(parse_setting(setting) for text in settings for setting in text.split(SEPARATOR))
    choices = Choices(
        file=file.name,
        fabric=fabric or _ask(asks, f"fabric ({', '.join(BUILDERS)}, or a topology file)", FABRIC),
        traffic=traffic or _ask(asks, f"traffic ({', '.join(WORKLOADS)})", TRAFFIC),
        law=law or _ask(asks, f"law ({', '.join(LAWS)})", LAW),
        settings=given,
    )
    choices, taken = _answered(choices, asks=asks)
    text, composed = draft(choices, file.parent)
    write_new_file(file, text.encode())
    num_nics, num_pairs = composed.network.fabric.num_nics, len(composed.network.queue_pairs)
    if as_json:
        counts = {"nics": num_nics, "queue_pairs": num_pairs, "transfers": len(composed.traffic)}
        suggestions = [f"{key}={value}" for key, value in taken.items()]
        print_json({"file": str(file), **counts, "suggestions": suggestions, "notes": list(composed.notes)})
        return
    print_lines(f"suggested: {key}: {value}" for key, value in taken.items())
    print_lines(
        [
            f"file: {file}: {num_nics:,} NICs, {num_pairs:,} queue pairs, {len(composed.traffic):,} transfers",
            f"next: fabrictune ecmp analyze {file}",
        ]
    )


def _answered(choices: "Choices", *, asks: bool) -> tuple["Choices", Mapping[str, Any]]:
    """Return the choices with answers, and the suggestions that were taken unasked."""
    from dataclasses import replace

    from fabrictune.scenario.assignments import parse_setting
    from fabrictune.scenario.drafts import questions

    taken, settings = {}, dict(choices.settings)
    for question in questions(choices):
        if question.key in settings:
            continue
        if asks:
            answer = click.prompt(f"{question.key} ({question.meaning})", default=str(question.suggested), err=True)
            settings[question.key] = parse_setting(f"{question.key}={answer}")[1]
        else:
            taken[question.key] = question.suggested
    return replace(choices, settings=settings), taken


def _ask(asks: bool, what: str, suggested: str) -> str:
    return str(click.prompt(what, default=suggested, err=True)) if asks else suggested
