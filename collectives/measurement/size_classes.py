"""Measurements by classes of size, for results of dozens of sizes: a class is four powers of two wide."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from fabrictune.collectives.measurement.measurements import Measurement

CLASS_BITS = 4


@dataclass(frozen=True, kw_only=True)
class SizeClass:
    """Measurements of one operation, place and number of ranks whose sizes are within a factor of 16."""

    rows: tuple[Measurement, ...]  # by size

    @property
    def largest(self) -> Measurement:
        """Return the measurement of the largest size."""
        return self.rows[-1]

    @property
    def median_busbw_bps(self) -> float:
        """Return the median bus bandwidth."""
        return median(row.bus_bandwidth_bps for row in self.rows)

    @property
    def best(self) -> Measurement:
        """Return the measurement of the highest bus bandwidth."""
        return max(self.rows, key=lambda row: row.bus_bandwidth_bps)


def size_class(size_bytes: int) -> int:
    """Return the class of a size: 0 for 1 to 15 B, 1 for 16 to 255 B."""
    return (size_bytes.bit_length() - 1) // CLASS_BITS


def size_classes(rows: Iterable[Measurement]) -> Sequence[SizeClass]:
    """Return the classes in the order of operations, places and sizes."""
    groups = defaultdict[tuple[str, bool, int], dict[int, list[Measurement]]](lambda: defaultdict(list))
    for row in rows:
        groups[row.name, row.is_in_place, row.num_ranks][size_class(row.size_bytes)].append(row)
    return [
        SizeClass(rows=tuple(sorted(group[number], key=lambda row: row.size_bytes)))
        for group in groups.values()
        for number in sorted(group)
    ]
