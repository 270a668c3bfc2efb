"""`fabrictune report`: one HTML page from run records."""

from pathlib import Path

import click

from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.options import json_option
from fabrictune.cli.framework.output import print_json, print_lines

report = CommandGroup(name="report", help="Make one HTML page from run records.")


@report.command()
@click.argument("records", metavar="RECORD...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="[default: report.html in the first RECORD]"
)
@json_option
def build(records: tuple[Path, ...], out: Path | None, as_json: bool) -> None:
    """Show one RECORD, or several side by side, as one page that needs no network to be read.

    \b
    Example:
      fabrictune report build runs/incast
      fabrictune report build runs/before runs/after --out comparison.html
    """
    from fabrictune.reports.page import write_page

    page = write_page(records, out)
    if as_json:
        print_json({"page": str(page), "records": [str(record) for record in records]})
    else:
        print_lines([f"page: {page}"])
