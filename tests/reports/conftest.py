"""A run of two flows over two ToRs, small enough to work every figure out by hand.

Hosts h0 and h1 hang under tor0, h2 and h3 under tor1, two links join the ToRs; every link carries 100 Gbps. Link k has
the ports 2k and 2k + 1. Both flows (NIC 0 to 2 and NIC 1 to 3, a megabyte each) were hashed onto port 8, the first link
from tor0 to tor1: one finished after 100 us and one after 200 us.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.checks import Check
from fabrictune.foundation.records import Columns, Confidence, Finding, RunRecord, Severity

RATE_BPS = 100 * 10**9
LINKS = (("h0", "tor0"), ("h1", "tor0"), ("h2", "tor1"), ("h3", "tor1"), ("tor0", "tor1"), ("tor0", "tor1"))
NODES = ("h0", "h1", "h2", "h3", "tor0", "tor1")
PORT_NAMES = ("eth0", "swp1", "eth0", "swp2", "eth0", "swp1", "eth0", "swp2", "swp3", "swp3", "swp4", "swp4")
COLLISION_PORT = 8

RecordMaker = Callable[..., RunRecord]


def two_tor_fabric() -> Columns:
    """Return the table `fabric`, 12 ports."""
    node_name = [name for link in LINKS for name in link]
    is_host = np.array([name.startswith("h") for name in node_name])
    return {
        "port": np.arange(12),
        "node": np.array([NODES.index(name) for name in node_name]),
        "node_name": np.array(node_name),
        "node_kind": np.where(is_host, "host", "switch"),
        "tier": np.where(is_host, 0, 1),
        "group": np.array([int(name in ("h2", "h3", "tor1")) for name in node_name]),
        "port_name": np.array(PORT_NAMES),
        "peer_port": np.arange(12) ^ 1,
        "rate_bps": np.full(12, RATE_BPS),
        "delay_ps": np.full(12, 10_000),
        "nic": np.where(is_host, np.arange(12) // 2, -1),
        "rail": np.where(is_host, 0, -1),
    }


def two_flow_tables() -> dict[str, Columns]:
    """Return every table a record of the two flows may have."""
    port_column = np.arange(12)
    on_path = np.isin(port_column, (0, 2, 5, 7))
    at_collision = port_column == COLLISION_PORT
    return {
        "fabric": two_tor_fabric(),
        "transfers": {
            "transfer": np.arange(2),
            "qp": np.arange(2),
            "source": np.array([0, 1]),
            "destination": np.array([2, 3]),
            "bytes": np.full(2, 1_000_000),
            "ready_ps": np.zeros(2, np.int64),
            "start_ps": np.zeros(2, np.int64),
            "finish_ps": np.array([100_000_000, 200_000_000]),
            "operation": np.full(2, -1),
            "packets_sent": np.full(2, 250),
            "packets_retransmitted": np.array([0, 5]),
            "cnps": np.array([1, 7]),
        },
        "ports": {
            "port": port_column,
            "tx_bytes": np.where(at_collision, 2_000_000, np.where(on_path, 1_000_000, 0)),
            "tx_packets": np.where(at_collision, 500, np.where(on_path, 250, 0)),
            "data_packets": np.where(at_collision, 500, np.where(on_path, 250, 0)),
            "dropped_packets": np.where(at_collision, 1, 0),
            "ecn_marked_packets": np.where(at_collision, 50, 0),
            "pauses": np.where(np.isin(port_column, (0, 2)), np.where(port_column == 0, 1, 2), 0),
            "paused_ps": np.where(np.isin(port_column, (0, 2)), 15_000_000, 0),
            "max_queue_bytes": np.where(at_collision, 90_000, 0),
        },
        "samples": {
            "time_ps": np.array([0, 0, 100_000_000, 100_000_000]),
            "port": np.array([0, 8, 0, 8]),
            "queue_bytes": np.array([0, 40_000, 10_000, 80_000]),
            "tx_bytes": np.array([0, 0, 500_000, 1_000_000]),
            "paused": np.array([0, 0, 1, 0]),
        },
        "loads": {
            "port": port_column,
            "flows": np.where(at_collision, 2, np.where(on_path, 1, 0)),
            "demand_bps": np.where(at_collision, 2 * RATE_BPS, np.where(on_path, RATE_BPS, 0)),
            "rate_bps": np.full(12, RATE_BPS),
        },
        "collisions": {"port": np.full(2, COLLISION_PORT), "qp": np.array([0, 1])},
    }


def two_flow_finding(severity: Severity = Severity.ERROR, **changes: Any) -> Finding:
    """Return what the collision analysis says of port 8."""
    values: dict[str, Any] = {
        "id": "ecmp.link-overloaded",
        "severity": severity,
        "entity": "tor0:swp3 -> tor1:swp3",
        "expected": "demand of at most 100 Gbps",
        "actual": "2 queue pairs, 200 Gbps",
        "next_step": "change a source port",
        "confidence": Confidence.PREDICTED,
        "evidence": ("loads, port 8",),
    }
    return Finding(**{**values, **changes})


@pytest.fixture
def make_record() -> RecordMaker:
    """Return a maker of records of the two flows: `tables` replaces tables (None leaves one out), `run` adds facts."""

    def make(
        *,
        tables: Mapping[str, Columns | None] | None = None,
        run: Mapping[str, Any] | None = None,
        findings: tuple[Finding, ...] = (),
        checks: tuple[Check, ...] | None = None,
    ) -> RunRecord:
        wanted = {**two_flow_tables(), **(tables or {})}
        return RunRecord(
            kind="sim run",
            run={"seed": 1, "name": "two flows", "scenario": "seed: 1\ntraffic: permutation\n", **(run or {})},
            tables={name: table for name, table in wanted.items() if table is not None},
            findings=findings,
            checks=checks,
        )

    return make


@pytest.fixture
def record(make_record: RecordMaker) -> RunRecord:
    """Return the record of the two flows with its one finding."""
    return make_record(findings=(two_flow_finding(),))


@pytest.fixture
def whole_record(make_record: RecordMaker) -> RunRecord:
    """Return the record of the two flows with the columns that a written record has and the page can do without."""
    tables = two_flow_tables()
    transfers = {
        **tables["transfers"],
        "acknowledged_ps": np.array([101_000_000, 201_000_000]),
        "ideal_ps": np.full(2, 80_000_000),
        "slowdown": np.array([1.25, 2.5]),
    }
    samples = {**tables["samples"], "paused_ps": np.array([0, 0, 5_000_000, 0])}
    return make_record(tables={"transfers": transfers, "samples": samples})


@pytest.fixture
def make_finding() -> Callable[..., Finding]:
    """Return a maker of findings like the record's own."""
    return two_flow_finding
