"""Verdicts on measured collectives at every usual NIC rate, a line for each series."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from fabrictune.foundation.units import format_bytes

BPS_PER_GBPS = 10**9


def verdict_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each series of the table `verdict_rates`, and one that says what the lines mean."""
    from fabrictune.validate.verdict_rates import SERIES_COLUMNS

    if rows:
        yield "most of the time of the largest size, by the rate of a NIC in Gbps:"
    for (operation, is_in_place, _, size_bytes), group in groupby(
        rows, key=lambda row: [row[key] for key in SERIES_COLUMNS]
    ):
        place = " in place" if is_in_place else ""
        yield f"  {operation}{place} of {format_bytes(size_bytes)}: {_verdicts(list(group))}"


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the cause and its share at each rate, the rates at which it turns between them."""
    parts = []
    last_cause = ""
    for row in rows:
        rate, cause = _gbps(row["rate_bps"]), str(row["cause"]).replace("_", " ")
        if not row["is_possible"]:
            parts.append(f"{rate} too slow")
            continue
        share = f"{row['share_fraction']:.0%}"
        parts.append(f"{rate} {share}" if cause == last_cause else f"{rate} {cause} {share}")
        last_cause = cause
        if row["turn_bps"] > 0:
            parts.append(f"turns at {_gbps(row['turn_bps'])}")
    return "; ".join(parts)


def _gbps(rate_bps: float) -> str:
    return f"{rate_bps / BPS_PER_GBPS:.4g}"
