"""The cut of a run into parts, slow and readable; netsim/engine/parts/cut.cpp is the fast one."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fabrictune.foundation.traces import Medium
from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.engine_inputs.limits import NO_ROUTE


@dataclass
class Pieces:
    """Things that stay together, under the number of one of them, and the packets that they will handle."""

    name: list[int]  # by thing
    packets: dict[int, float] = field(default_factory=dict)  # by name

    def join(self, one: int, other: int) -> None:
        """Put the other's piece into the one's."""
        kept, gone = self.name[one], self.name[other]
        self.name = [kept if name == gone else name for name in self.name]
        if kept != gone:
            self.packets[kept] = self.packets.get(kept, 0) + self.packets.pop(gone, 0)


class Cutter:
    """Nodes are the first things, then transfers, then GPUs."""

    def __init__(self, inputs: EngineInputs) -> None:
        self.node_P = inputs["port_node"].tolist()
        self.behind_P = [self.node_P[peer] for peer in inputs["port_peer"].tolist()]
        self.delay_P = inputs["port_delay_ps"].tolist()
        self.inputs, self.transfers = inputs, inputs.all_transfers()
        num_pairs, stride = len(inputs["flow"]), int(inputs.settings["path_stride"])
        self.path_QDH = inputs["path"][: 2 * num_pairs * stride].reshape(num_pairs, 2, stride).tolist()
        self.num_nodes, self.num_rows = 1 + max(self.node_P), len(self.transfers["transfer_qp"])
        num_gpus = max(1 + int(self.transfers[end].max(initial=-1)) for end in ("nvlink_source", "nvlink_destination"))
        self.pieces = Pieces(list(range(self.num_nodes + self.num_rows + num_gpus)))

    def part_of_port(self, most_parts: int) -> list[int]:
        """Return the part of each port's node."""
        for port, (node, behind) in enumerate(zip(self.node_P, self.behind_P, strict=True)):
            if self.inputs["loss_fraction"][port] > 0:
                self.pieces.join(node, behind)
        for node, behind, delay_ps in zip(self.node_P, self.behind_P, self.delay_P, strict=True):
            if delay_ps == 0:
                self.pieces.join(node, behind)
        for one, other in self._transfers_that_meet():
            self.pieces.join(one, other)
        self._count_packets()
        self._join_short_wires(most_parts)
        part_of_piece = self._deal_out(most_parts)
        return [part_of_piece[self.pieces.name[node]] for node in self.node_P]

    def _ends(self, row: int) -> tuple[int, int]:
        """Return where a transfer begins and ends."""
        qp = int(self.transfers["transfer_qp"][row])
        if self.transfers["transfer_medium"][row] != Medium.FABRIC:
            return self.num_nodes + row, self.num_nodes + row
        there, back = self.path_QDH[qp]
        return self.node_P[there[0]], self.node_P[back[0]]

    def _transfers_that_meet(self) -> Iterator[tuple[int, int]]:
        """Yield what a transfer's end and the start of each that waits for it belong to, and the GPUs of an NVLink."""
        waits = iter(self.transfers["dependency_row"].tolist())
        waiting: dict[int, list[int]] = {}
        for row, number in enumerate(self.transfers["num_dependencies"].tolist()):
            for _ in range(number):
                waiting.setdefault(next(waits), []).append(row)
        for row in range(self.num_rows):
            start, end = self._ends(row)
            yield from ((end, self._ends(later)[0]) for later in waiting.get(row, []))
            for name in ("nvlink_source", "nvlink_destination"):
                if len(self.transfers[name]) and self.transfers[name][row] >= 0:
                    yield start, self.num_nodes + self.num_rows + int(self.transfers[name][row])

    def _count_packets(self) -> None:
        """Every packet, and its answer, is handled at each node that it comes to."""
        for row in range(self.num_rows):
            if self.transfers["transfer_medium"][row] != Medium.FABRIC:
                continue
            num_packets = max(1, -(-int(self.transfers["transfer_bytes"][row]) // self.inputs.settings["mtu_bytes"]))
            for path in self.path_QDH[int(self.transfers["transfer_qp"][row])]:
                for port in path[: next(place for place, port in enumerate(path) if port >= NO_ROUTE)]:
                    piece = self.pieces.name[self.behind_P[port]]
                    self.pieces.packets[piece] = self.pieces.packets.get(piece, 0) + num_packets

    def _join_short_wires(self, most_parts: int) -> None:
        """Close the shortest wires, those of hosts first, where what they join has no more than a part's share."""
        share = sum(self.pieces.packets.values()) / most_parts
        is_host_P = self.inputs["port_is_host"].tolist()
        for port in sorted(range(len(self.node_P)), key=lambda port: (self.delay_P[port], not is_host_P[port])):
            one, other = self.pieces.name[self.node_P[port]], self.pieces.name[self.behind_P[port]]
            together = self.pieces.packets.get(one, 0) + self.pieces.packets.get(other, 0)
            if one != other and together <= share:
                self.pieces.join(one, other)

    def _deal_out(self, most_parts: int) -> dict[int, int]:
        """Return the part of each piece with nodes: the largest first, each to the part with the least so far."""
        packets = self.pieces.packets
        names = sorted(set(self.pieces.name[: self.num_nodes]), key=lambda name: (-packets.get(name, 0), name))
        num_busy = sum(packets.get(name, 0) > 0 for name in names)
        loads = [0.0] * min(max(num_busy, 1), most_parts)
        part_of_piece = {}
        for name in names:
            part_of_piece[name] = loads.index(min(loads))
            loads[part_of_piece[name]] += packets.get(name, 0)
        return part_of_piece
