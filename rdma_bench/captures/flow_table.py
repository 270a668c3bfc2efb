"""Flows of a capture: packets added chunk by chunk to one row for each, in memory that grows with the flows alone.

A flow is what leaves one address for one queue pair of another through one UDP source port: the packets that ECMP sends
the same way. Its own queue-pair number is in none of its packets, but in those of the opposite flow, which has the
same source port where both ends derive it from the two numbers.

Shapes: F flows, K packets of a chunk, O pairs of flow and opcode.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.flows import UNKNOWN, ObservedFlows
from fabrictune.foundation.rocev2 import UDP_PORT, Opcode, source_port
from fabrictune.rdma_bench.captures.opcodes import IS_REQUEST, NUM_OPCODES
from fabrictune.rdma_bench.captures.packets import RocePackets
from fabrictune.rdma_bench.captures.sequence import SEQUENCE_STATE, classify_requests

MAX_FLOWS = 2**20
NUM_SLOTS = 2**16  # of the table in which a packet's flow is looked up first

KEY = ("source_ipv4", "destination_ipv4", "source_port", "destination_qpn")  # identifies a flow

ROW = np.dtype(
    [
        ("source_ipv4", "i8"),
        ("destination_ipv4", "i8"),
        ("source_port", "i8"),
        ("destination_qpn", "i8"),
        ("packets", "i8"),
        ("payload_bytes", "i8"),
        ("acknowledgements", "i8"),
        ("cnps", "i8"),
        ("ecn_marked", "i8"),
        ("psn_gaps", "i8"),  # places where numbers were skipped
        ("missing_packets", "i8"),  # numbers skipped there
        ("repeated_packets", "i8"),  # retransmitted, or overtaken
        ("first_ns", "i8"),
        ("last_ns", "i8"),
        ("sequence", SEQUENCE_STATE),
    ]
)


@dataclass(frozen=True, kw_only=True)
class CaptureFlows:
    """F flows of a capture, in the order of their first packets."""

    row_F: NDArray[np.void]  # ROW
    flow_O: IntArray  # how often each opcode stood in each flow
    opcode_O: IntArray
    packets_O: IntArray

    def __len__(self) -> int:
        return len(self.row_F)

    def packets_by_opcode(self) -> dict[int, int]:
        """Return the packets of the whole capture by opcode."""
        total = np.bincount(self.opcode_O, self.packets_O, minlength=NUM_OPCODES).astype(np.int64)
        return {int(opcode): int(total[opcode]) for opcode in np.nonzero(total)[0]}

    def observed(self, origin: str, notes: tuple[str, ...] = ()) -> ObservedFlows:
        """Return the flows in the form that all readers share, with the queue-pair numbers of both ends if known."""
        nameless = ("",) * len(self)
        return ObservedFlows(
            source_ipv4_F=self.row_F["source_ipv4"],
            source_host_F=nameless,
            source_device_F=nameless,
            source_qpn_F=find_source_qpns(self.row_F),
            destination_ipv4_F=self.row_F["destination_ipv4"],
            destination_host_F=nameless,
            destination_device_F=nameless,
            destination_qpn_F=self.row_F["destination_qpn"],
            source_port_F=self.row_F["source_port"],
            destination_port_F=np.full(len(self), UDP_PORT),
            packets_F=self.row_F["packets"],
            bytes_F=self.row_F["payload_bytes"],
            first_ns_F=self.row_F["first_ns"],
            last_ns_F=self.row_F["last_ns"],
            origin_F=(origin,) * len(self),
            notes=notes,
        )


class FlowTable:
    """The rows so far."""

    def __init__(self) -> None:
        self.row_F = np.zeros(0, ROW)
        self._grow(1)
        self.flow_by_slot = np.full(NUM_SLOTS, UNKNOWN)
        self.flow_by_key: dict[tuple[int, int], int] = {}
        self.packets_by_code: dict[int, int] = defaultdict(int)  # code: flow * NUM_OPCODES + opcode

    def add(self, packets: RocePackets) -> None:
        """Add a chunk of packets, later than all before; raises InputError where there are too many flows."""
        if not len(packets):
            return
        flow_K = self._flows_of(packets)
        num_flows, row_F = len(self.flow_by_key), self.row_F
        for name, weight_K in (
            ("packets", None),
            ("payload_bytes", packets.payload_bytes_K),
            ("acknowledgements", packets.opcode_K == Opcode.ACKNOWLEDGE),
            ("cnps", packets.opcode_K == Opcode.CNP),
            ("ecn_marked", packets.is_marked_K),
        ):
            row_F[name][:num_flows] += np.bincount(flow_K, weight_K, minlength=num_flows).astype(np.int64)
        for name, pick in (("first_ns", np.minimum), ("last_ns", np.maximum)):
            found_F = row_F[name].copy()  # in one piece, where `at` is fast
            pick.at(found_F, flow_K, packets.time_ns_K)
            row_F[name] = found_F
        code_U, count_U = np.unique(flow_K * NUM_OPCODES + packets.opcode_K, return_counts=True)
        for code, count in zip(code_U.tolist(), count_U.tolist(), strict=True):
            self.packets_by_code[code] += count
        self._follow_sequence(flow_K, packets)

    def finish(self) -> CaptureFlows:
        """Return the table."""
        code_O = np.array(sorted(self.packets_by_code), np.int64)
        return CaptureFlows(
            row_F=self.row_F[: len(self.flow_by_key)],
            flow_O=code_O // NUM_OPCODES,
            opcode_O=code_O % NUM_OPCODES,
            packets_O=np.array([self.packets_by_code[code] for code in code_O.tolist()], np.int64),
        )

    def _flows_of(self, packets: RocePackets) -> IntArray:
        """Return each packet's row, and add the rows that are new.

        Most packets belong to a flow that is in the slot their fields lead to; only the others are sorted.
        """
        slot_K = _slots(packets)
        flow_K = self.flow_by_slot[slot_K]
        is_other_K = flow_K == UNKNOWN
        for name in KEY:
            is_other_K |= self.row_F[name][flow_K] != getattr(packets, f"{name}_K")
        other = np.nonzero(is_other_K)[0]
        if len(other):
            flow_K[other] = self._sorted_flows_of(packets, other)
            self.flow_by_slot[slot_K[other]] = flow_K[other]
        return flow_K

    def _sorted_flows_of(self, packets: RocePackets, other: IntArray) -> IntArray:
        """Return the rows of some packets by sorting their fields, adding those that are new."""
        pair = packets.source_ipv4_K[other] << 32 | packets.destination_ipv4_K[other]
        end = packets.source_port_K[other] << 24 | packets.destination_qpn_K[other]  # 40 bits
        _, pair_number = np.unique(pair, return_inverse=True)
        _, first_U, number = np.unique(pair_number << 40 | end, return_index=True, return_inverse=True)
        flow_U, num_before = np.empty(len(first_U), np.int64), len(self.flow_by_key)
        for unique in np.argsort(first_U).tolist():
            key = int(pair[first_U[unique]]), int(end[first_U[unique]])
            flow_U[unique] = self.flow_by_key.setdefault(key, len(self.flow_by_key))
        num_flows = len(self.flow_by_key)
        if num_flows > MAX_FLOWS:
            raise InputError(Mistake(where="capture", found=f"more than {MAX_FLOWS} flows", next_step="split the file"))
        if num_flows > len(self.row_F):
            self._grow(num_flows)
        is_new_U = flow_U >= num_before
        for name in KEY:
            self.row_F[name][flow_U[is_new_U]] = getattr(packets, f"{name}_K")[other[first_U[is_new_U]]]
        return flow_U[number]

    def _grow(self, num_flows: int) -> None:
        more = np.zeros(max(num_flows, 2 * len(self.row_F)) - len(self.row_F), ROW)
        more["first_ns"], more["last_ns"] = np.iinfo(np.int64).max, UNKNOWN
        self.row_F = np.concatenate([self.row_F, more])

    def _follow_sequence(self, flow_K: IntArray, packets: RocePackets) -> None:
        request = np.nonzero(IS_REQUEST[packets.opcode_K])[0]
        if not len(request):
            return
        request = request[_stable_order(flow_K[request])]
        flow = flow_K[request]
        first_S = np.nonzero(np.diff(flow, prepend=UNKNOWN))[0]
        flow_S = flow[first_S]
        is_read = packets.opcode_K[request] == Opcode.READ_REQUEST
        verdict = classify_requests(packets.psn_K[request], is_read, first_S, self.row_F["sequence"][flow_S])
        self.row_F["sequence"][flow_S] = verdict.state_S
        self.row_F["psn_gaps"][flow_S] += np.add.reduceat(verdict.num_missing_K > 0, first_S, dtype=np.int64)
        self.row_F["missing_packets"][flow_S] += np.add.reduceat(verdict.num_missing_K, first_S)
        self.row_F["repeated_packets"][flow_S] += np.add.reduceat(verdict.is_repeat_K, first_S, dtype=np.int64)


def _slots(packets: RocePackets) -> IntArray:
    """Return a slot for each packet, the same for all of a flow, by multiplying with odd numbers and adding up."""
    mixed_K = packets.source_ipv4_K * 0x9E3779B1 + packets.destination_ipv4_K * 0x85EBCA77
    mixed_K += packets.source_port_K * 0xC2B2AE3D + packets.destination_qpn_K * 0x27D4EB2F
    return (mixed_K >> 12) % NUM_SLOTS


def _stable_order(flow_K: IntArray) -> IntArray:
    """Return the order that brings the packets of each flow together; short numbers are sorted by radix."""
    is_short = int(flow_K.max()) < 2**16
    return np.argsort(flow_K.astype(np.uint16) if is_short else flow_K, kind="stable")


def find_source_qpns(row_F: NDArray[np.void]) -> IntArray:
    """Return each flow's own queue-pair number, UNKNOWN where the opposite flows do not tell it.

    They tell it where one alone comes back through the same source port; where, of several, one alone has numbers that
    give that port; and where, whatever its port, one alone goes each way between the two addresses.
    """
    columns = [row_F[name].tolist() for name in KEY]
    through_port, between = (
        defaultdict[tuple[int, int, int], list[int]](list),
        defaultdict[tuple[int, int], list[int]](list),
    )
    for source, destination, port, qpn in zip(*columns, strict=True):
        through_port[source, destination, port].append(qpn)
        between[source, destination].append(qpn)
    result = []
    for source, destination, port, qpn in zip(*columns, strict=True):
        candidates = through_port.get((destination, source, port), [])
        if len(candidates) > 1:
            predicted = source_port(np.array(candidates), np.full(len(candidates), qpn))
            candidates = np.array(candidates)[predicted == port].tolist()
        elif not candidates and len(between[source, destination]) == 1:
            candidates = between.get((destination, source), [])
        result.append(candidates[0] if len(candidates) == 1 else UNKNOWN)
    return np.array(result, np.int64)
