"""Lists of flows in files of other simulators, and their conversion to transfers between the NICs of a fabric.

The readers are `connection_matrix` (htsim) and `ns3_flows` (HPCC and its descendants). A file numbers its endpoints: of
htsim they are NICs in their order, of ns-3 hosts called by that number, or NICs where the fabric names none so.
"""

from array import array
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.traces import UNKNOWN, Dependencies, Medium, TrafficTrace
from fabrictune.netsim.workloads.table import GeneratedTraffic
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.queue_pairs import make_queue_pairs

MAX_FLOWS = 2_000_000
MAX_FILE_BYTES = 64 * 2**20
MAX_SIZE_BYTES = 2**50
MAX_START_PS = 10**15  # a thousand seconds
NUM_PRIORITIES = 8


def _integers() -> "array[int]":
    return array("q")


@dataclass(kw_only=True)
class FlowList:
    """Flows as a file lists them, F of them."""

    path: Path
    source: "array[int]" = field(default_factory=_integers)
    destination: "array[int]" = field(default_factory=_integers)
    num_bytes: "array[int]" = field(default_factory=_integers)
    start_ps: "array[int]" = field(default_factory=_integers)
    priority: "array[int]" = field(default_factory=_integers)  # empty where the file has none
    waits_for: dict[int, list[int]] = field(default_factory=dict)  # by flow: flows that have to end before it starts
    are_hosts: bool = False  # whether endpoints are hosts by their number, not NICs
    notes: list[str] = field(default_factory=list)

    def refuse(self, where: str, found: str, allowed: str = "", next_step: str = "") -> TraceError:
        """Return the error of a place in the file."""
        return TraceError(Mistake(where=where, found=found, allowed=allowed, next_step=next_step))


def flows_on_fabric(flows: FlowList, fabric: Fabric, *, priority: int) -> GeneratedTraffic:
    """Return a queue pair and a transfer for each flow; raises TraceError for endpoints that the fabric lacks.

    `priority` is that of flows whose file has none.
    """
    source, destination = np.array(flows.source, np.int64), np.array(flows.destination, np.int64)
    nic_by_number, note = _nics(flows, fabric)
    for number in (source, destination):
        if len(number) and int(number.max()) not in nic_by_number:
            found = f"endpoint {int(number.max())}, which the fabric does not have"
            raise flows.refuse(str(flows.path), found, f"{len(nic_by_number)} endpoints: {note}")
    known = np.array(sorted(nic_by_number), np.int64)
    nics = np.array([nic_by_number[number] for number in known.tolist()], np.int64)
    rows = [np.searchsorted(known, numbers) for numbers in (source, destination)]
    for numbers, row in zip((source, destination), rows, strict=True):
        is_foreign = known[np.minimum(row, len(known) - 1)] != numbers
        if is_foreign.any():
            found = f"endpoint {int(numbers[is_foreign][0])}, which is no host of the fabric"
            raise flows.refuse(str(flows.path), found, note)
    queue_pairs = make_queue_pairs(nics[rows[0]], nics[rows[1]], priority=priority)
    if len(flows.priority):
        queue_pairs = replace(queue_pairs, priority_Q=np.array(flows.priority, np.int64))
    return queue_pairs, _trace(flows, nics[rows[0]], nics[rows[1]], note)


def _nics(flows: FlowList, fabric: Fabric) -> tuple[dict[int, int], str]:
    """Return the NIC of each number that can stand in the file, and a note of how they were found."""
    if flows.are_hosts:
        hosts = fabric.nic_host_C.tolist()
        named = {f"host{number}": number for number in {*flows.source, *flows.destination}}
        by_number = {named[name]: nic for nic, node in enumerate(hosts) if (name := fabric.node_name_N[node]) in named}
        is_alone = len(set(hosts)) == len(hosts)
        if is_alone and len(by_number) == len(named):
            return by_number, "endpoints of the file are the hosts of that number"
    return {nic: nic for nic in range(fabric.num_nics)}, "endpoints of the file are NICs of the fabric, in their order"


def _trace(flows: FlowList, source_F: IntArray, destination_F: IntArray, note: str) -> TrafficTrace:
    num_flows = len(source_F)
    zero_F = np.zeros(num_flows, np.int64)
    return TrafficTrace(
        source_N=source_F,
        destination_N=destination_F,
        medium_N=np.full(num_flows, Medium.FABRIC, np.int64),
        qp_N=np.arange(num_flows),
        bytes_N=np.array(flows.num_bytes, np.int64),
        start_ps_N=np.array(flows.start_ps, np.int64),
        delay_ps_N=zero_F,
        operation_N=np.full(num_flows, UNKNOWN, np.int64),
        dependencies=_dependencies(flows, num_flows),
        notes=(*flows.notes, f"{flows.path}: {note}"),
    )


def _dependencies(flows: FlowList, num_flows: int) -> Dependencies:
    if not flows.waits_for:
        return Dependencies.none(num_flows)
    counts_F = np.zeros(num_flows, np.int64)
    for flow, others in flows.waits_for.items():
        counts_F[flow] = len(others)
    rows = [other for flow in sorted(flows.waits_for) for other in flows.waits_for[flow]]
    return Dependencies(offset_N1=np.concatenate([[0], np.cumsum(counts_F)]), row_D=np.array(rows, np.int64))


def whole_number(text: str, limit: int) -> int | None:
    """Return a whole number from 0 to the limit, None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 and int(text) <= limit else None
