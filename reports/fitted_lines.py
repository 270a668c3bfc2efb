"""Fitted lines of collectives, `time = alpha + bytes / rate`, as bus bandwidth by size, and their points."""

from collections.abc import Iterator, Sequence

import numpy as np

from fabrictune.collectives.bounds import bus_factor
from fabrictune.collectives.measurement.spec import BENCHED
from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.units import BITS_PER_BYTE, NS_PER_S, PS_PER_S
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

FITS = select("fits", "operation", "is_in_place", "num_ranks", "alpha_ns", "busbw_bps")
FITTED = select("attribution", "operation", "is_in_place", "num_ranks", "size_bytes", "measured_ps")


def fitted_curves(run: Run, operation: str, sizes: Sequence[float]) -> Iterator[tuple[str, list[float]]]:
    """Yield the name of each line that fits an operation, and its bus bandwidth in bit/s at each size."""
    fits = run.unread().rows(FITS)  # its intervals are in "Other tables" still
    if fits is None or operation not in BENCHED:
        return
    columns = (fits[name].tolist() for name in FITS.columns)
    for own, is_in_place, num_ranks, alpha_ns, busbw_bps in zip(*columns, strict=True):
        if own == operation and alpha_ns >= 0 and busbw_bps > 0:
            sent_bits = BITS_PER_BYTE * bus_factor(BENCHED[operation], num_ranks) * np.array(sizes)
            seconds = alpha_ns / NS_PER_S + sent_bits / busbw_bps
            yield _name("fitted line", is_in_place, num_ranks, fits["num_ranks"]), (sent_bits / seconds).tolist()


def fitted_points(run: Run) -> Iterator[tuple[str, str, IntArray, FloatArray]]:
    """Yield operation, name, sizes and bus bandwidths in bit/s of each series of measurements beside their model."""
    if (table := run.rows(FITTED)) is None:
        return
    keys = zip(*(table[name].tolist() for name in FITTED.columns[:3]), strict=True)
    for operation, is_in_place, num_ranks in dict.fromkeys(keys):
        is_own = (table["operation"] == operation) & (table["is_in_place"] == is_in_place)
        is_own &= (table["num_ranks"] == num_ranks) & (table["measured_ps"] > 0)
        if operation in BENCHED and is_own.any():
            sent_bits = BITS_PER_BYTE * bus_factor(BENCHED[operation], num_ranks) * table["size_bytes"][is_own]
            busbw_bps = sent_bits / (table["measured_ps"][is_own] / PS_PER_S)
            yield (
                operation,
                _name("measured", is_in_place, num_ranks, table["num_ranks"]),
                table["size_bytes"][is_own],
                busbw_bps,
            )


def _name(what: str, is_in_place: int, num_ranks: int, every: IntArray) -> str:
    """Return the name of a series; its ranks where there are groups of several sizes."""
    ranks = f", {num_ranks} ranks" if len(np.unique(every)) > 1 else ""
    return f"{what}{ranks}{', in place' if is_in_place else ''}"
