"""`fabrictune trace`: read communication traces that others wrote, and write ours for others."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabrictune.cli.framework.groups import CommandGroup
from fabrictune.cli.framework.options import json_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.timeline import timeline

if TYPE_CHECKING:
    from fabrictune.collectives.traces.totals import Totals

trace = CommandGroup(name="trace", help="Import, show, draw and export communication traces.")
trace.add_command(timeline)

files_argument = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
ranks_option = click.option(
    "--ranks",
    type=click.IntRange(1, 2**20),
    metavar="N",
    help="Number of ranks, for a file that holds one rank for all.",
)
group_size_option = click.option(
    "--group-size",
    type=click.IntRange(1, 2**20),
    metavar="N",
    help="Ranks next to one another in a group, for a file that does not say it (HYBRID_DATA_MODEL).",
)


@trace.command()
@files_argument
@ranks_option
@group_size_option
@json_option
def show(files: tuple[Path, ...], ranks: int | None, group_size: int | None, as_json: bool) -> None:
    """Say what a trace asks for: requests and bytes by operation.

    \b
    Formats: fabrictune (Parquet), chakra (NAME.RANK.et), kineto (profiler JSON), aicb (workload text),
    aicb-csv (AICB's tables)

    \b
    Example:
      fabrictune trace show profile.json.gz
    """
    from fabrictune.collectives.traces.formats import find_job, read_trace
    from fabrictune.collectives.traces.totals import Totals

    requests = find_job(files) or read_trace(files, num_ranks=ranks, group_size=group_size)
    _show(Totals.of(requests), getattr(requests, "notes", ()), as_json=as_json)


@trace.command("import")
@files_argument
@ranks_option
@group_size_option
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", required=True, help="Output file, .parquet.")
@json_option
def import_files(files: tuple[Path, ...], ranks: int | None, group_size: int | None, out: Path, as_json: bool) -> None:
    """Read a trace in any known format and save it as this project's Parquet, which scenarios and engines take.

    \b
    Example:
      fabrictune trace import workload.txt --ranks 64 --out step.parquet
    """
    from fabrictune.collectives.traces.formats import read_trace
    from fabrictune.collectives.traces.totals import Totals
    from fabrictune.foundation.output_files import check_output_file

    check_output_file(out)
    requests = read_trace(files, num_ranks=ranks, group_size=group_size)
    requests.write(out)
    _show(Totals.of(requests), requests.notes, as_json=as_json)


@trace.command()
@files_argument
@ranks_option
@group_size_option
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", required=True, help="Output directory.")
@click.option("--name", default="trace", metavar="NAME", show_default=True, help="Base name of the files.")
@json_option
def export(
    files: tuple[Path, ...], ranks: int | None, group_size: int | None, out: Path, name: str, as_json: bool
) -> None:
    """Write a trace as Chakra execution traces, one file a rank, with their groups.

    \b
    Example:
      fabrictune trace export step.parquet --out chakra/
    """
    from fabrictune.collectives.traces.chakra_writing import write_chakra
    from fabrictune.collectives.traces.formats import read_trace
    from fabrictune.foundation.output_folders import check_output_folder

    check_output_folder(out, check=lambda _: None)
    requests = read_trace(files, num_ranks=ranks, group_size=group_size)
    written = write_chakra(requests, out, name)
    if as_json:
        print_json({"files": [str(path) for path in written], "notes": list(requests.notes)})
    else:
        print_lines([f"{len(written)} files in {out}", *(f"note: {note}" for note in requests.notes)])


def _show(totals: "Totals", notes: Sequence[str], *, as_json: bool) -> None:
    """Print the requests and bytes of each operation, and what the reader left out or took for granted."""
    from fabrictune.foundation.units import format_bytes

    rows = [(one.name.lower(), count, totals.num_bytes[one]) for one, count in totals.num_requests.items()]
    if as_json:
        operations = {name: {"requests": count, "bytes": total} for name, count, total in rows}
        head = {"ranks": totals.num_ranks, "groups": totals.num_groups}
        print_json({**head, "operations": operations, "notes": list(notes)})
        return
    num_requests = sum(totals.num_requests.values())
    print_lines([f"{num_requests} requests of {totals.num_ranks} ranks in {totals.num_groups} groups"])
    print_table(
        ["operation", "requests", "bytes, all ranks"],
        [(name, str(count), format_bytes(total)) for name, count, total in rows],
    )
    print_lines(f"note: {note}" for note in notes)
