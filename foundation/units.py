"""Conversion of text with a unit to whole numbers; no other module does this.

`"400 Gbps"` is 400,000,000,000 bits a second, `"5 us"` is 5,000,000 picoseconds, `"9 MB"` is 9,000,000 bytes and
`"9 MiB"` 9,437,184. Arithmetic is exact (fractions, no floats), and a value that is no whole number of its base unit is
refused rather than rounded. Formatting chooses the largest unit that reads well and is for people, not for files.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn

from fabrictune.foundation.errors import Mistake, UnitError, nearest_name, quote

PS_PER_NS = 10**3
PS_PER_US = 10**6
PS_PER_S = 10**12
NS_PER_US = 10**3
NS_PER_MS = 10**6
NS_PER_S = 10**9
BITS_PER_BYTE = 8

RATE_UNITS: Mapping[str, int] = {"bps": 1, "Kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12}
BYTE_UNITS: Mapping[str, int] = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
DURATION_UNITS: Mapping[str, int] = {  # in picoseconds
    "ps": 1,
    "ns": 10**3,
    "us": 10**6,
    "ms": 10**9,
    "s": 10**12,
    "min": 60 * 10**12,
    "h": 3600 * 10**12,
}
FLOP_UNITS: Mapping[str, int] = {
    name: 10 ** (3 * place) for place, name in enumerate(("FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"))
}
BYTE_RATE_UNITS: Mapping[str, int] = {
    f"{name}/s": 10**power for name, power in zip(("B", "KB", "MB", "GB", "TB"), range(0, 15, 3), strict=True)
}
FLOP_RATE_UNITS: Mapping[str, int] = {f"{name}/s": size for name, size in FLOP_UNITS.items()}
LENGTH_UNITS: Mapping[str, int] = {"mm": 1, "cm": 10, "m": 10**3, "km": 10**6}  # in millimetres

_SPELLINGS = {"Gb/s": "Gbps", "Mb/s": "Mbps", "Kb/s": "Kbps", "kbps": "Kbps", "Tb/s": "Tbps", "b/s": "bps"}
_SPELLINGS |= {"kB": "KB", "\u00b5s": "us", "\u03bcs": "us"}
_RATE_SPELLINGS: Mapping[str, str] = {  # as switches, drivers and datasheets write rates: 400G, 100GbE, 25 Gb/sec
    f"{letter}{ending}": f"{letter.upper()}bps"
    for letter in "MGTgt"
    for ending in (
        "",
        "b",
        "E",
        "e",
        "bE",
        "be",
        "bps",
        "bit",
        "bit/s",
        "bits/s",
        "bits/sec",
        "b/s",
        "b/sec",
        "bit/sec",
    )
}
_QUANTITY = re.compile(r"\s*([+-]?\d{1,18}(?:\.\d{1,18})?(?:[eE][+-]?\d{1,2})?)\s*([^\s\d].*?)?\s*")
_LONGEST = 100  # characters of a quantity

MAX_LINK_RATE_BPS = 100 * 10**12  # sixty times the fastest Ethernet; 64 bytes still take 5 of the clock's picoseconds
LINK_RATES = "above 0, up to 100 Tbps"  # the rates that a link can have

CABLE_DELAY_PS_PER_MM = 5  # 5 ns a metre: light in fibre or copper at about two thirds of its speed in vacuum


def parse_rate_bps(text: str, *, where: str = "") -> int:
    """Return bits per second for text such as `"400 Gbps"`; raises UnitError."""
    return _parse(text, RATE_UNITS, "rate", "400 Gbps", where)


def parse_link_rate_bps(text: str, *, where: str = "") -> int:
    """Return the rate of a link; raises UnitError, also for one above MAX_LINK_RATE_BPS."""
    rate_bps = parse_rate_bps(text, where=where)
    if rate_bps > MAX_LINK_RATE_BPS:
        raise UnitError(Mistake(where=where, found=repr(text[:60]), allowed=LINK_RATES))
    return rate_bps


def parse_bytes(text: str, *, where: str = "") -> int:
    """Return bytes for text such as `"9 MB"` (powers of ten) or `"9 MiB"` (powers of two); raises UnitError."""
    return _parse(text, BYTE_UNITS, "size", "9 MB", where)


def parse_bytes_per_s(text: str, *, where: str = "") -> int:
    """Return bytes per second for text such as `"2039 GB/s"`; raises UnitError."""
    return _parse(text, BYTE_RATE_UNITS, "memory rate", "2039 GB/s", where)


def parse_flops_per_s(text: str, *, where: str = "") -> int:
    """Return floating-point operations per second for text such as `"312 TFLOP/s"`; raises UnitError."""
    return _parse(text, FLOP_RATE_UNITS, "rate of operations", "312 TFLOP/s", where)


def parse_duration_ps(text: str, *, where: str = "") -> int:
    """Return picoseconds for text such as `"5 us"`; raises UnitError."""
    return _parse(text, DURATION_UNITS, "duration", "5 us", where)


def parse_length_mm(text: str, *, where: str = "") -> int:
    """Return millimetres for text such as `"40 m"`; raises UnitError."""
    return _parse(text, LENGTH_UNITS, "length", "40 m", where)


def parse_fraction(text: str, *, where: str = "") -> float:
    """Return a share of one for text such as `"20 %"` or `"0.2"`; raises UnitError outside 0 to 1."""
    match = _match(text)
    if not match or match[2] not in (None, "%"):
        _refuse(text, where, "expected a share of one", allowed='a number from 0 to 1, or a percentage such as "20 %"')
    value = Fraction(match[1]) / (100 if match[2] else 1)
    if not 0 <= value <= 1:
        _refuse(text, where, "a share lies between 0 and 1", allowed='0 to 1, or "0 %" to "100 %"')
    return float(value)


def parse_ratio(text: str, *, where: str = "") -> float:
    """Return a number, not negative, for text such as `"110 %"` or `"1.1"`; raises UnitError."""
    match = _match(text)
    if not match or match[2] not in (None, "%") or match[1].startswith("-"):
        allowed = 'a number that is not negative, or a percentage such as "110 %"'
        _refuse(text, where, "expected a ratio", allowed=allowed)
    return float(Fraction(match[1]) / (100 if match[2] else 1))


def format_rate(rate_bps: float) -> str:
    """Return a rate for people: `"400 Gbps"`."""
    return _format(rate_bps, RATE_UNITS, ("bps", "Kbps", "Mbps", "Gbps", "Tbps"))


def format_bytes(num_bytes: float) -> str:
    """Return a size for people in powers of ten: `"9 MB"`."""
    return _format(num_bytes, BYTE_UNITS, ("B", "KB", "MB", "GB", "TB"))


def format_bytes_per_s(rate: float) -> str:
    """Return a rate of bytes for people: `"2.039 TB/s"`."""
    return _format(rate, BYTE_RATE_UNITS, tuple(BYTE_RATE_UNITS))


def format_flops_per_s(rate: float) -> str:
    """Return a rate of floating-point operations for people: `"312 TFLOP/s"`."""
    return _format(rate, FLOP_RATE_UNITS, tuple(FLOP_RATE_UNITS))


def format_duration(duration_ps: float) -> str:
    """Return a duration for people: `"163.4 us"`."""
    return _format(duration_ps, DURATION_UNITS, ("ps", "ns", "us", "ms", "s"))


def format_flops(flops: float) -> str:
    """Return floating-point operations for people: `"1.098 PFLOP"`."""
    return _format(flops, FLOP_UNITS, tuple(FLOP_UNITS))


def write_exactly(value: float, units: Mapping[str, int]) -> str:
    """Return a whole number of the base unit in the largest unit that is not above it, without rounding."""
    decimal = [name for name, size in units.items() if str(size).strip("0") == "1"]
    unit = next((name for name in reversed(decimal) if value >= units[name]), decimal[0])
    return f"{(Decimal(int(value)) / units[unit]).normalize():f} {unit}"


def format_fraction(fraction: float) -> str:
    """Return a share of one for people: `"97 %"`, `"0.4 %"`."""
    value = 100 * fraction
    return f"{value:.0f} %" if value >= 10 or value == 0 else f"{value:.2g} %"


def format_number(value: float) -> str:
    """Return a number without a unit for people, without powers of ten: `"67,780"`, `"0.0012"`."""
    return f"{value:,.0f}" if abs(value) >= 1000 else without_exponent(value, 4)


def without_exponent(value: float, num_digits: int) -> str:
    """Return a number with so many significant digits, never with a power of ten: `"0.0000123"`, `"1,230,000"`."""
    text = f"{value:.{num_digits}g}"
    return f"{Decimal(text):,f}" if "e" in text else text


def _match(text: str) -> re.Match[str] | None:
    return _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None  # the pattern is quadratic in spaces


def _parse(text: str, units: Mapping[str, int], what: str, example: str, where: str) -> int:
    allowed = f"a number and one of {', '.join(units)}; for example {example!r}"
    match = _match(text)
    if not match:
        _refuse(text, where, f"not a {what}", allowed=allowed)
    if match[2] is None:
        _refuse(text, where, f"a {what} needs its unit", allowed=allowed)
    spellings = _RATE_SPELLINGS if units is RATE_UNITS else {}
    unit = spellings.get(match[2]) or _SPELLINGS.get(match[2], match[2])
    if unit not in units:
        _refuse(text, where, f"{match[2]!r} is no unit of {what}", allowed=allowed, nearest=nearest_name(unit, units))
    value = Fraction(match[1]) * units[unit]
    if value < 0:
        _refuse(text, where, f"a {what} is not negative", allowed=allowed)
    if value.denominator != 1:
        _refuse(text, where, f"no whole number of {next(iter(units))}", allowed=allowed)
    if value >= 2**63:
        _refuse(text, where, f"too large a {what}", allowed=f"below {2**63} {next(iter(units))}")
    return int(value)


def _format(value: float, units: Mapping[str, int], ladder: tuple[str, ...]) -> str:
    rounded = float(f"{value:.4g}")  # first, so that 999,999 bps is 1 Mbps and not 1000 Kbps
    unit = next((name for name in reversed(ladder) if abs(rounded) >= units[name]), ladder[0])
    scaled = rounded / units[unit]
    return f"{scaled:.4g} {unit}" if abs(scaled) < 10_000 else f"{scaled:.0f} {unit}"


def _refuse(text: str, where: str, why: str, *, allowed: str, nearest: str = "") -> NoReturn:
    raise UnitError(Mistake(where=where, found=f"{quote(text)}: {why}", allowed=allowed, nearest=nearest))
