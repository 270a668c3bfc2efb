"""The recipe argument of commands, and the options they share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from fabrictune.cli.framework.options import time_limit_option

if TYPE_CHECKING:
    from fabrictune.trainer_probe.recipes.schema import Recipe

ORIGIN = "--set"
FLOPS_PER_TFLOPS = 1e12

recipe_argument = click.argument("recipe_name", metavar="RECIPE")
set_option = click.option(
    ORIGIN,
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override of a recipe key: degrees.layout.dp=4; repeatable.",
)
peak_option = click.option(
    "--peak-tflops",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Peak FLOP/s of one device, for MFU.  [default: known GPUs]",
)
timeout_option = time_limit_option(86400.0, "Time limit in seconds, for local processes.")


def read_recipe(name: str, settings: Sequence[str]) -> "Recipe":
    """Return the recipe of a name or file with settings changed; raises InputError."""
    from fabrictune.scenario.assignments import parse_setting
    from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

    return load_recipe(find_recipe(name), dict(map(parse_setting, settings)), origin=ORIGIN)
