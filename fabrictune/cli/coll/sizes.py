"""Measurements on the terminal: each size, or classes of sizes where there are many."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.coll.options import bandwidth_cells, gigabytes_per_s
from fabrictune.cli.framework.output import print_lines, print_table

if TYPE_CHECKING:
    from fabrictune.collectives.measurement.measurements import Measurement

MAX_ROWS = 12  # that are shown unasked

all_sizes_option = click.option("--all-sizes", is_flag=True, help="Print every size, not classes of sizes.")


def print_measurements(rows: Sequence[dict[str, Any]], measured: Sequence["Measurement"], *, all_sizes: bool) -> None:
    """Print rows of the table `measurements`, or classes of the same measurements."""
    if all_sizes or len(rows) <= MAX_ROWS:
        print_table(
            ("operation", "in place", "size (B)", "time", "algbw GB/s", "busbw GB/s", "#wrong"),
            [(*bandwidth_cells(row), "N/A" if row["num_wrong"] < 0 else str(row["num_wrong"])) for row in rows],
        )
        return
    print_size_classes(measured)


def print_size_classes(measured: Sequence["Measurement"]) -> None:
    """Print how many sizes each class has, and their bus bandwidth."""
    from fabrictune.collectives.measurement.size_classes import size_classes
    from fabrictune.foundation.units import format_bytes

    print_table(
        ("operation", "in place", "sizes", "from", "to", "median busbw GB/s", "best", "at"),
        [
            (
                one.largest.name,
                "yes" if one.largest.is_in_place else "no",
                str(len(one.rows)),
                format_bytes(one.rows[0].size_bytes),
                format_bytes(one.largest.size_bytes),
                gigabytes_per_s(one.median_busbw_bps),
                gigabytes_per_s(one.best.bus_bandwidth_bps),
                format_bytes(one.best.size_bytes),
            )
            for one in size_classes(measured)
        ],
    )
    print_lines([f"{len(measured)} rows by size; --all-sizes prints every one"])
