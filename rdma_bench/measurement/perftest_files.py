"""Files with what perftest's programs printed: every row of every run, as text or as their JSON.

Text of several runs may follow one another, stand behind the tags of mpirun or slurm, and have the lines of server and
client mixed; a row belongs to the last heading and the last head of a run above it. A row that cannot be read is
counted. The unit that a heading names MB/sec is MiB/s; JSON names none, and its message rate tells which of the two of
perftest is meant.

Source: perftest, perftest_parameters.c (ctx_print_test_info, RESULT_FMT*), perftest_resources.c (print_report_*).
Left out: columns of single ports and of the CPU, reports of `--report-both`, histograms and raw samples.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabrictune.foundation.documents import MAX_BYTES, read_text
from fabrictune.foundation.errors import InputError, Mistake, quote
from fabrictune.foundation.units import NS_PER_US
from fabrictune.rdma_bench.measurement.perftest_output import BITS_PER_GIGABIT, BITS_PER_MEBIBYTE, HEADING

MAX_ROWS = 100_000
NOT_PRINTED = -1.0
BITS_OF_UNIT: Mapping[str, int] = {"MB": BITS_PER_MEBIBYTE, "MiB": BITS_PER_MEBIBYTE, "Gb": BITS_PER_GIGABIT}
MAX_WHOLE = 2**53

_TITLE = re.compile(r"\b((?:RDMA_|Raw |Atomic )?[A-Z][\w ]*?(?:BW|Latency|Rate)(?: \w+)*) Test\b")
_INFO = re.compile(r"\b(Device|Number of qps|Connection type|Link type|Mtu|GID index)\s*:\s*(\w[\w.-]*)")
_BANDWIDTH = re.compile(r"BW (average|peak)\[(MB|MiB|Gb)/sec\]")
_TIMES = {
    "t_min[usec]": "min_ns",
    "t_max[usec]": "max_ns",
    "t_typical[usec]": "median_ns",
    "t_avg[usec]": "average_ns",
    "99% percentile[usec]": "p99_ns",
    "99.9% percentile[usec]": "p999_ns",
}
_TIMES_OF_JSON = {
    "t_min": "min_ns",
    "t_max": "max_ns",
    "t_typical": "median_ns",
    "t_avg": "average_ns",
    "percentile_99": "p99_ns",
    "percentile_99_9": "p999_ns",
}
_JSON_HEAD = re.compile(r"\s*\{\s*\"?test_info\"?\s*:|\s*\{[^{}]{0,4000}\"?(?:MsgSize|BW_average)\"?\s*:")
_JSON_FIELD = re.compile(r'"?([A-Za-z][\w.]*)"?\s*:\s*"?([\w.+-]+(?: [\w.]+){0,4})"?')
_INFO_OF_JSON = {"Device": "Device", "Number_of_qps": "Number of qps", "test": "test"}


@dataclass(frozen=True, kw_only=True, slots=True)
class PerftestRow:
    """One row of results; NOT_PRINTED for a column that its program does not have."""

    test: str  # as its title: "RDMA_Write BW", "" where it has none
    device: str
    num_queue_pairs: int
    num_directions: int
    size_bytes: int
    num_iterations: int
    where: str
    bandwidth_bps: float = NOT_PRINTED
    peak_bps: float = NOT_PRINTED
    messages_per_s: float = NOT_PRINTED
    min_ns: float = NOT_PRINTED
    median_ns: float = NOT_PRINTED
    average_ns: float = NOT_PRINTED
    p99_ns: float = NOT_PRINTED
    p999_ns: float = NOT_PRINTED
    max_ns: float = NOT_PRINTED


@dataclass(kw_only=True)
class PerftestFile:
    """Rows of a file, and notes on what was left out."""

    path: Path
    rows: list[PerftestRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_perftest(path: Path) -> PerftestFile:
    """Return all rows of a file; raises InputError where it has none."""
    text = read_text(path, max_bytes=MAX_BYTES)
    reader = _Reader(path)
    if _JSON_HEAD.match(text):
        reader.read_json(text)
    else:
        reader.read_text(text)
    return reader.finish()


class _Reader:
    """Reads rows under the last heading and the last head of a run."""

    def __init__(self, path: Path) -> None:
        self.file = PerftestFile(path=path)
        self.info: dict[str, str] = {}
        self.headings: list[str] = []
        self.num_broken = 0
        self.first_broken = ""

    def read_text(self, text: str) -> None:
        for number, line in enumerate(text.split("\n"), start=1):
            heading = line.find("#bytes")
            if heading >= 0:
                headings = HEADING.findall(line[heading:])
                self.headings = headings if headings[:1] == ["#bytes"] else []
            elif title := _TITLE.search(line):
                self.info = {"test": title[1]}
            elif infos := _INFO.findall(line):
                self.info.update(infos)
            elif self.headings and (words := _row_of(line)):
                self._read_row(words, line, f"{self.file.path}:{number}")

    def read_json(self, text: str) -> None:
        """Read the programs' JSON, whose older versions leave out quotes: fields are found by name."""
        values: dict[str, str] = {}
        for match in _JSON_FIELD.finditer(text):
            name, value = match[1], match[2]
            if name in _INFO_OF_JSON:
                self.info[_INFO_OF_JSON[name]] = value.removesuffix(" Test")
            if name == "MsgSize" and values:
                self._add_json(values)
                values = {}
            if name == "MsgSize" or values:
                values[name] = value
        if values:
            self._add_json(values)

    def finish(self) -> PerftestFile:
        """Return the file; raises InputError where it has no row."""
        if not self.file.rows:
            found = f"no row of results{f', {self.num_broken} that cannot be read' if self.num_broken else ''}"
            allowed = "what ib_write_bw, ib_read_lat and the other programs of perftest print"
            raise InputError(Mistake(where=str(self.file.path), found=found, allowed=allowed))
        if self.num_broken:
            note = f"rows that cannot be read, left out: {self.num_broken} (first {self.first_broken})"
            self.file.notes.append(f"{self.file.path}: {note}")
        num_repeated = len(self.file.rows) - len({_content(row) for row in self.file.rows})
        if num_repeated:
            note = f"rows that stand there twice, as server and client print them: {num_repeated}"
            self.file.notes.append(f"{self.file.path}: {note}")
        return self.file

    def _read_row(self, words: list[str], line: str, where: str) -> None:
        numbers = [_number(word) for word in words]
        if len(words) < len(self.headings) or None in numbers or not words[0].isdecimal() or not words[1].isdecimal():
            self._leave_out(line, where)
            return
        columns = dict(zip(self.headings, (number or 0.0 for number in numbers), strict=False))
        values = {name: columns[heading] * NS_PER_US for heading, name in _TIMES.items() if heading in columns}
        for heading, number in columns.items():
            if bandwidth := _BANDWIDTH.fullmatch(heading):
                name = "bandwidth_bps" if bandwidth[1] == "average" else "peak_bps"
                values[name] = number * BITS_OF_UNIT[bandwidth[2]]
        if "MsgRate[Mpps]" in columns:
            values["messages_per_s"] = columns["MsgRate[Mpps]"] * 1e6
        self._add(int(columns["#bytes"]), int(columns.get("#iterations", 0)), values, line, where)

    def _add_json(self, fields: Mapping[str, str]) -> None:
        where = f"{self.file.path}: MsgSize {fields['MsgSize'][:20]}"
        numbers = {name: _number(text) for name, text in fields.items()}
        size, iterations = numbers.get("MsgSize"), numbers.get("n_iterations") or 0.0
        average, rate = numbers.get("BW_average"), numbers.get("MsgRate")
        values = {
            name: (numbers[key] or 0.0) * NS_PER_US
            for key, name in _TIMES_OF_JSON.items()
            if numbers.get(key) is not None
        }
        if size is None or size != int(size):
            self._leave_out(str(dict(fields)), where)
            return
        if average is not None:
            unit = _unit_of_json(average, rate, size)
            if unit is None:
                self._leave_out(f"BW_average {average:g} of an unknown unit", where)
                return
            peak = numbers.get("BW_peak")
            values |= {"bandwidth_bps": average * unit, "peak_bps": NOT_PRINTED if peak is None else peak * unit}
        if rate is not None:
            values["messages_per_s"] = rate * 1e6
        self._add(int(size), int(iterations), values, str(dict(fields)), where)

    def _add(self, size: int, iterations: int, values: dict[str, float], line: str, where: str) -> None:
        if not values or size < 1:
            self._leave_out(line, where)
            return
        if len(self.file.rows) >= MAX_ROWS:
            found, next_step = f"more than {MAX_ROWS:,} rows", "split the file"
            raise InputError(Mistake(where=where, found=found, next_step=next_step))
        test = self.info.get("test", "")
        queue_pairs = self.info.get("Number of qps", "")
        self.file.rows.append(
            PerftestRow(
                test=test.removesuffix(" Test"),
                device=self.info.get("Device", ""),
                num_queue_pairs=int(queue_pairs) if queue_pairs.isdecimal() and len(queue_pairs) < 10 else -1,
                num_directions=2 if "Bidirectional" in test else 1,
                size_bytes=size,
                num_iterations=iterations,
                where=where,
                **values,
            )
        )

    def _leave_out(self, line: str, where: str) -> None:
        self.num_broken += 1
        self.first_broken = self.first_broken or f"{quote(line.strip())} at {where}"


def _row_of(line: str) -> list[str]:
    """Return the words of a row of numbers, behind whatever tag a launcher puts before it, [] for another line."""
    words = line.split()
    start = len(words)
    while start and (words[start - 1][0].isdigit() or words[start - 1] in ("inf", "nan", "-nan")):
        start -= 1
    row = words[start:]
    is_row = len(row) >= 3 and all(re.fullmatch(r"[\d.]+|inf|-?nan", word) for word in row)
    return row if is_row and (start == 0 or words[start - 1][-1] in "]>:|") else []


def _number(text: str) -> float | None:
    """Return a number that is finite and not negative, None for anything else."""
    if not re.fullmatch(r"\d{1,18}(?:\.\d{1,18})?(?:[eE][+-]?\d{1,2})?", text):
        return None
    value = float(text)
    return value if value <= MAX_WHOLE else None


def _unit_of_json(average: float, rate: float | None, size: float) -> int | None:
    """Return the bits of the unit of JSON's bandwidth that fits its rate of messages, None where neither does."""
    if rate is None or rate <= 0 or average <= 0:
        return BITS_PER_GIGABIT  # as the first versions with JSON, which are asked for it with --report_gbits
    bits_per_s = rate * 1e6 * size * 8
    fitting = [unit for unit in set(BITS_OF_UNIT.values()) if abs(average * unit / bits_per_s - 1) < 0.2]
    return fitting[0] if fitting else None


def _content(row: PerftestRow) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in PerftestRow.__slots__ if name != "where")


def rate_contradictions(rows: Sequence[PerftestRow]) -> Iterator[tuple[PerftestRow, float]]:
    """Yield rows whose bandwidth is not their rate of messages times the size, with what that product is.

    Rates have six decimals, in millions: below a thousand messages a second they say little, and no row is compared.
    """
    for row in rows:
        product = row.messages_per_s * row.size_bytes * 8
        if row.bandwidth_bps > 0 and row.messages_per_s >= 1000 and abs(product / row.bandwidth_bps - 1) > 0.01:
            yield row, product
