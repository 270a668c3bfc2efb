"""Text that nccl-tests prints: one row for each size, with the bandwidth it reached.

All its layouts are read: the old one without a root column and with `error`, the new ones with `root` and `#wrong`,
with a spread of iterations behind each timing, with a time stamp behind each row, and with one of the two timings
alone, which is then taken to be out of place. Rows are known by their shape and not by their place, since NCCL's own
log lines are between them. A file may hold several runs, one behind the other.

Source: nccl-tests, src/common.cu and src/util.cu.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from fabrictune.collectives.nccl.log_lines import NO_HOST, read_log_lines
from fabrictune.collectives.nccl.tests_output import BPS_PER_GB_PER_S, MAX_ROWS, Spread, TestOutput, TestRow, Timing
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.units import NS_PER_US

MAX_RANKS = 1_000_000
MAX_MISSING = 1000  # ranks that the list lacks, counted up to here
TIMING_WORDS, SPREAD_WORDS = 4, 4

_TAG = re.compile(r"(?:\[[\d,]{1,20}\]<std(?:out|err)>:?|\d{1,6}:)\s{0,40}")  # of mpirun --tag-output and srun -l
_COUNT = re.compile(r"\d{1,18}")
_NAME = re.compile(r"[a-z]\w{1,20}")
_ROOT = re.compile(r"-?\d{1,7}")
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,9})?(?:e[+-]\d{1,2})?")
_NO_NUMBERS = ("N/A", "nan", "-nan", "inf")
_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")
_BEGIN = re.compile(r"#\s{0,9}(?:nThread\s|nccl-tests version\s|Collective test starting:)")
_PROGRAM = re.compile(
    r"\b((?:all_reduce|all_gather|reduce_scatter|broadcast|reduce|alltoallv?|sendrecv|gather|scatter|hypercube)_perf)\b"
)
_RANK = re.compile(
    r"#\s{1,9}Rank\s{1,9}(\d{1,7})\s{1,9}(?:Group\s{1,9}(\d{1,7})\s{1,9})?Pid\s{1,9}\d{1,10} on\s{1,80}(\S{1,255})"
)
_ROW_BEGIN = re.compile(r"\d{1,18}\s{1,40}\d{1,18}\s{1,40}[a-z]\w{1,20}\s{1,40}(?:[a-z]\w{1,20}\s|-?\d|N/A)")
_AVERAGE = re.compile(rf"#\s{{1,9}}Avg bus bandwidth\s{{1,9}}:\s{{1,9}}({_NUMBER.pattern})")
_OUT_OF_BOUNDS = re.compile(r"#\s{1,9}Out of bounds values\s{1,9}:\s{1,9}(\d{1,18})")


def read_test_text(paths: Sequence[Path]) -> tuple[TestOutput, ...]:
    """Read the output of one run or of several; raises InputError where no run has a row."""
    runs = [_Run()]
    num_rows = 0
    for path in paths:
        for line in read_log_lines(path):
            if line.host != NO_HOST:
                continue
            tag = _TAG.match(line.message)
            text = line.message[tag.end() :] if tag else line.message
            if _BEGIN.match(text) and runs[-1].is_under_way:
                runs.append(_Run())
            num_rows += runs[-1].take(text, line.where)
            if num_rows > MAX_ROWS:
                raise InputError(
                    Mistake(
                        where=line.where,
                        found=f"more than {MAX_ROWS:,} rows",
                        next_step="import the runs of the file one by one",
                    )
                )
    if not num_rows:
        found, allowed = "no row of nccl-tests", "size, count, type, ..., time, algbw, busbw, #wrong"
        raise InputError(Mistake(where=", ".join(str(path) for path in paths), found=found, allowed=allowed))
    return tuple(run.output() for run in runs if run.rows)


@dataclass
class _Run:
    """One run, as far as it has been read."""

    rows: list[TestRow] = field(default_factory=list)
    ranks: dict[tuple[int, int], str] = field(default_factory=dict)  # group and rank -> host
    program: str = ""
    has_spread: bool = False
    num_unread_rows: int = 0
    average: float | None = None
    num_out_of_bounds: int | None = None

    @property
    def is_under_way(self) -> bool:
        return bool(self.rows or self.ranks)

    def take(self, text: str, where: str) -> int:
        """Take a line; returns how many rows it is."""
        if not text.startswith("#"):
            row = _row(text, where, has_spread=self.has_spread)
            self.rows += [row] if row else []
            self.num_unread_rows += row is None and _ROW_BEGIN.match(text) is not None
            if row is None and not self.program and (match := _PROGRAM.search(text)):
                self.program = match[1]  # the command line, where somebody has noted it
            return row is not None
        if match := _RANK.match(text):
            if len(self.ranks) < MAX_RANKS:
                self.ranks[int(match[2] or 0), int(match[1])] = match[3]
        elif match := _AVERAGE.match(text):
            self.average = float(match[1]) * BPS_PER_GB_PER_S
        elif match := _OUT_OF_BOUNDS.match(text):
            self.num_out_of_bounds = int(match[1])
        elif _BEGIN.match(text) and (match := _PROGRAM.search(text)):
            self.program = match[1]
        elif "busbw" in text:
            self.has_spread = "i_min" in text
        return 0

    def output(self) -> TestOutput:
        sizes = set(Counter(group for group, _ in self.ranks).values())
        return TestOutput(
            rows=tuple(self.rows),
            average_bus_bandwidth_bps=self.average,
            num_out_of_bounds=self.num_out_of_bounds,
            program=self.program,
            num_ranks=sizes.pop() if len(sizes) == 1 else 0,
            missing_ranks=self._missing_ranks(),
            num_unread_rows=self.num_unread_rows,
            hosts=tuple(dict.fromkeys(self.ranks.values())),
        )

    def _missing_ranks(self) -> tuple[int, ...]:
        """Return the gaps in the listed ranks, which are numbered over all groups."""
        listed = {rank for _, rank in self.ranks}
        return tuple(islice((rank for rank in range(max(listed, default=0)) if rank not in listed), MAX_MISSING))


def _row(text: str, where: str, *, has_spread: bool) -> TestRow | None:
    """Return the row that a line is, None for any other line."""
    words = _STAMP.sub("", text).split(maxsplit=40)
    if len(words) < 3 + TIMING_WORDS or not (_COUNT.fullmatch(words[0]) and _COUNT.fullmatch(words[1])):
        return None
    if not _NAME.fullmatch(words[2]):
        return None
    reduction = words[3] if _NAME.fullmatch(words[3]) and words[3] not in _NO_NUMBERS else None
    rest = words[3 if reduction is None else 4 :]
    root = rest.pop(0) if len(rest) % 4 == 1 and _ROOT.fullmatch(rest[0]) else None
    timings = list(_timings(rest, TIMING_WORDS + (SPREAD_WORDS if has_spread else 0)))
    if not 1 <= len(timings) <= 2 or not all(word in _NO_NUMBERS or _NUMBER.fullmatch(word) for word in rest):
        return None
    return TestRow(
        size_bytes=int(words[0]),
        num_elements=int(words[1]),
        type=words[2],
        reduction="" if reduction in (None, "none") else str(reduction),
        root=None if root is None else int(root),
        out_of_place=_timing(timings[0]),
        in_place=_timing(timings[1]) if len(timings) == 2 else None,
        where=where,
    )


def _timings(words: Sequence[str], length: int) -> Iterator[Sequence[str]]:
    """Yield the words of each timing; none if they do not come out even."""
    if words and len(words) % length == 0:
        yield from (words[first : first + length] for first in range(0, len(words), length))


def _timing(words: Sequence[str]) -> Timing | None:
    duration, algorithm, bus, wrong, *spread = words
    if any(word in _NO_NUMBERS for word in (duration, algorithm, bus)):
        return None
    return Timing(
        duration_ns=float(duration) * NS_PER_US,
        algorithm_bandwidth_bps=float(algorithm) * BPS_PER_GB_PER_S,
        bus_bandwidth_bps=float(bus) * BPS_PER_GB_PER_S,
        num_wrong=None if wrong in _NO_NUMBERS else float(wrong),
        spread=_spread(spread) if spread and not set(spread) & set(_NO_NUMBERS) else None,
    )


def _spread(words: Sequence[str]) -> Spread:
    least, most, p99, percent = map(float, words)
    return Spread(
        min_ns=least * NS_PER_US, max_ns=most * NS_PER_US, p99_ns=p99 * NS_PER_US, variation_fraction=percent / 100
    )
