"""Listing of a settings file's keys: one section as columns or JSON, and the list of sections; or its JSON Schema."""

import textwrap
from dataclasses import asdict

import click

from fabrictune.cli.framework.output import print_json, print_lines, print_table

WIDTH = 110
schema_option = click.option(
    "--schema", "as_schema", is_flag=True, help="Print a JSON Schema of the whole file, for editors."
)


def print_keys(root: type, name: str, section: str, *, as_json: bool, as_schema: bool = False) -> None:
    """Print the keys of a section of a file that `root` describes; raises InputError for an unknown one."""
    from fabrictune.foundation.settings.json_schema import json_schema
    from fabrictune.foundation.settings.keys import list_keys, sections

    if as_schema:
        print_json(json_schema(root, name))
        return
    known = sections(root, name)
    lines = list_keys(known, section)
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    print_table(
        ("key", "takes", "default", "meaning"), [(line.key, line.takes, line.default, line.meaning) for line in lines]
    )
    if section == name:
        print_lines(["", *textwrap.wrap(f"sections: {', '.join(known)}", WIDTH)])
