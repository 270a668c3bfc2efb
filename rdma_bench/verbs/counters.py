"""Hardware counters of a port: read before and after, and their differences, over a wrap too.

Counters of drivers are read as numbers of 32 or 64 bits, whatever their width: one that comes back smaller has wrapped
at 2**32, or was set to zero (the device was reset), which cannot be distinguished from one that wrapped late. Counters
that the InfiniBand standard gives 4 to 32 bits stop at their highest value instead.

Source: IBTA 1.4, volume 1, 16.1.3.5 (PortCounters); Linux, drivers/infiniband: hw/mlx5/counters.c,
hw/bnxt_re/hw_counters.c, sw/rxe/rxe_hw_counters.c.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fabrictune.rdma_bench.verbs.diagnosis import DEVICES

Certainty = Literal["exact", "wrapped", "at least", "reset"]

FOLDERS = ("hw_counters", "counters")
WRAP = 2**32
STANDARD_BITS: Mapping[str, int] = {
    "symbol_error": 16,
    "link_error_recovery": 8,
    "link_downed": 8,
    "port_rcv_errors": 16,
    "port_rcv_remote_physical_errors": 16,
    "port_rcv_switch_relay_errors": 16,
    "port_xmit_discards": 16,
    "port_xmit_constraint_errors": 8,
    "port_rcv_constraint_errors": 8,
    "local_link_integrity_errors": 4,
    "excessive_buffer_overrun_errors": 4,
    "VL15_dropped": 16,
    "port_xmit_wait": 32,
}
# What counts the same thing in each driver: mlx5, bnxt_re, rxe.
MEANINGS: Mapping[str, tuple[str, ...]] = {
    "timeouts": ("local_ack_timeout_err", "to_retransmits", "completer_retry_err"),
    "adaptive retransmissions": ("roce_adp_retrans",),
    "retries exceeded": ("req_transport_retries_exceeded", "max_retry_exceeded", "retry_exceeded_err"),
    "receiver not ready": ("rnr_nak_retry_err", "rnr_naks_rcvd", "rcvd_rnr_err"),
    "out of sequence": ("packet_seq_err", "seq_err_naks_rcvd", "out_of_seq_request"),
    "duplicates": ("duplicate_request", "dup_req"),
}


@dataclass(frozen=True, kw_only=True)
class CounterChange:
    """Change of a counter between two readings."""

    name: str
    change: int
    certainty: Certainty  # "reset": change is what was counted since then, at least


def read_counters(device: str, port: int = 1, *, root: Path = DEVICES) -> dict[str, int]:
    """Return the counters of a port by name; one that cannot be read is left out."""
    values = {}
    for name in FOLDERS:
        for path in (root / device / "ports" / str(port) / name).glob("*"):
            try:
                values[path.name] = int(path.read_text())
            except (OSError, ValueError):  # "N/A (no PMA)", or a driver that refuses
                continue
    values.pop("lifespan", None)  # how long the driver keeps a reading, in ms
    return values


def count_changes(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[CounterChange, ...]:
    """Return the counters that moved, by name."""
    changes = (_change(name, before[name], after[name]) for name in sorted(before.keys() & after.keys()))
    return tuple(change for change in changes if change.change or change.certainty != "exact")


def by_meaning(changes: tuple[CounterChange, ...]) -> dict[str, int]:
    """Return what was counted under the names that all drivers share."""
    counted = {change.name: change.change for change in changes}
    result = {meaning: [counted[name] for name in names if name in counted] for meaning, names in MEANINGS.items()}
    return {meaning: sum(numbers) for meaning, numbers in result.items() if numbers}


def _change(name: str, before: int, after: int) -> CounterChange:
    bits = STANDARD_BITS.get(name)
    if bits and after >= 2**bits - 1:
        return CounterChange(name=name, change=max(after - before, 0), certainty="at least")
    if after >= before:
        return CounterChange(name=name, change=after - before, certainty="exact")
    wrapped = after - before + WRAP
    if before < WRAP and 0 < wrapped < WRAP // 2 and not bits:
        return CounterChange(name=name, change=wrapped, certainty="wrapped")
    return CounterChange(name=name, change=after, certainty="reset")
