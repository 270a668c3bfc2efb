"""Series of measured times: what one program measured of one operation over sizes, on as many ranks or queue pairs.

Places and repetitions of a size are one point, their median: they share what the model gets wrong, and would count as
many where they are one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.units import NS_PER_US, format_bytes

Kind = Literal["collective", "latency", "bandwidth"]
CONTRADICTION = 1.5  # times between two files of one series, in the median of their sizes
_MOST_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class SeriesKey:
    """What was measured."""

    kind: Kind
    operation: str  # in BENCHED, or the title of perftest's program
    num_ranks: int = 2
    num_hosts: int = 2
    device: str = ""  # of perftest
    num_queue_pairs: int = 1  # of perftest
    is_local: bool = False  # ranks of one host that talk over the network's own path, as gloo does

    @property
    def label(self) -> str:
        """Name of the series for people."""
        if self.kind != "collective":
            pairs = f"{self.num_queue_pairs} queue pair{'s' if self.num_queue_pairs != 1 else ''}"
            return ", ".join(filter(None, (self.operation, self.device, pairs)))
        hosts = f"{self.num_hosts} host{'s' if self.num_hosts > 1 else ''}"
        return f"{self.operation}, {self.num_ranks} ranks on {hosts}"


@dataclass(frozen=True, kw_only=True)
class MeasuredTime:
    """One time of one file."""

    key: SeriesKey
    size_bytes: int
    time_ns: float
    source: Path


@dataclass(frozen=True, kw_only=True)
class Series:
    """Times of one series by rising size, each the median of what was measured of it."""

    key: SeriesKey
    size_bytes: tuple[int, ...]
    time_ns: tuple[float, ...]
    sources: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.size_bytes)


def make_series(times: Iterable[MeasuredTime]) -> list[Series]:
    """Return the series in the order in which they come; raises InputError where two files contradict each other."""
    by_key: dict[SeriesKey, dict[Path, dict[int, list[float]]]] = {}
    for one in times:
        sizes = by_key.setdefault(one.key, {}).setdefault(one.source, {})
        sizes.setdefault(one.size_bytes, []).append(one.time_ns)
    return [_series(key, by_source) for key, by_source in by_key.items()]


def _series(key: SeriesKey, by_source: Mapping[Path, Mapping[int, Sequence[float]]]) -> Series:
    _refuse_contradictions(key, by_source)
    together: dict[int, list[float]] = defaultdict(list)
    for sizes in by_source.values():
        for size, times in sizes.items():
            together[size].extend(times)
    ordered = sorted(together)
    return Series(
        key=key,
        size_bytes=tuple(ordered),
        time_ns=tuple(median(together[size]) for size in ordered),
        sources=tuple(by_source),
    )


def _refuse_contradictions(key: SeriesKey, by_source: Mapping[Path, Mapping[int, Sequence[float]]]) -> None:
    """Raise InputError where a file's times are others than those of the first file that has the same sizes."""
    sources = list(by_source.items())
    for number, (path, sizes) in enumerate(sources):
        for other_path, other in sources[:number]:
            common = sorted(sizes.keys() & other.keys())
            if not common:
                continue
            ratios = {size: median(sizes[size]) / median(other[size]) for size in common}
            ratio = median(ratios.values())
            if not 1 / CONTRADICTION <= ratio <= CONTRADICTION:
                shown = ", ".join(
                    f"{format_bytes(size)} {median(sizes[size]) / NS_PER_US:.4g} and"
                    f" {median(other[size]) / NS_PER_US:.4g} us"
                    for size in common[:_MOST_NAMED]
                )
                raise InputError(
                    Mistake(
                        where=f"{path} and {other_path}",
                        found=f"{key.label} twice, {ratio:.2g} times as long in the first: {shown}",
                        allowed=f"times of one system, within a factor of {CONTRADICTION}",
                        next_step="fit each system by itself, or say what differs (--num-hosts, --operation)",
                    )
                )
