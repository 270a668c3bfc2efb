"""The table that nccl-tests prints: one row for each size, with the bandwidth it reached.

Both layouts are read: the old one without a root column and with `error`, the new one with `root` and `#wrong`. Rows
are told by their shape and not by their place, since NCCL's own log lines stand between them.

Source: nccl-tests, src/common.cu and doc/PERFORMANCE.md (algbw, busbw).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from collectives.nccl.log_lines import NOBODY, read_log_lines
from foundation.errors import InputError, Mistake

BPS_PER_GB_PER_S = 8e9
NS_PER_US = 1000.0
MAX_ROWS = 1_000_000

_COUNT = r"\d{1,18}"
_NUMBER = r"\d{1,18}(?:\.\d{1,9})?(?:e[+-]\d{1,2})?"
_TIMING = rf"\s{{1,40}}({_NUMBER}|N/A)\s{{1,40}}({_NUMBER}|N/A)\s{{1,40}}({_NUMBER}|N/A)\s{{1,40}}({_NUMBER}|N/A)"
_ROW = re.compile(
    rf"^\s*({_COUNT})\s{{1,40}}({_COUNT})\s{{1,40}}([a-z]\w{{1,20}})"
    rf"(?:\s{{1,40}}([a-z]\w{{1,20}}))?(?:\s{{1,40}}(-?\d{{1,7}}))?{_TIMING}(?:{_TIMING})?\s*$"
)
_AVERAGE = re.compile(rf"^#\s{{1,9}}Avg bus bandwidth\s{{1,9}}:\s{{1,9}}({_NUMBER})")
_OUT_OF_BOUNDS = re.compile(r"^#\s{1,9}Out of bounds values\s{1,9}:\s{1,9}(\d{1,18})")


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How long one size took."""

    duration_ns: float
    algorithm_bandwidth_bps: float
    bus_bandwidth_bps: float
    num_wrong: float | None  # elements, or their greatest error in the old layout; None where it was not checked


@dataclass(frozen=True, kw_only=True)
class TestRow:
    """One size."""

    __test__ = False  # no test case of pytest's

    size_bytes: int
    num_elements: int
    type: str
    reduction: str  # "" for an operation that reduces nothing
    root: int | None  # None in the old layout
    out_of_place: Timing | None  # None where it was not run
    in_place: Timing | None
    where: str


@dataclass(frozen=True, kw_only=True)
class TestOutput:
    """What one run printed."""

    __test__ = False

    rows: tuple[TestRow, ...]
    average_bus_bandwidth_bps: float | None  # None where the run did not come to its end
    num_out_of_bounds: int | None


def read_test_output(paths: Sequence[Path]) -> TestOutput:
    """Read the output of one run; raises InputError where it has no row."""
    rows: list[TestRow] = []
    average, num_out_of_bounds = None, None
    for path in paths:
        for line in read_log_lines(path):
            if line.host != NOBODY:
                continue
            if match := _ROW.match(line.message):
                rows.append(_row(match, line.where))
            elif match := _AVERAGE.match(line.message):
                average = float(match[1]) * BPS_PER_GB_PER_S
            elif match := _OUT_OF_BOUNDS.match(line.message):
                num_out_of_bounds = int(match[1])
            if len(rows) > MAX_ROWS:
                raise InputError(Mistake(where=line.where, found=f"more than {MAX_ROWS:,} rows"))
    if not rows:
        found, allowed = "no row of nccl-tests", "size, count, type, ..., time, algbw, busbw, #wrong"
        raise InputError(Mistake(where=", ".join(str(path) for path in paths), found=found, allowed=allowed))
    return TestOutput(rows=tuple(rows), average_bus_bandwidth_bps=average, num_out_of_bounds=num_out_of_bounds)


def _row(match: re.Match[str], where: str) -> TestRow:
    size, count, kind, reduction, root, *timings = match.groups()
    return TestRow(
        size_bytes=int(size),
        num_elements=int(count),
        type=kind,
        reduction="" if reduction in (None, "none") else reduction,
        root=None if root is None else int(root),
        out_of_place=_timing(timings[:4]),
        in_place=_timing(timings[4:]),
        where=where,
    )


def _timing(texts: Sequence[str | None]) -> Timing | None:
    duration, algorithm, bus, wrong = texts
    if duration is None or algorithm is None or bus is None or "N/A" in (duration, algorithm, bus):
        return None
    return Timing(
        duration_ns=float(duration) * NS_PER_US,
        algorithm_bandwidth_bps=float(algorithm) * BPS_PER_GB_PER_S,
        bus_bandwidth_bps=float(bus) * BPS_PER_GB_PER_S,
        num_wrong=None if wrong is None or wrong == "N/A" else float(wrong),
    )
