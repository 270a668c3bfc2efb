"""Counters in JSON: `rdma -j statistic show link` and `ethtool --json -S`, objects with `ifname`.

Source: iproute2, rdma/stat.c; ethtool, netlink/stats.c.
Left out: counters of single queue pairs (`rdma -j statistic qp show`).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fabrictune.foundation.documents import load_json_sequence
from fabrictune.rdma_bench.counters.readings import Reading, Value, whole_number

_IDENTITIES = ("ifindex", "ifname", "port", "type", "dev", "comm", "pid")
_OF_QUEUE_PAIRS = ("lqpn", "cntn", "qp-type")


def read_json_counters(path: Path) -> Reading:
    """Return the counters of one file; raises InputError for JSON that is broken."""
    reading = Reading(path=path)
    for document in load_json_sequence(path):
        rows = document.tree if isinstance(document.tree, list) else [document.tree]
        for number, row in enumerate(rows):
            if not isinstance(row, dict) or any(key in row for key in _OF_QUEUE_PAIRS):
                what = "counters of a queue pair" if isinstance(row, dict) else str(row)
                reading.leave_out(what, f"{path}: row {number}")
            else:
                _read_row(row, reading, f"{path}: row {number}")
    return reading.finish()


def _read_row(row: Mapping[str, Any], reading: Reading, where: str) -> None:
    device, port = row.get("ifname"), row.get("port")
    name_of_device = device if isinstance(device, str) else ""
    if name_of_device and isinstance(port, int):
        name_of_device = f"{name_of_device}/{port}"
    for name, value in _leaves(row):
        number = whole_number(str(value)) if isinstance(value, int | str) else None
        if number is None:
            reading.leave_out(f"{name}: {value}", where)
        else:
            reading.add(Value(device=name_of_device, name=name, value=number, where=where))


def _leaves(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of an object and of those in it, without what says whose they are."""
    pending = [*row.items()][::-1]
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            pending.extend([*value.items()][::-1])
        elif name not in _IDENTITIES:
            yield name, value
