"""`fabrictune coll import`: what nccl-tests measured, as a record."""

import time
from pathlib import Path
from typing import Any

import click

from fabrictune.cli.coll.options import operation_option, ranks_option
from fabrictune.cli.coll.sizes import all_sizes_option, print_measurements
from fabrictune.cli.framework.options import fail_on_option, json_option, quiet_option
from fabrictune.cli.framework.output import print_lines
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.foundation.run_tables.rows import to_rows


@click.command("import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@operation_option
@ranks_option
@all_sizes_option
@click.option("--keep-hosts", is_flag=True, help="Keep host names in the record.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", default=Path("runs/nccl-tests"), show_default=True
)
@fail_on_option
@quiet_option
@json_option
def import_measurements(
    file: Path,
    operation: str | None,
    num_ranks: int | None,
    all_sizes: bool,
    keep_hosts: bool,
    out: Path,
    fail_on: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Read what nccl-tests printed, or wrote with -J, and write it as a record.

    Any of its layouts, among NCCL's log lines, and several runs in one file; also the lines of NCCL Inspector, a file
    or the folder of a job. Of the environment in the JSON only plain settings of NCCL and its like are kept. The file
    is compared with itself: its list of ranks, its columns of bandwidth and its average.

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

    def values() -> dict[str, Any]:
        configuration = record.run["configuration"]
        return {"configuration": configuration, "measurements": rows, "notes": list(imported.notes)}

    def show() -> None:
        where = f" on {imported.num_hosts} hosts" if imported.num_hosts else ""
        counts = ", ".join(map(str, dict.fromkeys(row["num_ranks"] for row in rows)))
        print_lines([f"{imported.source}: {len(rows)} measurements of {counts} ranks{where}"])
        print_measurements(rows, imported.rows, all_sizes=all_sizes)
        print_lines(f"note: {note}" for note in imported.notes)

    return print_record(record, directory, values, show, as_json=as_json, quiet=quiet, fail_on=fail_on)
