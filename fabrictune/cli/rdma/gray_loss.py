"""`fabrictune rdma gray-loss`: the link that loses a few of the packets sprayed over it."""

import time
from pathlib import Path

import click

from fabrictune.cli.framework.options import fail_on_option, json_option, out_option, quiet_option
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.cli.framework.records import output_folder, print_record, with_command
from fabrictune.cli.framework.rules import site_rules
from fabrictune.foundation.records import notes_of
from fabrictune.foundation.run_tables.rows import to_rows


@click.command("gray-loss")
@click.argument("counts", metavar="COUNTS", type=click.Path(path_type=Path))
@out_option
@fail_on_option
@quiet_option
@json_option
def gray_loss(counts: Path, out: Path | None, fail_on: str, quiet: bool, as_json: bool) -> int:
    """Find links that lose a few of the packets sprayed over them, from packets counted by path.

    COUNTS is a CSV file with the columns `flow`, `links` (names with `;` between them), `received`, and perhaps `sent`
    and `share`; or the record of a simulation with `path_choice: {mode: entropy}` and `capture: {at: receiver}`.

    Where only receivers count, 0.5 % of loss needs some 1.2 million packets on the link; the notes say what these
    counts show. Where senders count by path too, some thousand are enough.

    \b
    Example:
      fabrictune rdma gray-loss counts.csv
      fabrictune rdma gray-loss runs/spraying
    """
    from fabrictune.observability.gray_loss.files import read_counts
    from fabrictune.observability.gray_loss.record import make_loss_record

    started, place = time.perf_counter(), output_folder(out or Path("runs") / f"{counts.stem}-loss")
    record = with_command(
        make_loss_record(read_counts(counts), source=str(counts), started=started, rules=site_rules())
    )
    directory = record.write(place)
    rows, outcome = to_rows(record.tables["lossy_links"]), record.run["outcome"]

    def show() -> None:
        print_lines(
            [f"{outcome['num_paths']:,} paths of {outcome['num_flows']:,} flows over {outcome['num_links']:,} links"]
        )
        if rows:
            cells = [
                (
                    row["links"],
                    f"{row['loss_fraction']:.2%}",
                    f"{row['error_fraction']:.2%}",
                    str(row["expected_packets"]),
                )
                for row in rows
            ]
            print_table(("link", "loss", "standard error", "packets"), cells)
        print_lines([f"note: {note}" for note in notes_of(record)])

    return print_record(
        record,
        directory,
        lambda: {**outcome, "lossy_links": rows},
        show,
        as_json=as_json,
        quiet=quiet,
        fail_on=fail_on,
    )
