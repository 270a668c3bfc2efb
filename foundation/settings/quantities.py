"""Suffixes of field names and the values they take in a file: `_bps` is a rate, written `400 Gbps`.

| suffix of the field  | value in the file                     |
|----------------------|---------------------------------------|
| `_bps`               | rate: `400 Gbps`                      |
| `_bytes_per_s`       | memory rate: `2039 GB/s`              |
| `_flops_per_s`       | rate of operations: `312 TFLOP/s`     |
| `_bytes`             | size: `9 MB`, `9 MiB`                 |
| `_ns`, `_ps`         | duration: `5 us`                      |
| `_mm`                | length: `40 m`                        |
| `_fraction`          | share of one: `0.2`, `20 %`           |
| `_packets`, or none  | as the type says: number, text, truth |
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from fabrictune.foundation.errors import Mistake, UnitError
from fabrictune.foundation.units import (
    BYTE_RATE_UNITS,
    BYTE_UNITS,
    DURATION_UNITS,
    FLOP_RATE_UNITS,
    RATE_UNITS,
    format_bytes,
    format_bytes_per_s,
    format_duration,
    format_flops_per_s,
    format_rate,
    parse_bytes,
    parse_bytes_per_s,
    parse_duration_ps,
    parse_flops_per_s,
    parse_fraction,
    parse_length_mm,
    parse_rate_bps,
    write_exactly,
)

MAX_DIGITS = 19  # of a count
MAX_COUNT = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A quantity: how a number is written in a file, and shown to people."""

    what: str
    parse: Callable[[str], float]  # raises UnitError
    show: Callable[[float], str]


def _parse_duration_ns(text: str) -> int:
    duration_ps = parse_duration_ps(text)
    if duration_ps % 1000:
        raise UnitError(Mistake(where="", found=f"{text!r}: no whole number of ns", allowed="whole nanoseconds"))
    return duration_ps // 1000


def _parse_count(text: str) -> int:
    if not text.isdecimal() or len(text) > MAX_DIGITS or int(text) > MAX_COUNT:
        raise UnitError(Mistake(where="", found=f"{text[:60]!r} where a whole number is needed"))
    return int(text)


def _parse_factor(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UnitError(Mistake(where="", found=f"{text[:60]!r} where a number is needed")) from None


def _parse_percentage(text: str) -> float:
    if not text.rstrip().endswith("%"):
        raise UnitError(Mistake(where="", found=f"{text[:60]!r} where a percentage is needed", allowed="as 50 %"))
    return parse_fraction(text)


def _show_plainly(value: float) -> str:
    return f"{value:.6g}"


RATE = Quantity(what="rate", parse=parse_rate_bps, show=format_rate)
SIZE = Quantity(what="size", parse=parse_bytes, show=format_bytes)
DURATION = Quantity(what="duration", parse=parse_duration_ps, show=format_duration)  # in picoseconds
PERCENTAGE = Quantity(what="percentage", parse=_parse_percentage, show=lambda share: f"{100 * share:.6g} %")  # of one
FACTOR = Quantity(what="number", parse=_parse_factor, show=lambda factor: f"{factor:.3g}")
COUNT = Quantity(what="whole number", parse=_parse_count, show=lambda count: f"{count:.0f}")

BY_SUFFIX: Mapping[str, Quantity] = {
    "_bps": RATE,
    "_bytes_per_s": Quantity(what="memory rate", parse=parse_bytes_per_s, show=format_bytes_per_s),
    "_flops_per_s": Quantity(what="rate of operations", parse=parse_flops_per_s, show=format_flops_per_s),
    "_bytes": SIZE,
    "_ns": Quantity(what="duration", parse=_parse_duration_ns, show=lambda value: format_duration(value * 1000)),
    "_ps": DURATION,
    "_mm": Quantity(what="length", parse=parse_length_mm, show=lambda value: f"{value / 1000:g} m"),
    "_fraction": Quantity(what="share of one", parse=parse_fraction, show=_show_plainly),
}
_UNITS = {
    "_bps": RATE_UNITS,
    "_bytes_per_s": BYTE_RATE_UNITS,
    "_flops_per_s": FLOP_RATE_UNITS,
    "_bytes": BYTE_UNITS,
    "_ps": DURATION_UNITS,
}
_SUFFIXES = (*BY_SUFFIX, "_packets")


def quantity_of(field_name: str) -> Quantity | None:
    """Return what a field's value is written as, None where its type says it all."""
    return next((quantity for suffix, quantity in BY_SUFFIX.items() if field_name.endswith(suffix)), None)


def suffix_of(value: object) -> str | None:
    """Return the end of the name of a field that is written like this value; None for a number without unit."""
    if not isinstance(value, str) or not any(letter.isalpha() or letter == "%" for letter in value):
        return None
    for suffix in ("_bps", "_bytes", "_ps", "_mm", "_fraction"):
        with suppress(UnitError):
            BY_SUFFIX[suffix].parse(value)
            return suffix
    return None


def key_of(field_name: str) -> str:
    """Return the key a field has in a file: its name without the unit."""
    suffix = next((suffix for suffix in _SUFFIXES if field_name.endswith(suffix)), "")
    return field_name.removesuffix(suffix)


def format_setting(field_name: str, value: float) -> str:
    """Return a field's number for people, as a file would write it."""
    quantity = quantity_of(field_name)
    return quantity.show(value) if quantity else _show_plainly(value)


def unit_of(field_name: str) -> str:
    """Return the unit of a field's number, "" for one without."""
    suffix = next((suffix for suffix in BY_SUFFIX if field_name.endswith(suffix)), "")
    return suffix.removeprefix("_").replace("_per_s", "/s")


def setting_value(field_name: str, value: object) -> object:
    """Return a field's value as a file has it: a quantity as text without rounding, any other value as it is."""
    units = next((units for suffix, units in _UNITS.items() if field_name.endswith(suffix)), None)
    return value if units is None or not isinstance(value, int | float) else write_exactly(value, units)
