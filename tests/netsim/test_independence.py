"""What a run leaves does not depend on how it is watched, or on what else the machine does meanwhile."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.netsim.packet import make_simulation
from tests.netsim.scenarios import COMPILED, inputs_of, random_scenario

RUNS_PER_TEST = 20


def results(
    seed: int,
    probe: ProbeConfig | None = None,
    capture: CaptureConfig | None = None,
    events_per_slice: int = 10**8,
) -> dict[str, Any]:
    """Return everything that a random run comes to, its samples and captured packets aside."""
    scenario = random_scenario(seed)
    law = COMPILED[scenario.law]
    config = replace(scenario.config, time_limit_ns=scenario.config.time_limit_ns if seed % 2 else None)
    simulation = make_simulation(inputs_of(replace(scenario, config=config), probe, capture), law)
    while (outcome := simulation.advance(events_per_slice)).name == "RUNNING":
        pass
    return {
        "outcome": outcome.name,
        "end_ps": simulation.now_ps,
        "events": simulation.num_events,
        "peak_packets": simulation.peak_packets,
        "packets": simulation.packet_counts(),
        "laws": simulation.flow_records(),
        "waiting": {name: column.tobytes() for name, column in simulation.waiting_columns().items()},
        "holds": {name: column.tobytes() for name, column in simulation.hold_columns().items()},
        **{name: column.tobytes() for name, column in simulation.transfer_columns().items()},
        **{f"ports.{name}": column.tobytes() for name, column in simulation.port_columns().items()},
    }


@pytest.mark.parametrize("first_seed", range(0, 100, RUNS_PER_TEST))
def test_probes_change_nothing(first_seed: int) -> None:
    """Not even the end of a run that stalls, or the number of its events; at 13 ns probes are more than events."""
    for seed in range(first_seed, first_seed + RUNS_PER_TEST):
        plain = results(seed)
        for interval_ns in (13 if plain["end_ps"] < 10**8 else 10_000, 777, 50_000):
            probe = ProbeConfig(interval_ns=interval_ns, ports="all", all_flows=True)
            assert results(seed, probe) == plain, f"seed {seed}, a probe every {interval_ns} ns"


@pytest.mark.parametrize("at", ["sender", "receiver"])
def test_captures_change_nothing(at: str) -> None:
    """Full or not."""
    for seed in range(40):
        for max_packets in (3, 10_000):
            capture = CaptureConfig(at=at, max_packets=max_packets)
            assert results(seed, capture=capture) == results(seed), f"seed {seed}"


def test_a_run_that_stalls_under_probes_ends_where_it_stalls(simulate: Callable[..., RunRecord]) -> None:
    """A packet lost on a dead wire, and no timer to send it again: its loss after 96.56 ns is the last thing to happen.

    1000 B take 80 ns, the overhead of 82 B another 6.56 ns, and the cable 10 ns.
    """
    config = PacketConfig(mtu_bytes=1000, loss_fraction=1.0, transport=TransportConfig(timeout_exponent=0))
    for probe in (None, ProbeConfig(interval_ns=1), ProbeConfig(interval_ns=10**6, all_flows=True)):
        record = simulate([(0, 1)], [{"bytes": 1000}], config, probe=probe)
        assert (record.run["outcome"], record.run["end_ps"]) == ("stalled", 80_000 + 6_560 + 10_000)
        assert record.run["events"] == 2  # the transfer becomes ready, the packet arrives nowhere


def test_slices_change_nothing() -> None:
    """A run that is looked at every few events is the run that is not."""
    for seed in range(20):
        assert results(seed, events_per_slice=7) == results(seed), f"seed {seed}"


def test_runs_in_threads_change_nothing() -> None:
    """The engine lets go of the interpreter, so eight runs at once truly overlap; each gives what it gives alone."""
    seeds = list(range(100, 140))
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(results, seeds))
    assert together == [results(seed) for seed in seeds]
