"""Flows that advance over a fabric hop by hop, all together.

What depends on no hash (distances, equal-cost ports, the ports a flow may leave its host through) is worked out once
for pairs of NICs; paths then follow under any headers and any hash. All flows advance together: a hop is a few array
operations however many they are. Flows are dealt into batches of whole attachments, which bounds memory: four bytes for
each port that leads nearer, twelve for each switch, once an attachment.

A resilient group remembers the members it had when all links worked: a flow stays with its member while that is still
an equal-cost choice, and only the others are spread over what remains.

Shapes: F flows, A of them on their way, B attachments of a batch, S switches, X entries, H hops.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import FiveTuples, HashSpec
from fabrictune.topology.hashing.switches import SwitchHashes
from fabrictune.topology.network import NO_PORT
from fabrictune.topology.shortest_paths import SwitchGraph, by_attachment

MAX_WALKED_FLOWS = 2**18  # at once
MAX_BATCH_ENTRIES = 2**24  # ports between switches, once an attachment


class PathTracer:
    """Tracer of the paths between F pairs of NICs, under any headers and any hash."""

    def __init__(
        self,
        fabric: Fabric,
        source_nic_F: IntArray,
        destination_nic_F: IntArray,
        *,
        is_failed_P: BoolArray | None = None,
    ) -> None:
        self._node_tier_N, self._num_flows = fabric.node_tier_N, len(source_nic_F)
        self._batches = tuple(_prepare(fabric, source_nic_F, destination_nic_F, is_failed_P))

    @property
    def has_way_F(self) -> BoolArray:
        """Whether any way leads from each flow's source to its destination; no hash changes that."""
        has_way_F = np.zeros(self._num_flows, bool)
        for batch in self._batches:
            has_way_F[batch.row_W] = batch.departure_W2[:, 0] != NO_PORT
        return has_way_F

    def paths(self, headers: FiveTuples, hash_spec: HashSpec) -> NDArray[np.int32]:
        """Return the ports of each flow's path, shape (F, H), NO_PORT after the last; a flow without way has none."""
        return _walk(self._batches, self._num_flows, SwitchHashes(hash_spec, headers, self._node_tier_N))


def find_paths(
    fabric: Fabric,
    source_nic_F: IntArray,
    destination_nic_F: IntArray,
    headers: FiveTuples,
    hash_spec: HashSpec,
    *,
    is_failed_P: BoolArray | None = None,
) -> NDArray[np.int32]:
    """Return what `PathTracer(...).paths(...)` does, holding one batch of attachments at a time."""
    batches = _prepare(fabric, source_nic_F, destination_nic_F, is_failed_P)
    return _walk(batches, len(source_nic_F), SwitchHashes(hash_spec, headers, fabric.node_tier_N))


def _walk(batches: Iterable["_Batch"], num_flows: int, hashes: SwitchHashes) -> NDArray[np.int32]:
    path_HF = [np.full(num_flows, NO_PORT, np.int32)]
    for batch in batches:
        for first in range(0, len(batch.row_W), MAX_WALKED_FLOWS):
            for hop, (row_A, port_A) in enumerate(batch.hops(hashes, first)):
                if hop == len(path_HF):
                    path_HF.append(np.full(num_flows, NO_PORT, np.int32))
                path_HF[hop][row_A] = port_A
    return np.stack(path_HF, axis=1)


@dataclass(frozen=True, kw_only=True)
class _Table:
    """The equal-cost ports of every switch towards each attachment of a batch, a slot for each pair."""

    port_X: NDArray[np.int32]
    first_K: NDArray[np.int32]  # K = B * S slots
    num_choices_K: NDArray[np.int32]  # 0 at a switch of the attachment, which leads straight to the NICs
    distance_K: NDArray[np.int32]

    @classmethod
    def of(cls, graph: SwitchGraph, distance_BS: Sequence[IntArray]) -> "_Table":
        choices_B = [graph.equal_cost(distance_S) for distance_S in distance_BS]
        num_choices_K = np.concatenate([choices.num_choices_S for choices in choices_B])
        return cls(
            port_X=np.concatenate([*(choices.port_X for choices in choices_B), np.array([NO_PORT], np.int32)]),
            first_K=(np.cumsum(num_choices_K) - num_choices_K).astype(np.int32),
            num_choices_K=num_choices_K,
            distance_K=np.concatenate(distance_BS).astype(np.int32),
        )


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """The flows towards some attachments, and what they need on their way."""

    graph: SwitchGraph
    row_W: IntArray  # of W flows among all
    destination_nic_W: IntArray
    departure_W2: IntArray
    slot_W: IntArray  # the first of the attachment
    table: _Table
    healthy: _Table  # the same before any failure

    def hops(self, hashes: SwitchHashes, first: int) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield for every hop the rows of the flows that make it, and the ports they leave through.

        Of the batch's flows, MAX_WALKED_FLOWS are taken from `first` on: a hop takes some hundred bytes a flow.
        """
        graph = self.graph
        active_A = first + np.nonzero(self.departure_W2[first : first + MAX_WALKED_FLOWS, 0] != NO_PORT)[0]
        source_A = graph.fabric.port_node_P[self.departure_W2[active_A, 0]]
        port_A = _one_of_two(hashes, self.row_W[active_A], source_A, self.departure_W2[active_A])
        while len(active_A):
            yield self.row_W[active_A], port_A
            node_A = graph.next_node_P[port_A]
            is_at_switch_A = graph.is_switch_N[node_A]
            active_A = active_A[is_at_switch_A]
            port_A = self._next_ports(hashes, active_A, node_A[is_at_switch_A])

    def _next_ports(self, hashes: SwitchHashes, active_A: IntArray, node_A: IntArray) -> IntArray:
        """Return the port through which each flow leaves the switch it is at."""
        row_A, slot_A = self.row_W[active_A], self.slot_W[active_A] + self.graph.switch_N[node_A]
        num_choices_A = self.table.num_choices_K[slot_A]
        if hashes.num_buckets is None:
            choice_A = hashes.choose_among(row_A, node_A, num_choices_A)
            port_A: IntArray = self.table.port_X[self.table.first_K[slot_A] + choice_A].astype(np.int64)
        else:
            port_A = self._resilient_ports(hashes, hashes.num_buckets, active_A, node_A)
        last_L = np.nonzero(num_choices_A == 0)[0]
        if len(last_L):
            exit_L2 = self.graph.exits(self.destination_nic_W[active_A[last_L]], node_A[last_L])
            port_A[last_L] = _one_of_two(hashes, row_A[last_L], node_A[last_L], exit_L2)
        return port_A

    def _resilient_ports(
        self, hashes: SwitchHashes, num_buckets: int, active_A: IntArray, node_A: IntArray
    ) -> IntArray:
        """Return the member of each flow's bucket: the one from before a failure, if it still leads nearer."""
        graph, now, before = self.graph, self.table, self.healthy
        slot_A = self.slot_W[active_A] + graph.switch_N[node_A]
        bucket_A = (hashes.values(self.row_W[active_A], node_A) % np.uint64(num_buckets)).astype(np.int64)
        turn_A, member_A = np.divmod(bucket_A, np.maximum(before.num_choices_K[slot_A], 1))
        port_A = before.port_X[before.first_K[slot_A] + member_A].astype(np.int64)
        next_slot_A = self.slot_W[active_A] + graph.switch_N[graph.next_node_P[port_A]]
        is_nearer_A = now.distance_K[next_slot_A] + 1 == now.distance_K[slot_A]
        is_gone_A = graph.is_failed_P[port_A] | ~is_nearer_A
        left_A = now.port_X[now.first_K[slot_A] + turn_A % np.maximum(now.num_choices_K[slot_A], 1)]
        chosen_A: IntArray = np.where(is_gone_A, left_A, port_A)
        return chosen_A


def _one_of_two(hashes: SwitchHashes, row_A: IntArray, node_A: IntArray, port_A2: IntArray) -> IntArray:
    """Return the first of each one or two ports, or the one the hash takes where there are two."""
    num_choices_A = 1 + (port_A2[:, 1] != NO_PORT)
    choice_A = hashes.choose_among(row_A, node_A, num_choices_A)
    ports: IntArray = port_A2[np.arange(len(choice_A)), choice_A]
    return ports


def _prepare(
    fabric: Fabric, source_nic_F: IntArray, destination_nic_F: IntArray, is_failed_P: BoolArray | None
) -> Iterator[_Batch]:
    """Yield all flows in batches of whole attachments."""
    graph = SwitchGraph(fabric, is_failed_P)
    healthy = graph if is_failed_P is None else SwitchGraph(fabric)
    groups = list(by_attachment((graph, healthy), destination_nic_F))
    num_groups = max(1, MAX_BATCH_ENTRIES // max(len(graph.trunk_T), 1))
    for first in range(0, len(groups), num_groups):
        rows = groups[first : first + num_groups]
        nic_B = [int(destination_nic_F[row[0]]) for row in rows]
        distance_BS = [graph.distances(nic) for nic in nic_B]
        departures = [
            graph.departures(source_nic_F[row], destination_nic_F[row], distance_S)
            for row, distance_S in zip(rows, distance_BS, strict=True)
        ]
        row_W = np.concatenate(rows)
        table = _Table.of(graph, distance_BS)
        yield _Batch(
            graph=graph,
            row_W=row_W,
            destination_nic_W=destination_nic_F[row_W],
            departure_W2=np.concatenate(departures),
            slot_W=np.repeat(np.arange(len(rows)), [len(row) for row in rows]) * graph.num_switches,
            table=table,
            healthy=table if healthy is graph else _Table.of(healthy, [healthy.distances(nic) for nic in nic_B]),
        )
