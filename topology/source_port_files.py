"""Files of UDP source ports: the port of each queue pair, as `fabrictune ecmp plan` writes them.

CSV with the columns `source` and `destination` (NICs, as `host:port` of one of their ports), `source_qpn` and
`destination_qpn`, and `source_port`. A queue pair is known by both NICs and both numbers, so that a file that was made
for another placement, or for another number of queue pairs, is refused and not misread.

Source: RoCEv2 (InfiniBand Architecture Specification, annex A17): the source port is the sender's to choose.

Shapes: Q queue pairs.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from fabrictune.foundation.csv_rows import MAX_MISTAKES, read_csv_rows
from fabrictune.foundation.errors import InputError, Mistake, nearest_name, quote
from fabrictune.topology.fabric import NO_NIC, Fabric
from fabrictune.topology.network import QueuePairs

MAX_SOURCE_PORT_BYTES = 128 * 2**20
COLUMNS = ("source", "destination", "source_qpn", "destination_qpn", "source_port")
LIMIT_PORT = 2**16
_NUMBER = re.compile(r"(?:(0x)(?=[0-9a-fA-F]{1,8}$))?((?(1)[0-9a-fA-F]+|[0-9]{1,9}))")

Identity = tuple[int, int, int, int]  # both NICs and both numbers


def apply_source_ports(path: Path, fabric: Fabric, queue_pairs: QueuePairs) -> tuple[QueuePairs, tuple[str, ...]]:
    """Return the queue pairs with the ports of a file, and a note of those that it leaves as they are.

    Raises InputError with the rows that no queue pair has, that give a port twice, or that cannot be read.
    """
    row_of = {identity: row for row, identity in enumerate(_identities(queue_pairs))}
    source_port_Q, line_Q = queue_pairs.source_port_Q.copy(), np.zeros(len(queue_pairs), np.int64)
    mistakes: list[Mistake] = []
    for line, identity, port in _Reader(path, fabric, mistakes).rows():
        row = row_of.get(identity, -1)
        if row < 0:
            mistakes.append(_unknown(path, line, fabric, identity))
        elif line_Q[row]:
            found = f"a second port of queue pair {row}; line {line_Q[row]} has its first"
            mistakes.append(Mistake(where=f"{path}:{line}", found=found, allowed="one row for each queue pair"))
        else:
            source_port_Q[row], line_Q[row] = port, line
        if len(mistakes) >= MAX_MISTAKES:
            break
    if mistakes:
        raise InputError(*mistakes)
    others = int((line_Q == 0).sum())
    notes = (f"{path}: queue pairs without a row, which keep their source port: {others} of {len(queue_pairs)}",)
    return replace(queue_pairs, source_port_Q=source_port_Q), notes if others else ()


def _identities(queue_pairs: QueuePairs) -> Iterator[Identity]:
    columns = (
        queue_pairs.source_nic_Q,
        queue_pairs.destination_nic_Q,
        queue_pairs.source_qpn_Q,
        queue_pairs.destination_qpn_Q,
    )
    return zip(*(column.tolist() for column in columns), strict=True)


def _unknown(path: Path, line: int, fabric: Fabric, identity: Identity) -> Mistake:
    source, destination, source_qpn, destination_qpn = identity
    return Mistake(
        where=f"{path}:{line}",
        found=f"no queue pair {source_qpn} to {destination_qpn} from {fabric.nic_label(source)} to "
        f"{fabric.nic_label(destination)}",
        allowed="queue pairs of the scenario",
        next_step="take the placement and the settings that the ports were planned with, or plan them again",
    )


class _Reader:
    """The rows of a file; what is wrong with one is added to `mistakes`."""

    def __init__(self, path: Path, fabric: Fabric, mistakes: list[Mistake]) -> None:
        self.path, self.mistakes = path, mistakes
        ports = np.nonzero(fabric.port_nic_P != NO_NIC)[0].tolist()
        self.nic_of_label = {fabric.port_label(port): int(fabric.port_nic_P[port]) for port in ports}

    def rows(self) -> Iterator[tuple[int, Identity, int]]:
        """Yield line, identity and port of each row that can be read; raises InputError for a file that cannot."""
        rows = read_csv_rows(self.path, required=COLUMNS, max_bytes=MAX_SOURCE_PORT_BYTES, mistakes=self.mistakes)
        for row in rows:
            line, cells = row.line, row.cells
            source, destination = (self._nic(line, cells[name]) for name in ("source", "destination"))
            source_qpn, destination_qpn = (
                self._number(line, name, cells[name], 2**24) for name in ("source_qpn", "destination_qpn")
            )
            port = self._number(line, "source_port", cells["source_port"], LIMIT_PORT)
            if min(source, destination, source_qpn, destination_qpn, port) >= 0:
                yield line, (source, destination, source_qpn, destination_qpn), port

    def _nic(self, line: int, label: str) -> int:
        nic = self.nic_of_label.get(label, NO_NIC)
        if nic == NO_NIC:
            nearest = nearest_name(label, list(self.nic_of_label)[:1_000])
            self._note(line, f"unknown NIC {quote(label)}", "host:port of a NIC of the fabric", nearest)
        return nic

    def _number(self, line: int, name: str, text: str, limit: int) -> int:
        match = _NUMBER.fullmatch(text)
        value = -1 if match is None else int(match[2], 16) if match[1] else int(match[2])
        if not 0 <= value < limit:
            self._note(line, f"{name} {quote(text)}", f"0 to {limit - 1}")
            return -1
        return value

    def _note(self, line: int, found: str, allowed: str, nearest: str = "") -> None:
        if len(self.mistakes) < MAX_MISTAKES:
            self.mistakes.append(Mistake(where=f"{self.path}:{line}", found=found, allowed=allowed, nearest=nearest))
