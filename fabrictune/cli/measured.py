"""What the commands about measured collectives share: their options, and how a row is printed."""

from collections.abc import Mapping
from typing import Any

import click

from collectives.measuring.spec import BENCHED

BPS_PER_GB_PER_S = 8e9
PS_PER_NS = 1000

operation_option = click.option(
    "--operation", type=click.Choice(list(BENCHED)), help="Which one it is, where an older nccl-tests does not say it."
)
ranks_option = click.option(
    "--num-ranks",
    type=click.IntRange(2, 10_000_000),
    metavar="N",
    help="Of how many ranks, where the file does not list them.",
)


def bandwidth_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return operation, place, size, time, algbw and busbw of a row of the table `measurements`."""
    from foundation.units import format_duration

    return (
        row["operation"],
        "yes" if row["is_in_place"] else "no",
        str(row["size_bytes"]),
        format_duration(row["mean_ns"] * PS_PER_NS),
        *(f"{row[f'{which}_bandwidth_bps'] / BPS_PER_GB_PER_S:.3g}" for which in ("algorithm", "bus")),
    )
