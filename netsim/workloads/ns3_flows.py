"""Flow files of HPCC's ns-3 simulator and its descendants: a line for each flow between numbered hosts.

    2
    2 1 3 100 200000000 2
    3 1 3 100 200000000 2

The head is the number of flows; what follows that many lines is not read. A line is source, destination, priority
group, UDP port of the destination, bytes and start in seconds; a form without one of the two middle numbers is read as
well, its middle number a priority if it is one. Starts are counted from the first of the file; HPCC begins at 2 s.

Source: alibaba-edu/High-Precision-Congestion-Control, simulation/scratch/third.cc (ReadFlowInput); forks of it, such as
conweave-project/conweave-ns3.
Left out: ports of destinations (source ports follow from numbers of queue pairs), and the form of bobzhuyb/ns3-rdma
with counts of packets and stop times, which cannot be told apart.
"""

import io
import re
from decimal import Decimal
from itertools import islice
from pathlib import Path

from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import quote
from fabrictune.foundation.foreign_files import read_head
from fabrictune.foundation.units import PS_PER_S, format_duration
from fabrictune.netsim.workloads.flow_lists import (
    MAX_FILE_BYTES,
    MAX_FLOWS,
    MAX_SIZE_BYTES,
    MAX_START_PS,
    NUM_PRIORITIES,
    FlowList,
    whole_number,
)

COLUMNS = "source destination priority port bytes start"
MAX_NODE = 10**7
_HEAD = re.compile(rb"\A\s*\d{1,9}[ \t]*\r?\n\s*\d+[ \t]+\d+[ \t]+\d+[ \t]+\d+[ \t]+[\d.eE+-]+")
_SECONDS = re.compile(r"\d{1,7}(?:\.\d{0,18})?(?:[eE][+-]?\d)?")


def is_ns3_flows(path: Path) -> bool:
    """Return whether the file begins with a count and a line of five or six numbers."""
    return _HEAD.match(read_head(path, 4096)) is not None


def read_ns3_flows(path: Path) -> FlowList:
    """Return the flows of a file; raises TraceError or InputError."""
    flows = FlowList(path=path, are_hosts=True)
    text = read_text(path, max_bytes=MAX_FILE_BYTES)
    lines = ((row, line.split()) for row, line in enumerate(io.StringIO(text), start=1) if not line.isspace())
    row, head = next(lines)
    num_flows = whole_number(head[0], MAX_FLOWS) if len(head) == 1 else None
    if not num_flows:
        raise flows.refuse(f"{path}:{row}", f"{quote(' '.join(head))} flows", f"1 to {MAX_FLOWS}, a line for each")
    for line_number, words in islice(lines, num_flows):
        _add(flows, words, f"{path}:{line_number}")
    if len(flows.source) < num_flows:
        raise flows.refuse(f"{path}:{row}", f"{num_flows} flows, and {len(flows.source)} lines", "a line for each")
    num_rest = sum(1 for _ in lines)
    if num_rest:
        flows.notes.append(f"{path}: lines after the {num_flows} flows of the head, not read: {num_rest}")
    first = min(flows.start_ps)
    if first:
        flows.notes.append(f"{path}: the first flow starts at {format_duration(first)}; starts are counted from there")
        for flow, start_ps in enumerate(flows.start_ps):
            flows.start_ps[flow] = start_ps - first
    return flows


def _add(flows: FlowList, words: list[str], where: str) -> None:
    """Add the flow of one line; raises TraceError."""
    if len(words) not in (5, 6):
        raise flows.refuse(where, quote(" ".join(words)), COLUMNS)
    nodes = [whole_number(word, MAX_NODE) for word in words[:2]]
    middle = [whole_number(word, 10**9) for word in words[2:-2]]
    size = whole_number(words[-2], MAX_SIZE_BYTES)
    start_ps = _start_ps(words[-1])
    if None in nodes or None in middle or not size or start_ps is None:
        raise flows.refuse(where, quote(" ".join(words)), f"{COLUMNS}: whole numbers, 1 B or more, and seconds")
    if nodes[0] == nodes[1]:
        raise flows.refuse(where, f"a flow from {nodes[0]} to itself", "two different hosts")
    priority = middle[0] or 0
    if priority >= NUM_PRIORITIES:
        if len(middle) == 2:
            raise flows.refuse(where, f"priority group {priority}", f"0 to {NUM_PRIORITIES - 1}")
        priority = 3  # the middle number is a port, and 3 is the priority of data in these simulators
    columns = (flows.source, flows.destination, flows.num_bytes, flows.start_ps, flows.priority)
    for column, value in zip(columns, (*nodes, size, start_ps, priority), strict=True):
        column.append(value or 0)


def _start_ps(text: str) -> int | None:
    """Return the picoseconds of a start in seconds, to the nearest; None for anything else."""
    if not _SECONDS.fullmatch(text):
        return None
    start_ps = round(Decimal(text) * PS_PER_S)
    return start_ps if start_ps <= MAX_START_PS else None
