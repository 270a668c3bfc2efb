"""Transfers: when they become ready, what their ends set free, and the messages of a queue pair.

A transfer is ready some time after the later of its start and the end of its last dependency. Each GPU's NVLink out
carries its transfers one after another, and so does each GPU's link in; a transfer ends when both have carried it, or
is for its queue pair to send where it took NVLink to a GPU beside another NIC.

Left out: switches between NVLinks, which add nothing.
"""

from dataclasses import dataclass, field
from itertools import islice

from fabrictune.foundation.traces import UNKNOWN, Medium
from fabrictune.netsim.reference.ports import serialization_ps
from fabrictune.netsim.reference.run import EventKind, RunState

NOT_YET = -1
TIME_COLUMNS = ("ready_ps", "start_ps", "finish_ps", "acknowledged_ps")


@dataclass(eq=False)
class Transfer:
    """A transfer's progress."""

    row: int
    num_bytes: int
    waiting: int  # dependencies that have not ended
    dependents: "list[Transfer]" = field(default_factory=list)  # what waits for it
    first: int = 0  # sequence numbers: first packet, and one behind the last
    end: int = 0
    last_payload_bytes: int = 0
    times: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TIME_COLUMNS, NOT_YET))
    resent: int = 0
    round_trips: int = 0  # and their sums, of which parts in the receiving host
    rtt_ps: int = 0
    endpoint_ps: int = 0
    cnps: int = 0


class ReadyTransfers:
    """The ready transfers of one queue pair, as both of its ends know them."""

    def __init__(self, run: RunState, pair: int) -> None:
        self.run = run
        media = zip(run.columns["transfer_medium"], run.columns["transfer_qp"], strict=True)
        self.num_open = list(media).count((Medium.FABRIC, pair))  # not acknowledged
        self.transfers: list[Transfer] = []

    @property
    def end(self) -> int:
        """One behind the last packet of the last ready transfer."""
        return self.transfers[-1].end if self.transfers else 0

    def append(self, transfer: Transfer) -> None:
        """Number the packets of a transfer that is ready."""
        mtu_bytes = self.run.settings.mtu_bytes
        num_packets = max(1, -(-transfer.num_bytes // mtu_bytes))
        transfer.first, transfer.end = self.end, self.end + num_packets
        transfer.last_payload_bytes = transfer.num_bytes - (num_packets - 1) * mtu_bytes
        self.transfers.append(transfer)

    def of(self, sequence: int) -> Transfer:
        """Return the transfer of a packet, the last one for what is not ready yet."""
        return next((transfer for transfer in self.transfers if sequence < transfer.end), self.transfers[-1])

    def payload_bytes(self, sequence: int) -> int:
        """Return the payload of a packet."""
        transfer = self.of(sequence)
        return transfer.last_payload_bytes if sequence + 1 == transfer.end else int(self.run.settings.mtu_bytes)

    def acknowledge(self, oldest: int, up_to: int) -> None:
        """Note that every packet below `up_to` is acknowledged; until now that was so below `oldest`."""
        for transfer in self.transfers:
            if oldest < transfer.end <= up_to:
                transfer.times["acknowledged_ps"] = self.run.now_ps
                self.num_open -= 1


class Transfers:
    """All transfers of a run."""

    def __init__(self, run: RunState) -> None:
        self.run = run
        self.num_events = 0  # of transfers to come
        self.nvlink_until_ps: dict[tuple[str, int], int] = {}  # when a GPU's link out or in is free
        rows = zip(run.columns["transfer_bytes"], run.columns["num_dependencies"], strict=True)
        self.all = [Transfer(row, num_bytes, waiting) for row, (num_bytes, waiting) in enumerate(rows)]
        dependencies = iter(run.columns["dependency_row"])
        for transfer in self.all:
            for row in islice(dependencies, transfer.waiting):
                self.all[row].dependents.append(transfer)
        for transfer in self.all:
            if transfer.waiting == 0:
                self._schedule_ready(transfer)

    def _schedule_ready(self, transfer: Transfer) -> None:
        """Let a transfer become ready that waits for nothing any more."""
        columns = self.run.columns
        earliest_ps = max(self.run.now_ps, columns["transfer_start"][transfer.row])
        self._schedule(earliest_ps + columns["transfer_delay"][transfer.row], transfer, is_end=False)

    def _schedule(self, time_ps: int, transfer: Transfer, *, is_end: bool) -> None:
        self.num_events += 1
        self.run.schedule(time_ps, EventKind.TRANSFER, transfer.row, is_end)

    def on_event(self, row: int, *, is_end: bool) -> Transfer | None:
        """Begin or end a transfer; return it if it is for its queue pair to send."""
        self.num_events -= 1
        transfer, crosses_fabric = self.all[row], self.run.columns["transfer_medium"][row] == Medium.FABRIC
        if not is_end:
            transfer.times["ready_ps"] = self.run.now_ps
            if not crosses_fabric:
                transfer.times["start_ps"] = self.run.now_ps
            if self._takes_nvlink(row):
                self._schedule(self._cross_nvlink(transfer), transfer, is_end=True)
                return None
        if crosses_fabric:
            return transfer
        transfer.times["acknowledged_ps"] = self.run.now_ps
        self.finish(transfer)
        return None

    def _takes_nvlink(self, row: int) -> bool:
        source = self.run.columns["nvlink_source"]
        return len(source) > 0 and source[row] != UNKNOWN

    def _cross_nvlink(self, transfer: Transfer) -> int:
        """Return when both GPUs' links have carried a transfer that is ready now."""
        columns, row = self.run.columns, transfer.row
        duration_ps = serialization_ps(transfer.num_bytes, self.run.settings.nvlink_rate_bps)
        ends = ("out", columns["nvlink_source"][row]), ("in", columns["nvlink_destination"][row])
        for end in ends:
            self.nvlink_until_ps[end] = max(self.nvlink_until_ps.get(end, 0), self.run.now_ps) + duration_ps
        return max(self.nvlink_until_ps[end] for end in ends)

    def finish(self, transfer: Transfer) -> None:
        """Note that the last byte of a transfer has arrived, and free what waited for it."""
        transfer.times["finish_ps"] = self.run.now_ps
        for dependent in transfer.dependents:
            dependent.waiting -= 1
            if dependent.waiting == 0:
                self._schedule_ready(dependent)
