"""JSON that nccl-tests writes (`-J FILE`): one run, its configuration, devices, environment and rows.

The environment is redacted before anything else sees it. Of each process the file has the first device alone, so that
the number of ranks is that of processes times the threads and GPUs of each.

Source: nccl-tests, src/util.cu, file versions 1 and 2.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from fabrictune.collectives.nccl.redaction import redact
from fabrictune.collectives.nccl.tests_output import BPS_PER_GB_PER_S, MAX_ROWS, Spread, TestOutput, TestRow, Timing
from fabrictune.foundation.documents import Document, Key, load_json
from fabrictune.foundation.errors import InputError, Mistake, quote
from fabrictune.foundation.units import NS_PER_US

MAX_BYTES = 64 * 2**20  # a run that times every iteration of every process has millions of numbers


def read_test_json(path: Path) -> TestOutput:
    """Read a run; raises InputError for what is none."""
    document = load_json(path, max_bytes=MAX_BYTES)
    reader = _Reader(document)
    tree = document.tree
    if not isinstance(tree, dict) or not isinstance(tree.get("results"), list):
        raise InputError(
            Mistake(where=str(path), found="no list `results`", allowed="the file of nccl-tests' option -J")
        )
    if len(tree["results"]) > MAX_ROWS:
        found, next_step = f"{len(tree['results']):,} rows", "give fewer runs in a file"
        raise InputError(Mistake(where=str(path), found=found, allowed=f"{MAX_ROWS:,}", next_step=next_step))
    config = reader.mapping(tree.get("config", {}), "config")
    devices = reader.sequence(config.get("devices", []), "config", "devices")
    hosts = [str(reader.mapping(one, "config", "devices", row).get("hostname", "")) for row, one in enumerate(devices)]
    per_process = math.prod(reader.count(config.get(name, 1), "config", name) for name in ("nthreads", "ngpus"))
    program = str(next(iter(reader.sequence(tree.get("args", []), "args")), "")).rpartition("/")[2]
    rows = tuple(reader.row(row, one) for row, one in enumerate(tree["results"]))
    if not rows:
        raise InputError(Mistake(where=document.where("results"), found="no row"))
    average = reader.mapping(tree.get("average_bus_bandwidth", {}), "average_bus_bandwidth").get("bandwidth")
    errors = reader.mapping(tree.get("out_of_bounds", {}), "out_of_bounds").get("count")
    return TestOutput(
        rows=rows,
        average_bus_bandwidth_bps=_scaled(reader.number(average, "average_bus_bandwidth"), BPS_PER_GB_PER_S),
        num_out_of_bounds=None if errors is None else reader.count(errors, "out_of_bounds", "count"),
        program=program if program.endswith("_perf") else "",
        num_ranks=len(devices) * per_process,
        hosts=tuple(dict.fromkeys(host for host in hosts if host)),
        settings=redact(map(str, reader.sequence(tree.get("env", []), "env")), hosts),
    )


@dataclass(frozen=True)
class _Reader:
    """Values of the file, or InputError with their place."""

    document: Document

    def row(self, number: int, value: Any) -> TestRow:
        keys: tuple[Key, ...] = ("results", number)
        row = self.mapping(value, *keys)
        reduction, root = str(row.get("redop", "none")), str(row.get("root", "")).strip()
        return TestRow(
            size_bytes=self.count(row.get("size"), *keys, "size"),
            num_elements=self.count(row.get("count"), *keys, "count"),
            type=str(row.get("type", "")),
            reduction="" if reduction == "none" else reduction,
            root=int(root) if root.removeprefix("-").isdecimal() and len(root) < 9 else None,
            out_of_place=self.timing(row, "out_of_place", *keys),
            in_place=self.timing(row, "in_place", *keys),
            where=f"{self.document.path}: results[{number}]",
        )

    def timing(self, row: Mapping[str, Any], place: str, *keys: Key) -> Timing | None:
        timing = self.mapping(row.get(place) or {}, *keys, place)
        duration = self.number(timing.get("time", timing.get("cpu_time")), *keys, place, "time")
        algorithm, bus, wrong = (
            self.number(timing.get(key), *keys, place, key) for key in ("alg_bw", "bus_bw", "nwrong")
        )
        if duration is None or algorithm is None or bus is None:
            return None
        return Timing(
            duration_ns=duration * NS_PER_US,
            algorithm_bandwidth_bps=algorithm * BPS_PER_GB_PER_S,
            bus_bandwidth_bps=bus * BPS_PER_GB_PER_S,
            num_wrong=wrong,
            spread=self.spread(row, f"{place}_per_iter", *keys),
        )

    def spread(self, row: Mapping[str, Any], place: str, *keys: Key) -> Spread | None:
        timing = self.mapping(row.get(place) or {}, *keys, place)
        numbers = [self.number(timing.get(key), *keys, place, key) for key in ("min_us", "max_us", "p99_us", "cv_pct")]
        least, most, p99, percent = (math.nan if number is None else number for number in numbers)
        if math.isnan(least + most + p99 + percent):
            return None
        return Spread(
            min_ns=least * NS_PER_US, max_ns=most * NS_PER_US, p99_ns=p99 * NS_PER_US, variation_fraction=percent / 100
        )

    def number(self, value: Any, *keys: Key) -> float | None:
        """Return a number of 0 or more, None for null and "nan"."""
        if value is None or value == "nan":
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            self.refuse(value, "a number from 0 on", *keys)
        return float(value)

    def count(self, value: Any, *keys: Key) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.refuse(value, "a whole number from 0 on", *keys)
        return value

    def mapping(self, value: Any, *keys: Key) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            self.refuse(value, "an object", *keys)
        return value

    def sequence(self, value: Any, *keys: Key) -> Sequence[Any]:
        if not isinstance(value, list):
            self.refuse(value, "a list", *keys)
        return value

    def refuse(self, value: Any, allowed: str, *keys: Key) -> NoReturn:
        raise InputError(Mistake(where=self.document.where(*keys), found=quote(repr(value)), allowed=allowed))


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
