"""The site's rules on the command line: the option `--rules`, and the settings of the command at hand."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.output import print_lines

if TYPE_CHECKING:
    from fabrictune.foundation.finding_rules.settings import RuleSettings

KEY = "fabrictune.rules"  # in the context of a command
VARIABLE = "FABRICTUNE_RULES"


def _read(context: click.Context, option: click.Parameter, path: Path | None) -> None:
    if path is not None:
        from fabrictune.foundation.finding_rules.site_file import read_site_file

        context.meta[KEY] = read_site_file(path)


rules_option = click.option(
    "--rules",
    type=click.Path(path_type=Path),
    metavar="FILE",
    envvar=VARIABLE,
    show_envvar=True,
    expose_value=False,
    callback=_read,
    help="Site file with severities and thresholds of finding rules.",
)


def site_rules() -> "RuleSettings":
    """Return the settings of the file that `--rules` names, the catalog's without one."""
    from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS

    context = click.get_current_context(silent=True)
    settings: RuleSettings = CATALOG_SETTINGS if context is None else context.meta.get(KEY, CATALOG_SETTINGS)
    return settings


def rules_json() -> dict[str, Any]:
    """Return the site's settings under `rules` for a JSON value, nothing without a site file."""
    rules = site_rules()
    return {"rules": rules.as_json()} if rules.file else {}


def print_rules() -> None:
    """Print which site file applied and what it changes, nothing without one."""
    rules = site_rules()
    if rules.file:
        print_lines([f"rules: {rules.summary}"])
