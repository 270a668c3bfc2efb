"""A run record made ready to show: each table the page reads, its columns checked once, here.

A table that a run did not write is None and its section is left out of the page. A table that is there but malformed is
refused with its name and column: a figure drawn from half a table would look just as convincing as a true one.

Shapes: T transfers, P ports, S samples; tables of `ports` are spread over all P ports of the fabric, 0 where absent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import Mistake, RecordError
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.reports.fabric_view import FabricView

Kind = Literal["whole", "number", "text"]


OUTCOMES: Mapping[str, Kind] = {  # what a row measured over hash seeds says
    **{
        f"{share}{end}": "number"
        for share in ("overload_probability", "throughput_fraction", "slowest_fraction")
        for end in ("", "_low", "_high")
    },
    "worst_load_fraction": "number",
    "worst_load_fraction_p99": "number",
    "slowest_connection_bps": "number",
}

# Of a measured collective's time, in the order in which it is shared out.
PARTS = (
    "nic_ps",
    "rounds_ps",
    "queue_pairs_ps",
    "collisions_ps",
    "late_ranks_ps",
    "call_ps",
    "not_the_network_ps",
)

EXPOSED: Mapping[str, Kind] = {f"exposed_{axis}_ns": "number" for axis in ("tp", "dp", "pp")}  # of a training's step

ACCOUNTS = ("", "simulated_", "measured_")  # of a queue pair's timers: the model's, the engine's, a device's

# Columns the page reads; a table may have more.
COLUMNS: Mapping[str, Mapping[str, Kind]] = {
    "fabric": {
        "port": "whole",
        "node": "whole",
        "node_name": "text",
        "node_kind": "text",
        "tier": "whole",
        "group": "whole",
        "port_name": "text",
        "peer_port": "whole",
        "rate_bps": "whole",
        "nic": "whole",
        "rail": "whole",
    },
    "transfers": {
        "transfer": "whole",
        "qp": "whole",
        "source": "whole",
        "destination": "whole",
        "bytes": "whole",
        "ready_ps": "whole",
        "finish_ps": "whole",
        "packets_sent": "whole",
        "packets_retransmitted": "whole",
        "cnps": "whole",
    },
    "ports": {
        "port": "whole",
        "tx_bytes": "whole",
        "dropped_packets": "whole",
        "ecn_marked_packets": "whole",
        "pauses": "whole",
        "paused_ps": "whole",
        "max_queue_bytes": "whole",
    },
    "samples": {"time_ps": "whole", "port": "whole", "queue_bytes": "whole", "paused": "whole"},
    "faults": {
        "description": "text",
        "begin_ps": "whole",
        "end_ps": "whole",
        "goodput_before_bps": "whole",
        "goodput_during_bps": "whole",
        "goodput_after_bps": "whole",
    },
    "drops": {"port": "whole", "cause": "text", "packets": "whole"},
    "loads": {"port": "whole", "flows": "whole", "demand_bps": "number", "rate_bps": "number"},
    "collisions": {"port": "whole", "qp": "whole"},
    "throughput": {"qp": "whole", "throughput_fraction": "number"},
    "variants": {"variant": "text", **OUTCOMES},
    "designs": {"design": "text", **OUTCOMES},
    "steps": {"step": "text", **OUTCOMES},
    "effects": {"effect": "text", "metric": "text", "value": "number", "low": "number", "high": "number"},
    "comparison": {
        "operation": "text",
        "bytes": "whole",
        "measured_ps": "number",
        "simulated_ps": "number",
        "ratio": "number",
    },
    "measurements": {"operation": "text", "is_in_place": "whole", "size_bytes": "whole", "bus_bandwidth_bps": "number"},
    "model": {
        "operation": "text",
        "size_bytes": "whole",
        "bound_busbw_bps": "number",
        "fair_busbw_bps": "number",
        "engine_busbw_bps": "number",
    },
    "attribution": {
        "operation": "text",
        "is_in_place": "whole",
        "size_bytes": "whole",
        "measured_ps": "number",
        "ratio": "number",
        **dict.fromkeys(PARTS, "number"),
    },
    "training": {
        "step": "whole",
        "loss": "number",
        "is_skipped": "whole",
        "tokens_per_s": "number",
        "mfu_fraction": "number",
        **EXPOSED,
    },
    "ablation_steps": {
        "technique": "text",
        "base": "text",
        "tokens_per_s": "number",
        "mfu_fraction": "number",
        "gain_fraction": "number",
        "gain_fraction_low": "number",
        "gain_fraction_high": "number",
        **EXPOSED,
    },
    "volumes": {
        "place": "whole",
        "axis": "text",
        "operation": "text",
        "num_requests": "whole",
        "buffer_bytes": "whole",
        "sent_bytes": "whole",
        "duration_ps": "whole",
    },
    "memory": {
        "place": "whole",
        "flops": "whole",
        "weights_bytes": "whole",
        "gradients_bytes": "whole",
        "optimizer_bytes": "whole",
        "activations_bytes": "whole",
    },
    "step_parts": {"part": "text", "duration_ps": "whole"},
    "points": {"point": "whole", "settings": "text", "is_on_front": "whole"},
    "objectives": {
        "point": "whole",
        "metric": "text",
        "unit": "text",
        "value": "number",
        "low": "number",
        "high": "number",
    },
    "sensitivity": {"key": "text", "metric": "text", "measure": "text", "value": "number"},
    "storms": {
        "pattern": "text",
        "ranks": "whole",
        "requests": "whole",
        "wall_ns": "number",
        "server_cpu_ns": "number",
    },
    "rdma_transfers": {
        "sender": "text",
        "receiver": "text",
        "queue_pairs": "whole",
        "size_bytes": "whole",
        "bandwidth_bps": "number",
        "median_ns": "number",
    },
    "timers": {
        "profile": "text",
        "timeout": "whole",
        "retries": "whole",
        "flap_ns": "number",
        **{f"{who}{what}_ns": "number" for who in ACCOUNTS for what in ("gives_up", "stall")},
    },
    "flaps": {"down_ns": "whole", "tcp_resumes_ns": "number", "stall_ns": "whole"},
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One record under the name it has on the page."""

    label: str
    record: RunRecord
    fabric: FabricView | None
    transfers: Columns | None
    ports: Columns | None  # one row for each port of the fabric, in port order
    samples: Columns | None
    faults: Columns | None
    drops: Columns | None
    loads: Columns | None  # likewise
    collisions: Columns | None
    throughput: Columns | None
    comparison: Columns | None
    measurements: Columns | None
    model: Columns | None
    attribution: Columns | None
    training: Columns | None
    ablation_steps: Columns | None
    volumes: Columns | None
    memory: Columns | None
    step_parts: Columns | None
    points: Columns | None
    objectives: Columns | None
    sensitivity: Columns | None
    storms: Columns | None
    rdma_transfers: Columns | None
    timers: Columns | None
    flaps: Columns | None
    variants: Columns | None
    designs: Columns | None
    steps: Columns | None
    effects: Columns | None

    @property
    def finished(self) -> Columns | None:
        """The transfers that moved bytes over the fabric and finished, or None."""
        if self.transfers is None:
            return None
        is_finished_T = (self.transfers["qp"] >= 0) & (self.transfers["bytes"] > 0) & (self.transfers["finish_ps"] >= 0)
        return {name: column[is_finished_T] for name, column in self.transfers.items()} if is_finished_T.any() else None

    @property
    def span_ps(self) -> int:
        """Time from the first transfer ready to the last finish so far, 0 where nothing finished."""
        if self.transfers is None:
            return 0
        has_finished_T = self.transfers["finish_ps"] >= 0
        if not has_finished_T.any():
            return 0
        return int(self.transfers["finish_ps"].max() - self.transfers["ready_ps"][has_finished_T].min())


def open_run(record: RunRecord, label: str) -> Run:
    """Return the record with its tables checked; raises RecordError naming label, table and column."""
    try:
        return _open(record, label)
    except RecordError as error:
        raise RecordError(*(replace(one, where=f"{label}: {one.where}") for one in error.mistakes)) from None


def _open(record: RunRecord, label: str) -> Run:
    tables = {name: _checked(record, name) for name in COLUMNS if name in record.tables}
    fabric = FabricView.from_table(tables["fabric"]) if "fabric" in tables else None
    for name in ("ports", "samples", "drops", "loads", "collisions"):
        if name in tables and fabric is not None:
            _check_ports(name, tables[name]["port"], fabric.num_ports)
    if fabric is not None:
        for name in ("ports", "loads"):
            if name in tables:
                tables[name] = _one_row_a_port(name, tables[name], fabric.num_ports)
        _check_endpoints(tables.get("transfers"), fabric)
    return Run(
        label=label,
        record=record,
        fabric=fabric,
        **{name: tables.get(name) for name in COLUMNS if name != "fabric"},
    )


def _checked(record: RunRecord, name: str) -> Columns:
    table, wanted = record.tables[name], COLUMNS[name]
    mistakes = [
        Mistake(where=f"{name}.{column}", found="the column is missing", allowed=f"a {kind} column in table {name!r}")
        for column, kind in wanted.items()
        if column not in table
    ]
    if mistakes:
        raise RecordError(*mistakes)
    columns = {column: _typed(f"{name}.{column}", np.asarray(table[column]), kind) for column, kind in wanted.items()}
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1:
        shortest = min(lengths, key=lengths.__getitem__)
        raise RecordError(
            Mistake(
                where=f"{name}.{shortest}",
                found=f"{lengths[shortest]} rows where another column has {max(lengths.values())}",
            )
        )
    return columns


def _typed(where: str, values: NDArray[Any], kind: Kind) -> NDArray[Any]:
    if kind == "text":
        if values.dtype.kind in "OUT" and all(isinstance(value, str) for value in values):
            return values
    elif kind == "whole":
        if values.dtype.kind in "iub":
            return values.astype(np.int64)
    elif values.dtype.kind in "iuf" and np.isfinite(values).all():
        return values.astype(np.float64)
    allowed = {"text": "text", "whole": "whole numbers", "number": "finite numbers"}[kind]
    raise RecordError(Mistake(where=where, found=f"values of type {values.dtype}, or missing ones", allowed=allowed))


def _check_ports(name: str, port: IntArray, num_ports: int) -> None:
    is_wrong = (port < 0) | (port >= num_ports)
    if is_wrong.any():
        raise RecordError(
            Mistake(
                where=f"{name}.port",
                found=f"port {port[np.argmax(is_wrong)]} in row {np.argmax(is_wrong)}",
                allowed=f"0 to {num_ports - 1}, the ports of table 'fabric'",
            )
        )


def _check_endpoints(transfers: Columns | None, fabric: FabricView) -> None:
    if transfers is None:
        return
    on_fabric_T = transfers["qp"] >= 0
    for column in ("source", "destination"):
        nic = transfers[column][on_fabric_T]
        is_wrong = (nic < 0) | (nic >= fabric.num_nics)
        if is_wrong.any():
            raise RecordError(
                Mistake(
                    where=f"transfers.{column}",
                    found=f"NIC {nic[np.argmax(is_wrong)]}",
                    allowed=f"0 to {fabric.num_nics - 1}, the NICs of table 'fabric'",
                )
            )


def _one_row_a_port(name: str, table: Columns, num_ports: int) -> Columns:
    if (np.bincount(table["port"], minlength=num_ports) > 1).any():
        raise RecordError(Mistake(where=f"{name}.port", found="a port in two rows", allowed="one row for each port"))
    spread: dict[str, NDArray[Any]] = {"port": np.arange(num_ports)}
    for key, column in table.items():
        if key != "port":
            spread[key] = np.zeros(num_ports, column.dtype)
            spread[key][table["port"]] = column
    return spread
