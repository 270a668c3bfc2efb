"""`fabrictune hardware`: hardware profiles, their values and the source of each."""

from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.keys import print_keys
from fabrictune.cli.framework.options import json_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table

if TYPE_CHECKING:
    from fabrictune.hardware.profile import HardwareProfile

hardware = CommandGroup(name="hardware", help="List hardware profiles, and show their values with sources.")


@hardware.command("list")
@json_option
def list_profiles(as_json: bool) -> None:
    """List the bundled hardware profiles, which `--hardware` takes by name.

    \b
    Example:
      fabrictune hardware list
    """
    from fabrictune.hardware.files import bundled_profile, profile_names

    rows = [{"name": name, "description": bundled_profile(name).description} for name in profile_names()]
    if as_json:
        print_json(rows)
    else:
        print_table(("profile", "hardware"), [tuple(row.values()) for row in rows])


@hardware.command()
@click.argument("profile_name", metavar="NAME|FILE")
@json_option
def show(profile_name: str, as_json: bool) -> None:
    """Show the values of a hardware profile, with the uncertainty and the source of each.

    The uncertainty is relative, half of a 90 % interval.

    \b
    Example:
      fabrictune hardware show a100
      fabrictune hardware show our-cluster.yaml --json
    """
    from fabrictune.hardware.files import find_profile

    profile = find_profile(profile_name, where="fabrictune hardware show")
    rows = _rows(profile)
    if as_json:
        print_json({"name": profile.name, "description": profile.description, "base": profile.base, "values": rows})
        return
    print_lines([f"{profile.name}: {profile.description}", ""])
    cells = [(row["key"], row["shown"], f"{row['uncertainty_fraction']:.0%}", row["source"]) for row in rows]
    print_table(("key", "value", "uncertainty", "source"), cells)


@hardware.command()
@click.argument("section", default="profile")
@json_option
def keys(section: str, as_json: bool) -> None:
    """List the keys of a hardware profile's file, or of one SECTION: `gpu`, `network`.

    \b
    Example:
      fabrictune hardware keys gpu
    """
    from fabrictune.hardware.profile import HardwareProfile

    print_keys(HardwareProfile, "profile", section, as_json=as_json)


def _rows(profile: "HardwareProfile") -> list[dict[str, Any]]:
    """Return a row of each value: in its base unit, as people read it, its uncertainty and source."""
    from fabrictune.foundation.settings.quantities import format_setting, unit_of

    names = profile.field_names()
    return [
        {
            "key": key,
            "value": list(map(str, value)) if isinstance(value, tuple) else value,
            "unit": unit_of(names[key]),
            "shown": ", ".join(map(str, value)) if isinstance(value, tuple) else format_setting(names[key], value),
            "uncertainty_fraction": profile.uncertainty_of(key),
            "source": profile.source_of(key),
        }
        for key, value in profile.values().items()
    ]
