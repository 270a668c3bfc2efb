"""A dump of PyTorch's flight recorder as evidence: requests of one rank, with the line that issued them.

Messages between two ranks are a group of their own. The recorder numbers them by rank and keeps the newest requests
only, so that they are counted from the last one that is complete.

Left out: requests of a group that is in no entry, where the status of the dump does not say its name.
"""

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

from fabrictune.collectives.traces.flight_recorder import (
    is_flight_recorder,
    listed_groups,
    load_dump,
    rank_of_dump,
)
from fabrictune.observability.hangs.evidence import (
    MAX_REQUESTS,
    MAX_TIMINGS,
    UNKNOWN,
    Evidence,
    Group,
    Progress,
    Request,
    Timing,
    Who,
)

SOURCE = "flight recorder"
JOB_GROUP = "default_pg"
MAX_COMPLETED = 8  # complete requests of a group that are kept, the newest
_MESSAGE = re.compile(r"(?:\w+:)?(send|recv) (\d{1,10})(->|<-)(\d{1,10})")
_DONE = "completed"
_MOST_MS = 1e10
_WIDTHS = {
    **dict.fromkeys(("double", "long", "complexfloat"), 8),
    **dict.fromkeys(("float", "int"), 4),
    **dict.fromkeys(("half", "bfloat16", "short"), 2),
    **dict.fromkeys(("byte", "char", "bool", "float8_e4m3fn", "float8_e5m2"), 1),
}  # bytes of an element, by PyTorch's name of the type

__all__ = ["is_flight_recorder", "read_dump_evidence"]


def read_dump_evidence(path: Path) -> Evidence:
    """Return what a rank's dump says; raises TraceError."""
    rank, dump = rank_of_dump(path), load_dump(path)
    reader = _Reader(rank, path, dump.get("pg_config"))
    for place, entry in enumerate(dump["entries"]):
        reader.read(place, entry)
    reader.read_status(dump.get("pg_status"))
    notes = [f"{path}: entries that are no request, left out: {reader.num_left_out:,}"] if reader.num_left_out else []
    return Evidence(
        source=SOURCE,
        groups=tuple(reader.groups()),
        progress=tuple(reader.progress()),
        timings=tuple(timing for kept in reader.timings.values() for timing in kept),
        notes=tuple(notes),
    )


class _Reader:
    """Collects a rank's requests by group."""

    def __init__(self, rank: int, path: Path, configuration: Any) -> None:
        self._who, self._path = Who(rank=rank), path
        self._configuration: Mapping[Any, Any] = configuration if isinstance(configuration, dict) else {}
        self._listed: dict[str, tuple[int, ...]] = {}  # ranks of groups
        self._labels: dict[str, str] = {}
        self._pairs: dict[str, tuple[int, int]] = {}
        self._name_of_id: dict[str, str] = {}
        self._last: dict[str, list[int | None]] = {}  # issued, started, completed
        self._where: dict[str, str] = {}
        self._requests: dict[str, dict[int, Request]] = {}
        self._num_messages = Counter[str]()
        self.timings: dict[str, deque[Timing]] = {}
        self.num_left_out = 0

    def read(self, place: int, entry: Any) -> None:
        """Add an entry of the dump."""
        try:
            name, number, pair = self._group_of(entry)
        except (KeyError, TypeError, ValueError, IndexError):
            self.num_left_out += 1
            return
        if pair is not None:
            self._pairs[name] = pair
        has_started = entry.get("state") in ("started", _DONE) or bool(entry.get("time_discovered_started_ns"))
        is_done = entry.get("state") == _DONE or bool(entry.get("time_discovered_completed_ns"))
        last = self._last.setdefault(name, [None, None, None])
        for slot, holds in enumerate((True, has_started, is_done)):
            if holds and (last[slot] is None or last[slot] < number):  # type: ignore[operator]
                last[slot] = number
        self._where[name] = f"{self._path}, entry {place}"
        elapsed_ms = entry.get("duration_ms")
        if is_done and isinstance(elapsed_ms, int | float) and 0 < elapsed_ms <= _MOST_MS:
            timing = Timing(
                who=self._who, group=name, number=number, request=_request(entry), elapsed_us=1000.0 * elapsed_ms
            )
            self.timings.setdefault(name, deque(maxlen=MAX_TIMINGS)).append(timing)
        kept = self._requests.setdefault(name, {})
        if (not is_done and len(kept) < MAX_REQUESTS) or (is_done and pair is None):
            kept[number] = _request(entry)
            if is_done and len(kept) > MAX_COMPLETED:
                kept.pop(min(kept))

    def read_status(self, status: Any) -> None:
        """Add what the dump says of groups whose requests are no longer in it."""
        for identity, values in status.items() if isinstance(status, dict) else ():
            name = self._name_of_id.get(str(identity), str(identity))
            if name not in self._configuration or not isinstance(values, dict):
                continue
            last = self._last.setdefault(name, [None, None, None])
            self._where.setdefault(name, f"{self._path}, pg_status {identity}")
            for slot, key in enumerate(("enqueued", "started", "completed")):
                number = _whole(values.get(f"last_{key}_collective"))
                if number is not None and number > 0 and (last[slot] is None or last[slot] < number):  # type: ignore[operator]
                    last[slot] = number

    def groups(self) -> Iterator[Group]:
        """Yield the groups in which the rank has requests, and that of the whole job."""
        wholes = [name for name, entry in self._configuration.items() if _label(entry) == JOB_GROUP]
        for name in dict.fromkeys((*map(str, wholes), *self._last)):
            ranks: Sequence[int] = self._pairs.get(name) or self._ranks(name)
            label = _label(self._configuration.get(name)) or self._labels.get(name, "")
            yield Group(
                name=name,
                label="" if label == "undefined" else label[:80],
                size=len(ranks) or UNKNOWN,
                members=_members(tuple(ranks)),
                is_job=label == JOB_GROUP,
            )

    def progress(self) -> Iterator[Progress]:
        """Yield how far the rank has come in each group."""
        for name, (issued, started, completed) in self._last.items():
            yield Progress(
                who=self._who,
                group=name,
                where=self._where[name],
                issued=issued,
                started=started,
                completed=-1 if completed is None else completed,
                requests=self._requests.get(name, {}),
            )

    def _ranks(self, name: str) -> tuple[int, ...]:
        """Return the ranks of a group, none where the dump does not list them."""
        if name not in self._listed:
            self._listed[name] = listed_groups({name: self._configuration.get(name)}).get(name, ())
        return self._listed[name]

    def _group_of(self, entry: Any) -> tuple[str, int, tuple[int, int] | None]:
        """Return the group of an entry, its number in it, and the ends of a message; raises for what is no request."""
        group, kind = entry["process_group"], str(entry["profiling_name"])
        name = str(group[0])[:200]
        self._labels.setdefault(name, str(group[1]) if len(group) > 1 else "")
        if "pg_id" in entry:
            self._name_of_id[str(entry["pg_id"])] = name
        if match := _MESSAGE.fullmatch(kind):
            own, other = (self._ranks(name)[int(place)] for place in (match[2], match[4]))
            pair = (own, other) if match[1] == "send" else (other, own)
            key = f"{name}: {pair[0]} to {pair[1]}"
            self._labels.setdefault(key, self._labels[name])
            if entry.get("state") == _DONE:
                self._num_messages[key] = 0
                return key, 0, pair
            self._num_messages[key] += 1
            return key, self._num_messages[key], pair
        number = _whole(entry.get("collective_seq_id"))
        if number is None:
            raise ValueError(kind)
        return name, number, None


def _label(entry: Any) -> str:
    return str(entry.get("desc", "")) if isinstance(entry, dict) else ""


@lru_cache(maxsize=1024)
def _members(ranks: tuple[int, ...]) -> Mapping[int, Who]:
    """Return the processes of a group, which the dumps of all its ranks share."""
    return {place: Who(rank=rank) for place, rank in enumerate(ranks)}


def _request(entry: Mapping[str, Any]) -> Request:
    frames = entry.get("frames")
    first = frames[0] if isinstance(frames, list) and frames and isinstance(frames[0], dict) else None
    tag = f"{first.get('name')} ({first.get('filename')}:{first.get('line')})" if first else ""
    return Request(
        kind=str(entry.get("profiling_name")).partition(":")[2][:80],
        size=_num_elements(entry.get("input_sizes")),
        tag=tag[:200],
        num_bytes=_num_bytes(entry),
    )


def _num_bytes(entry: Mapping[str, Any]) -> int:
    """Return the larger of a request's input and output, as nccl-tests counts; UNKNOWN without its type."""
    types = entry.get("input_dtypes")
    width = _WIDTHS.get(str(types[0]).lower(), 0) if isinstance(types, list | tuple) and types else 0
    most = max(_num_elements(entry.get("input_sizes")), _num_elements(entry.get("output_sizes")))
    return width * most if width and 0 <= most < 2**58 else UNKNOWN


def _num_elements(shapes: Any) -> int:
    try:
        return sum(prod(shape) for shape in shapes) if isinstance(shapes, list | tuple) else UNKNOWN
    except TypeError:
        return UNKNOWN


def _whole(value: Any) -> int | None:
    """Return a number of a dump, which JSON dumps write as text; None for what is none."""
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and len(value) < 20:
        value = int(value)
    return value if type(value) is int and -1 <= value < 2**62 else None
