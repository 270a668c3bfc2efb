"""`fabrictune train keys`: the keys of a recipe."""

import click

from fabrictune.cli.framework.keys import print_keys, schema_option
from fabrictune.cli.framework.options import json_option


@click.command()
@click.argument("section", default="recipe")
@schema_option
@json_option
def keys(section: str, as_schema: bool, as_json: bool) -> None:
    """List the keys of a recipe, or of one SECTION: `model`, `degrees`, `data.text`.

    \b
    Example:
      fabrictune train keys
      fabrictune train keys degrees
      fabrictune train keys --schema > recipe.schema.json
    """
    from fabrictune.trainer_probe.recipes.schema import Recipe

    print_keys(Recipe, "recipe", section, as_json=as_json, as_schema=as_schema)
