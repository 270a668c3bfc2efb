"""Random runs that repeat, wholly or in part, and all that a run leaves."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fabrictune.cc.compiler import compile_law
from fabrictune.cc.interface import CompiledLaw
from fabrictune.cc.laws import load_law
from fabrictune.foundation.traces import UNKNOWN, Dependencies, Medium, TrafficTrace
from fabrictune.netsim import _engine, packet
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.config.transport import CnpConfig, TransportConfig
from fabrictune.netsim.engine_inputs.inputs import EngineInputs, make_engine_inputs
from fabrictune.netsim.faults.timeline import FaultInterval
from fabrictune.netsim.packet import make_simulation
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import Network
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network
from tests.skip import steady_law

MTU_BYTES = 1024
LAWS: dict[str, CompiledLaw] = {
    name: compile_law(load_law(name))
    for name in ("none", "dcqcn", "swift", "hybrid", "timely", "dctcp", "barre", "nscc", "hpcc", "dcqcn_firmware")
}
NUM_LAWS_OF_PLAIN_RUNS = 7  # the first ones
STEADY_LAWS: dict[str, dict[str, float]] = {"paced": {"rate_fraction": 0.3}, "narrow": {"window_packets": 30}}
LAWS |= {name: compile_law(steady_law, settings) for name, settings in STEADY_LAWS.items()}
FAILING = compile_law(steady_law, {**STEADY_LAWS["narrow"], "most_acks": 2_000})
ENDLESS = 2**40


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run's inputs."""

    network: Network
    traffic: TrafficTrace
    config: PacketConfig
    law: str
    seed: int
    probe: ProbeConfig | None
    capture: CaptureConfig | None = None
    faults: tuple[FaultInterval, ...] = ()

    def inputs(self) -> EngineInputs:
        """Return the run as an engine reads it."""
        law = LAWS[self.law]
        return make_engine_inputs(
            self.network,
            self.traffic,
            law,
            self.config.with_telemetry() if law.uses_telemetry else self.config,
            seed=self.seed,
            probe=self.probe,
            capture=self.capture,
            faults=self.faults,
        )


def random_run(seed: int) -> Run:
    """Return a run of up to 16 hosts with messages of up to some thousand packets."""
    dice = np.random.default_rng([seed, 56])
    fabric = random_fabric(dice)
    workload = (_ring, _messages, _incast)[int(dice.choice([0, 0, 1, 1, 2]))]
    source_Q, destination_Q, traffic = workload(fabric.num_nics, dice)
    return Run(
        network=build_network(fabric, make_queue_pairs(source_Q, destination_Q), HashSpec()),
        traffic=traffic,
        config=random_config(dice),
        law="none"
        if workload is _incast and seed % 2
        else str(dice.choice(list(LAWS)[:NUM_LAWS_OF_PLAIN_RUNS])),  # pauses in a cycle
        seed=seed,
        probe=random_probe(dice),
    )


def random_fabric(dice: np.random.Generator) -> Fabric:
    """Return a fabric of one or two tiers."""
    num_hosts = int(dice.choice([4, 8, 16]))
    return build_clos(
        ClosSpec(
            num_hosts=num_hosts,
            hosts_per_tor_set=int(dice.choice([num_hosts // 2, num_hosts])),
            nics_per_host=1,
            tiers=2,
            nic_rate_bps=int(dice.choice([100, 200, 300, 400])) * 10**9,
            uplink_rate_bps=400 * 10**9,
            downlink_split=1,
            uplinks_per_tor=int(dice.choice([1, 2, 4])),
            host_cable_mm=int(dice.integers(1_000, 20_000)),
        )
    )


Workload = tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.int64]], TrafficTrace]


def _ring(num_nics: int, dice: np.random.Generator) -> Workload:
    """Return a ring in steps, each pair's next chunk after the chunk that its source receives; perhaps one intruder."""
    num_steps = int(dice.integers(2, 6))
    nics = (
        dice.permutation(num_nics)[: int(dice.integers(3, num_nics + 1))] if dice.integers(2) else np.arange(num_nics)
    )
    size = len(nics)
    source_Q, destination_Q = nics, np.roll(nics, -1)
    chunk_bytes = int(dice.integers(40, 1_500)) * MTU_BYTES + int(dice.integers(0, MTU_BYTES) * dice.integers(2))
    waits: list[list[int]] = []
    for step in range(num_steps):
        waits += [[(step - 1) * size + (rank - 1) % size] if step else [] for rank in range(size)]
    qp_N = np.tile(np.arange(size), num_steps)
    start_ps_N = np.zeros(len(qp_N), np.int64)
    bytes_N = np.full(len(qp_N), chunk_bytes)
    if dice.integers(2):  # a message between two of all NICs, at some time
        source_Q = np.append(source_Q, dice.integers(0, num_nics))
        destination_Q = np.append(destination_Q, (source_Q[-1] + dice.integers(1, num_nics)) % num_nics)
        qp_N, bytes_N = np.append(qp_N, size), np.append(bytes_N, dice.integers(1, 200) * MTU_BYTES)
        start_ps_N = np.append(start_ps_N, dice.integers(0, 200_000_000))
        waits.append([])
    return source_Q, destination_Q, make_trace(qp_N, bytes_N, start_ps_N, waits)


def _messages(num_nics: int, dice: np.random.Generator) -> Workload:
    """Return messages between random NICs at random times."""
    num_pairs = int(dice.integers(1, 9))
    source_Q = dice.integers(0, num_nics, num_pairs)
    destination_Q = (source_Q + dice.integers(1, num_nics, num_pairs)) % num_nics
    num_rows = num_pairs + int(dice.integers(0, 6))
    qp_N = np.append(np.arange(num_pairs), dice.integers(0, num_pairs, num_rows - num_pairs))
    bytes_N = dice.integers(1, 3_000, num_rows) * MTU_BYTES + dice.integers(0, MTU_BYTES, num_rows)
    start_ps_N = dice.integers(0, 300_000_000, num_rows) * dice.integers(0, 2, num_rows)
    return source_Q, destination_Q, make_trace(qp_N, bytes_N, start_ps_N, [[] for _ in range(num_rows)])


def _incast(num_nics: int, dice: np.random.Generator) -> Workload:
    """Return messages of one size from some NICs to the first."""
    num_pairs = int(dice.integers(2, min(num_nics, 6)))
    source_Q = dice.permutation(np.arange(1, num_nics))[:num_pairs]
    bytes_N = np.full(num_pairs, int(dice.choice([300, 3_000, 10_000])) * MTU_BYTES)
    start_ps_N = np.zeros(num_pairs, np.int64)
    return (
        source_Q,
        np.zeros(num_pairs, np.int64),
        make_trace(np.arange(num_pairs), bytes_N, start_ps_N, [[]] * num_pairs),
    )


def make_trace(qp_N: Any, bytes_N: Any, start_ps_N: Any, waits: list[list[int]]) -> TrafficTrace:
    """Return fabric transfers of queue pairs, each with a size, a start and what it waits for."""
    num_rows = len(qp_N)
    return TrafficTrace(
        source_N=np.zeros(num_rows, np.int64),
        destination_N=np.zeros(num_rows, np.int64),
        medium_N=np.full(num_rows, Medium.FABRIC, np.int64),
        qp_N=np.asarray(qp_N, np.int64),
        bytes_N=np.asarray(bytes_N, np.int64),
        start_ps_N=np.asarray(start_ps_N, np.int64),
        delay_ps_N=np.zeros(num_rows, np.int64),
        operation_N=np.full(num_rows, UNKNOWN, np.int64),
        dependencies=Dependencies.from_lists(waits),
    )


def random_config(dice: np.random.Generator) -> PacketConfig:
    """Return a configuration without what only the full engine has."""
    has_pfc = bool(dice.integers(4))
    kmin = int(dice.choice([10_000, 50_000, 400_000]))
    return PacketConfig(
        mtu_bytes=MTU_BYTES,
        ack_every_packets=int(dice.choice([1, 1, 2, 3])),
        ecn=EcnConfig(kmin_bytes=kmin, kmax_bytes=4 * kmin, pmax_fraction=float(dice.choice([0.01, 0.2]))),
        pfc=PfcConfig(enabled=has_pfc, buffer_bytes=int(dice.choice([300_000, 1_000_000]))),
        cnp=CnpConfig(interval_ns=int(dice.choice([4_000, 50_000])), handling_delay_ns=int(dice.choice([0, 0, 1_000]))),
        transport=TransportConfig(timeout_ns=int(dice.choice([100_000, 1_000_000]))),
        time_limit_ns=int(dice.choice([60_000, 500_000, 5_000_000, 20_000_000])),
    )


def random_probe(dice: np.random.Generator) -> ProbeConfig | None:
    """Return a probe, or None."""
    if dice.integers(3):
        return None
    return ProbeConfig(interval_ns=int(dice.choice([777, 5_000, 20_000])), ports="all", all_flows=True)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What skip changed in a run, and how much of it was skipped."""

    differences: tuple[str, ...]  # names of results
    num_events: int
    num_skipped: int


def searching_long(inputs: EngineInputs) -> EngineInputs:
    """Return a run in which the search for what repeats may cost what it likes."""
    return replace(
        inputs, settings={**inputs.settings, "free_search_values": ENDLESS, "search_events_per_pair": ENDLESS}
    )


def searching_shortly(inputs: EngineInputs) -> EngineInputs:
    """Return a run that the plain engine takes over whenever a short search was in vain, and gives back soon."""
    return replace(inputs, settings={**inputs.settings, "search_events_per_pair": 20})


def compare(inputs: EngineInputs, law: CompiledLaw, *, events_per_slice: int = 10**8) -> Comparison:
    """Simulate without skip and with it."""
    without = finished(inputs, law, skips=False, events_per_slice=events_per_slice)
    skipping = finished(inputs, law, skips=True, events_per_slice=events_per_slice)
    truth, ours = results(without), results(skipping)
    return Comparison(
        differences=tuple(name for name in truth if truth[name] != ours[name]),
        num_events=skipping.num_events,
        num_skipped=skipping.num_skipped_events,
    )


@contextmanager
def every_run_compared() -> Iterator[list[Comparison]]:
    """Compare every run that the packet engine is asked for; yields the comparisons so far."""
    made: list[Comparison] = []
    original = packet.make_simulation

    def compared(inputs: EngineInputs, law: CompiledLaw) -> _engine.Simulation:
        made.append(compare(inputs, law))
        return original(inputs, law)

    packet.make_simulation = compared
    try:
        yield made
    finally:
        packet.make_simulation = original


def finished(inputs: EngineInputs, law: CompiledLaw, *, skips: bool, events_per_slice: int) -> _engine.Simulation:
    """Return the engine after the run, which may be settled between any two slices."""
    simulation = make_simulation(replace(inputs, settings={**inputs.settings, "skips_repeats": skips}), law)
    while simulation.advance(events_per_slice) == _engine.Outcome.RUNNING:
        if skips and events_per_slice < 10**8:
            simulation.settle()
    return simulation


def results(simulation: _engine.Simulation) -> dict[str, Any]:
    """Return all that a run leaves, by name."""
    tables = {
        "transfers": simulation.transfer_columns(),
        "messages": simulation.message_columns(),
        "ports": simulation.port_columns(),
        "queues": simulation.queue_columns(),
        "samples": simulation.port_sample_columns(),
        "flow samples": simulation.flow_sample_columns(),
        "waiting": simulation.waiting_columns(),
        "holds": simulation.hold_columns(),
        "failures": simulation.failure_columns(),
        "captured": simulation.capture_columns(),
        "inputs": simulation.input_columns(),
        "fault drops": simulation.fault_drop_columns(),
        "milestones": simulation.milestone_columns(),
    }
    return {
        "end": simulation.now_ps,
        "events": simulation.num_events,
        "packets": simulation.packet_counts(),
        "acknowledged bytes": simulation.acknowledged_bytes,
        "number captured": simulation.num_captured,
        "laws": simulation.flow_records(),
        "samples are complete": simulation.has_all_samples,
        **{
            f"{table}.{name}": column.tobytes() for table, columns in tables.items() for name, column in columns.items()
        },
    }
