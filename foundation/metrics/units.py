"""Units of metrics: how a value is written in a file, shown to people, and printed as JSON."""

import math
from collections.abc import Mapping
from typing import Literal

from fabrictune.foundation.settings.quantities import COUNT, DURATION, FACTOR, RATE, SIZE, Quantity
from fabrictune.foundation.units import format_fraction, format_number, parse_fraction, without_exponent

Unit = Literal["ps", "bps", "bytes", "packets", "count", "ppm", "fraction", "ratio", "index"]


def _show_ratio(value: float) -> str:
    return without_exponent(value, 3) if abs(value) < 999.5 else f"{value:,.0f}"


QUANTITIES: Mapping[str, Quantity] = {
    "ps": DURATION,
    "bps": RATE,
    "bytes": SIZE,
    "packets": COUNT,
    "count": COUNT,
    "ppm": Quantity(what="number", parse=FACTOR.parse, show=lambda value: f"{format_number(value)} ppm"),
    "fraction": Quantity(what="share of one", parse=parse_fraction, show=format_fraction),
    "ratio": Quantity(what="number", parse=FACTOR.parse, show=_show_ratio),
    "index": Quantity(what="number", parse=FACTOR.parse, show=lambda value: f"{value:.3f}"),
}


def format_metric(value: float, unit: str) -> str:
    """Return a value of a metric for people: "never" if infinite, "unknown" if nan; the number where no unit is known.

    Infinite is a time that never ended, or what is computed from it.
    """
    if not math.isfinite(value):
        return "never" if math.isinf(value) else "unknown"
    return QUANTITIES[unit].show(value) if unit in QUANTITIES else f"{value:.3f}"


def as_json(value: float, unit: str) -> dict[str, float | str | None]:
    """Return a value with its unit as JSON values; null where it is infinite or unknown."""
    return {"value": value if math.isfinite(value) else None, "unit": unit}
