"""Output of an nccl-tests run, text or JSON: rows of sizes and the run's header.

Source: nccl-tests, src/common.cu, src/util.cu and doc/PERFORMANCE.md (algbw, busbw).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_ROWS = 100_000  # of a file; a run has tens, and one of every size some thousands
BPS_PER_GB_PER_S = 8e9


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Spread of the iterations of one size, where the run timed each."""

    min_ns: float
    max_ns: float
    p99_ns: float
    variation_fraction: float  # standard deviation over mean


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Time of one size."""

    duration_ns: float
    algorithm_bandwidth_bps: float
    bus_bandwidth_bps: float
    num_wrong: float | None  # elements, or their greatest error in the old layout; None where it was not checked
    spread: Spread | None = None


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
    """Report of one run."""

    __test__ = False

    rows: tuple[TestRow, ...]
    average_bus_bandwidth_bps: float | None  # None where the run did not come to its end
    num_out_of_bounds: int | None
    program: str = ""  # "all_reduce_perf"; "" where the run does not say
    num_ranks: int = 0  # that run the operation together; 0 where the run does not say
    missing_ranks: tuple[int, ...] = ()  # numbers below the highest listed one that the list lacks
    num_unread_rows: int = 0  # lines that begin like a row and are none
    hosts: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)  # what is left of the environment after redaction
