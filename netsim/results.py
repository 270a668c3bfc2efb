"""Results of a run: the tables of its record, and findings."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fabrictune.foundation.finding_rules.simulation import (
    DROPPED_PACKETS,
    PAUSE_STORM,
    PFC_DEADLOCK,
    RECEIVER_NOT_READY,
    REORDERED_PACKETS,
    UNFINISHED_TRANSFERS,
)
from fabrictune.foundation.metrics.transfers import slowdowns
from fabrictune.foundation.records import Columns, Confidence, Finding
from fabrictune.foundation.retransmission import rnr_wait_ps
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.foundation.units import format_bytes, format_duration
from fabrictune.netsim import _engine
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import REORDERING_MODES
from fabrictune.netsim.deadlock import Deadlock
from fabrictune.netsim.ideal import ideal_times_ps
from fabrictune.topology.files import fabric_table
from fabrictune.topology.network import Network

MAX_NAMED = 10  # transfers or ports named in one finding


def tables(
    network: Network, traffic: TrafficTrace, simulation: _engine.Simulation, config: PacketConfig
) -> dict[str, Columns]:
    """Return the tables of foundation/run_tables/simulation.py; `queues` only where ports have priorities."""
    got = simulation.transfer_columns()
    ideal_ps_N = ideal_times_ps(network, traffic, config)
    slowdown_N = slowdowns({**got, "ideal_ps": ideal_ps_N})
    queues = simulation.queue_columns()
    numbers = np.array(config.queues.numbers, np.int64)
    ports = {"port": np.arange(network.fabric.num_ports), **simulation.port_columns()}
    return {
        "fabric": fabric_table(network.fabric),
        "transfers": {
            "transfer": np.arange(len(traffic)),
            "qp": traffic.qp_N,
            "source": traffic.source_N,
            "destination": traffic.destination_N,
            "bytes": traffic.bytes_N,
            "operation": traffic.operation_N,
            **got,
            "ideal_ps": ideal_ps_N,
            "slowdown": np.where(np.isfinite(slowdown_N), slowdown_N, np.nan),
        },
        "ports": ports,
        "aborts": dict(simulation.failure_columns()),
        **({"queues": {**queues, "priority": numbers[queues["priority"]]}} if len(numbers) else {}),
        "samples": dict(simulation.port_sample_columns()),
        "flow_samples": dict(simulation.flow_sample_columns()),
    }


def findings(
    network: Network,
    all_tables: dict[str, Columns],
    run: Mapping[str, Any],
    config: PacketConfig,
    deadlock: Deadlock | None,
) -> tuple[Finding, ...]:
    """Return findings: incomplete transfers, deadlock, pause storms, lost and reordered packets.

    `run` is the record's, with `outcome` and `packets`.
    """
    results = [
        _deadlocked(network, deadlock),
        _unfinished(all_tables["transfers"], run["outcome"]),
        _dropped(network, all_tables),
        _stormed(network, all_tables.get("queues")),
        _reordered(all_tables["transfers"], run["packets"], config),
        _refused(run["packets"]["data_refused"], config),
    ]
    return tuple(finding for finding in results if finding)


def _deadlocked(network: Network, deadlock: Deadlock | None) -> Finding | None:
    if deadlock is None:
        return None
    shown = "; ".join(network.fabric.link_label(port) for port in deadlock.ring[:MAX_NAMED])
    others, behind = len(deadlock.ring) - MAX_NAMED, len(deadlock.ports) - len(deadlock.ring)
    return PFC_DEADLOCK.finding(
        entity=shown + (f"; and {others} more" if others > 0 else ""),
        expected="no cycle of paused ports",
        actual=(
            f"a cycle of {len(deadlock.ring)} ports is never resumed and blocks {behind} more;"
            f" they hold {format_bytes(deadlock.held_bytes)}"
        ),
        confidence=Confidence.PREDICTED,
    )


def _unfinished(transfers: Columns, outcome: str) -> Finding | None:
    rows = np.nonzero(transfers["acknowledged_ps"] < 0)[0]
    if not len(rows):
        return None
    next_steps = {
        "stalled": "look for queue pairs out of retries (losses, a path without an end) behind these transfers",
        "time-limit": "raise time_limit, or look at what delays these transfers",
        "interrupted": "run again to the end",
    }
    ends = {"stalled": "run stalled", "time-limit": "run reached its time limit", "interrupted": "run interrupted"}
    return UNFINISHED_TRANSFERS.finding(
        entity=f"transfers {_some(rows)}",
        expected="all transfers to complete",
        actual=f"{len(rows)} of {len(transfers['transfer'])} transfers never completed; {ends[outcome]}",
        next_step=next_steps[outcome],
        confidence=Confidence.PREDICTED,
    )


def _dropped(network: Network, all_tables: Mapping[str, Columns]) -> Finding | None:
    dropped_P = all_tables["ports"]["dropped_packets"].copy()
    by_fault = all_tables.get("drops", {"port": np.zeros(0, np.int64), "packets": np.zeros(0, np.int64)})
    np.subtract.at(dropped_P, by_fault["port"], by_fault["packets"])
    if not dropped_P.any():
        return None
    worst = int(np.argmax(dropped_P))
    return DROPPED_PACKETS.finding(
        entity=network.fabric.link_label(worst),
        expected="no packet loss",
        actual=f"{int(dropped_P[worst])} packets lost here, {int(dropped_P.sum())} in total",
        confidence=Confidence.PREDICTED,
    )


def _stormed(network: Network, queues: Columns | None) -> Finding | None:
    if queues is None or not queues["pause_storms"].any():
        return None
    worst = int(np.argmax(queues["pause_storms"]))
    return PAUSE_STORM.finding(
        entity=f"{network.fabric.link_label(int(queues['port'][worst]))}, priority {int(queues['priority'][worst])}",
        expected="no queue paused beyond its watchdog's limit",
        actual=(
            f"{int(queues['pause_storms'][worst])} pause storms here, {int(queues['pause_storms'].sum())} in total;"
            f" {int(queues['dropped_packets'][worst])} packets dropped here"
        ),
        confidence=Confidence.PREDICTED,
    )


def _reordered(transfers: Columns, packets: Mapping[str, int], config: PacketConfig) -> Finding | None:
    """Return a finding about spurious retransmissions caused by reordering."""
    num_resent, num_early = int(transfers["packets_retransmitted"].sum()), packets["data_out_of_order"]
    if config.path_choice.mode not in REORDERING_MODES or not num_early:
        return None
    is_selective = config.transport.reliability == "selective-repeat"
    if is_selective and num_resent <= packets["dropped"]:
        return None
    return REORDERED_PACKETS.finding(
        entity=f"path choice {config.path_choice.mode}",
        expected=(
            "reordering within the reorder window" if is_selective else "in-order delivery, which go-back-N requires"
        ),
        actual=f"{num_early} packets arrived out of order and {num_resent} were retransmitted",
        next_step=(
            "raise transport.reorder_window above the difference in delay between paths"
            if is_selective
            else "use selective repeat, or a path choice that keeps order: flowlets with a longer gap, weighted, hash"
        ),
        confidence=Confidence.PREDICTED,
    )


def _refused(num_refused: int, config: PacketConfig) -> Finding | None:
    if not num_refused:
        return None
    wait = format_duration(rnr_wait_ps(config.transport.rnr.timer_code))
    return RECEIVER_NOT_READY.finding(
        entity="receivers",
        expected="a posted receive for every message",
        actual=f"{num_refused} RNR NAKs, each of which delayed the sender by {wait}",
        confidence=Confidence.PREDICTED,
    )


def _some(rows: np.ndarray) -> str:
    shown = ", ".join(str(row) for row in rows[:MAX_NAMED])
    return shown + (f" and {len(rows) - MAX_NAMED} more" if len(rows) > MAX_NAMED else "")
