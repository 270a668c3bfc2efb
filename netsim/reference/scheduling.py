"""Transfers of the reference engine: when they become ready, and what their ends set free."""

from collections.abc import Mapping
from types import ModuleType

from fabrictune.foundation.traces import Medium
from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.reference.forwarding import serialization_ps
from fabrictune.netsim.reference.retransmission import Retransmission
from fabrictune.netsim.reference.state import Kind, Transfer


class Scheduling(Retransmission):
    """Gives ready transfers to their queue pairs, or lets them pass outside the fabric."""

    def __init__(self, inputs: EngineInputs, law: ModuleType, law_settings: Mapping[str, float] | None = None) -> None:
        super().__init__(inputs, law, law_settings)
        self.num_transfer_events = 0
        self.nvlink_until_ps: dict[tuple[str, int], int] = {}  # when a GPU's link out or in is free
        self.transfers = [Transfer(row, waiting=int(waiting)) for row, waiting in enumerate(inputs["num_dependencies"])]
        for row, transfer in enumerate(self.transfers):
            if inputs["transfer_medium"][row] == Medium.FABRIC:
                self.pairs[inputs["transfer_qp"][row]].remaining += 1
            if transfer.waiting == 0:
                self._schedule_transfer(int(inputs["transfer_start"][row] + inputs["transfer_delay"][row]), row)

    def _schedule_transfer(self, time_ps: int, row: int, *, is_end: bool = False) -> None:
        self.num_transfer_events += 1
        self._push(time_ps, Kind.TRANSFER, row, int(is_end))

    def _on_transfer(self, row: int, is_end: int) -> None:
        self.num_transfer_events -= 1
        transfer, medium = self.transfers[row], self.inputs["transfer_medium"][row]
        num_bytes = int(self.inputs["transfer_bytes"][row])
        if not is_end:
            transfer.times["ready_ps"] = self.now_ps
            if medium == Medium.FABRIC:
                self._append_to_pair(int(self.inputs["transfer_qp"][row]), transfer, num_bytes)
                return
            transfer.times["start_ps"] = self.now_ps
            if medium == Medium.NVLINK:
                self._schedule_transfer(self._cross_nvlink(row, num_bytes), row, is_end=True)
                return
        transfer.times["acknowledged_ps"] = self.now_ps
        self._finish(transfer)

    def _cross_nvlink(self, row: int, num_bytes: int) -> int:
        """Return when both GPUs' links have carried a transfer that is ready now."""
        duration_ps = serialization_ps(num_bytes, self.settings["nvlink_rate_bps"])
        ends = ("out", int(self.inputs["nvlink_source"][row])), ("in", int(self.inputs["nvlink_destination"][row]))
        for end in ends:
            self.nvlink_until_ps[end] = max(self.nvlink_until_ps.get(end, 0), self.now_ps) + duration_ps
        return max(self.nvlink_until_ps[end] for end in ends)

    def _append_to_pair(self, number: int, transfer: Transfer, num_bytes: int) -> None:
        pair, mtu_bytes = self.pairs[number], self.settings["mtu_bytes"]
        if pair.has_failed:
            return
        num_packets = max(1, -(-num_bytes // mtu_bytes))
        transfer.first, transfer.end = pair.end, pair.end + num_packets
        transfer.last_payload_bytes = num_bytes - (num_packets - 1) * mtu_bytes
        pair.messages.append(transfer)
        if len(pair.messages) == 1:
            self._call_law(number, "on_start", self.now_ps)
        self._resume(number)

    def _finish(self, transfer: Transfer) -> None:
        transfer.times["finish_ps"] = self.now_ps
        offsets = self.inputs["dependent_offset"]
        for row in self.inputs["dependent_row"][offsets[transfer.row] : offsets[transfer.row + 1]]:
            dependent = self.transfers[row]
            dependent.waiting -= 1
            if dependent.waiting == 0:
                earliest_ps = max(self.now_ps, int(self.inputs["transfer_start"][row]))
                self._schedule_transfer(earliest_ps + int(self.inputs["transfer_delay"][row]), int(row))
