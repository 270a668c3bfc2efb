"""Results of perftest's programs, from their text or their JSON.

The JSON of versions before 6.10 is none: keys and words stand without quotes, and a comma follows the last. Numbers of
the last size are taken from either, by name. Bandwidths are in Gb/s where `--report_gbits` was given, else in MiB/s,
which the text calls MB. A result of 0 is none: the programs print that where they cannot calibrate their clock, as on a
busy machine (get_clock.c, r^2 < 0.9).

Source: perftest, perftest_parameters.c (ctx_print_test_info, RESULT_FMT), perftest_resources.c (print_report_bw, _lat).
"""

import re
from collections.abc import Iterable

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.units import NS_PER_US

BITS_PER_GIGABIT = 10**9
BITS_PER_MEBIBYTE = 8 * 2**20
_MOST_CHARACTERS = 2**18
_FIELD = re.compile(r'"?([A-Za-z][\w.]*)"?\s*:\s*"?(-?\d+(?:\.\d+)?)"?,?')
HEADING = re.compile(r"#?[\w.%]+(?: \w+)?\[[^\]]+\]|#\w+")
_COUNTER = re.compile(r"(?:hw_counters|counters)/(\w+)=(\d{1,20})")

PerftestValues = dict[str, float]


def read_bandwidth_bps(text: str, json: str = "") -> float:
    """Return the average bandwidth of a run; raises InputError where neither form says it."""
    values = _read_table(text)
    if "BW average[Gb/sec]" in values:
        return _wanted(values, "BW average[Gb/sec]") * BITS_PER_GIGABIT
    if "BW average[MB/sec]" in values:
        return _wanted(values, "BW average[MB/sec]") * BITS_PER_MEBIBYTE
    return _wanted(_read_fields(json), "BW_average") * BITS_PER_GIGABIT


def read_latency_ns(text: str, json: str = "") -> tuple[float, float]:
    """Return the typical (median) latency and its 99th percentile; raises InputError where neither form says it."""
    values, names = _read_table(text), ("t_typical[usec]", "99% percentile[usec]")
    if not all(name in values for name in names):
        values, names = _read_fields(json), ("t_typical", "percentile_99")
    return _wanted(values, names[0]) * NS_PER_US, _wanted(values, names[1]) * NS_PER_US


def read_counter_changes(text: str) -> dict[str, int]:
    """Return the changes of the counters listed in `--report-counters`."""
    return {match[1]: int(match[2]) for match in _COUNTER.finditer(text[-_MOST_CHARACTERS:])}


def _read_table(text: str) -> PerftestValues:
    """Return the last row of numbers under the last row of headings."""
    headings: list[str] = []
    values: PerftestValues = {}
    for line in text[-_MOST_CHARACTERS:].splitlines():
        if line.strip().startswith("#bytes"):
            headings = HEADING.findall(line)
        elif headings and (numbers := _numbers(line.split())) and len(numbers) >= len(headings):
            values = dict(zip(headings, numbers, strict=False))
    return values


def _numbers(words: Iterable[str]) -> list[float]:
    """Return words as numbers, none of them if one is no number."""
    try:
        return [float(word) for word in words]
    except ValueError:
        return []


def _read_fields(json: str) -> PerftestValues:
    return {match[1]: float(match[2]) for match in _FIELD.finditer(json[-_MOST_CHARACTERS:])}


def _wanted(fields: PerftestValues, name: str) -> float:
    if name not in fields:
        next_step = "run it by hand, and see what it says"
        raise InputError(Mistake(where="perftest", found=f"no {name} in what it printed", next_step=next_step))
    if not fields[name] > 0:
        found = f"{name} {fields[name]:g}, which it prints where it cannot calibrate its clock"
        raise InputError(Mistake(where="perftest", found=found, next_step="run it on a machine that is less busy"))
    return fields[name]
