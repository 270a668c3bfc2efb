"""`fabrictune coll import`: what nccl-tests measured, as a record."""

import time
from pathlib import Path

import click

from fabrictune.cli.coll.options import bandwidth_cells, operation_option, ranks_option
from fabrictune.cli.framework.options import json_option, quiet_option
from fabrictune.cli.framework.output import print_json, print_lines, print_table
from fabrictune.cli.framework.records import output_folder, with_command
from fabrictune.foundation.run_tables.rows import to_rows


@click.command("import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@operation_option
@ranks_option
@click.option("--keep-hosts", is_flag=True, help="Keep host names in the record.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/nccl-tests"), show_default=True
)
@quiet_option
@json_option
def import_measurements(
    file: Path,
    operation: str | None,
    num_ranks: int | None,
    keep_hosts: bool,
    out: Path,
    quiet: bool,
    as_json: bool,
) -> int:
    """Read what nccl-tests printed, or wrote with -J, and write it as a record.

    Any of its layouts, among NCCL's log lines, and several runs in one file. Of the environment in the JSON only plain
    settings of NCCL and its like are kept.

    \b
    Example:
      fabrictune coll import all_reduce.txt --out runs/all-reduce
      fabrictune coll import old.log --operation all_gather --num-ranks 16 --json
    """
    from fabrictune.collectives.measurement.files import ImportHints, read_measurements

    started, place = time.perf_counter(), output_folder(out)
    imported = read_measurements(file, ImportHints(name=operation, num_ranks=num_ranks, keeps_hosts=keep_hosts))
    record = imported.record(started=started)
    directory = with_command(record).write(place)
    rows = to_rows(record.tables["measurements"])
    if as_json:
        print_json({"record": str(directory), "configuration": record.run["configuration"], "measurements": rows})
        return 0
    if not quiet:
        where = f" on {imported.num_hosts} hosts" if imported.num_hosts else ""
        print_lines([f"{imported.source}: {len(rows)} measurements of {rows[0]['num_ranks']} ranks{where}"])
        print_table(
            ("operation", "in place", "size (B)", "time", "algbw GB/s", "busbw GB/s", "#wrong"),
            [(*bandwidth_cells(row), "N/A" if row["num_wrong"] < 0 else str(row["num_wrong"])) for row in rows],
        )
    print_lines([f"record: {directory}"])
    return 0
