"""What the tests of the packet engine share: hosts under one switch, and runs on them."""

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fabrictune.cc.compiler import compile_law
from fabrictune.cc.interface import CompiledLaw
from fabrictune.cc.laws import load_law
from fabrictune.conformance.netsim import one_switch as by_hand
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.traces import UNKNOWN, Dependencies, Medium, TrafficTrace
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.packet import run
from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import Network
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network

Rows = list[dict[str, Any]]


def one_switch(num_hosts: int, rate_bps: int = 100 * 10**9, cable_mm: int = 2_000) -> Fabric:
    """Return hosts of one NIC each under one ToR; 2 m of cable take 10 ns."""
    return by_hand.one_switch(num_hosts, rate_bps, cable_mm)


@cache
def compiled(name: str) -> CompiledLaw:
    """Return a built-in law with its defaults."""
    return compile_law(load_law(name))


def traffic_of(rows: Rows) -> TrafficTrace:
    """Return a trace; a row has bytes, and perhaps waits and any other column by its name."""

    def column(name: str, default: int) -> np.ndarray:
        return np.array([row.get(name, default) for row in rows], np.int64)

    return TrafficTrace(
        source_N=column("source", 0),
        destination_N=column("destination", 0),
        medium_N=column("medium", Medium.FABRIC),
        qp_N=np.where(column("medium", Medium.FABRIC) == Medium.FABRIC, column("qp", 0), UNKNOWN),
        bytes_N=column("bytes", 0),
        start_ps_N=column("start_ps", 0),
        delay_ps_N=column("delay_ps", 0),
        operation_N=np.full(len(rows), UNKNOWN, np.int64),
        relayed_from_N=column("relayed_from", UNKNOWN),
        relayed_to_N=column("relayed_to", UNKNOWN),
        dependencies=Dependencies.from_lists([row.get("waits", []) for row in rows]),
    )


def network_of(fabric: Fabric, pairs: list[tuple[int, int]]) -> Network:
    """Return the network of queue pairs given as (source NIC, destination NIC)."""
    source_Q, destination_Q = np.array(pairs, np.int64).T
    return build_network(fabric, make_queue_pairs(source_Q, destination_Q), HashSpec())


def funnel(out_bps: int) -> Fabric:
    """Return two hosts under one ToR, 100 Gb/s into it and slower out of it to host 1; each cable takes 10 ns."""
    draft = FabricDraft("funnel")
    switch = draft.add_switch("tor")
    for number, rate_bps in enumerate((10**11, out_bps)):
        host = draft.add_host(f"host{number}")
        draft.add_link((host, "nic0"), (switch, f"host{number}"), rate_bps=rate_bps, delay_ps=10_000)
    return draft.finish()


@pytest.fixture
def simulate() -> Callable[..., RunRecord]:
    """Return a function that runs rows of traffic between pairs of NICs under one switch."""

    def simulate_rows(
        pairs: list[tuple[int, int]],
        rows: Rows,
        config: PacketConfig | None = None,
        *,
        law: str | ModuleType | CompiledLaw = "none",
        fabric: Fabric | None = None,
        seed: int = 0,
        probe: ProbeConfig | None = None,
    ) -> RunRecord:
        chosen = fabric or one_switch(1 + max(max(pair) for pair in pairs))
        handlers = compiled(law) if isinstance(law, str) else law
        ready = compile_law(handlers) if isinstance(handlers, ModuleType) else handlers
        network = network_of(chosen, pairs)
        return run(network, traffic_of(rows), ready, config or PacketConfig(), seed=seed, probe=probe)

    return simulate_rows
