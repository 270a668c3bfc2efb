"""Who waits for whom at the instant at which a run is stopped: both engines see the same."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fabrictune.netsim.packet import make_simulation
from fabrictune.netsim.reference.buffers import PortBuffers
from fabrictune.netsim.reference.engine import ReferenceEngine
from fabrictune.netsim.reference.priorities import PriorityBuffers
from tests.netsim.scenarios import COMPILED, LAWS, inputs_of, random_scenario


def holds_in(reference: ReferenceEngine) -> list[int]:
    """Return the queues that are paused by what waits behind their wire, and that no watchdog lets go."""
    if isinstance(reference.buffers, PortBuffers):
        behind = reference.buffers.behind
        return [port.number for port in reference.ports if port.pause.is_on and behind[port.number].pauses_sender]
    assert isinstance(reference.buffers, PriorityBuffers)
    pairs = [
        (queue, arrived)
        for port, inputs in zip(reference.ports, reference.buffers.inputs, strict=True)
        for queue, arrived in zip(port.queues, inputs, strict=True)
    ]
    return [
        number
        for number, (queue, arrived) in enumerate(pairs)
        if queue.pause.is_on and not queue.is_storm and arrived.pauses_sender
    ]


def waits_in(reference: ReferenceEngine) -> dict[tuple[int, int], int]:
    """Return the bytes of packets that have come through one queue and wait in another."""
    per_port = len(reference.ports[0].queues) if reference.state.has_priorities else 1
    waits: Counter[tuple[int, int]] = Counter()
    for port in reference.ports:
        for place, queue in enumerate(port.queues[:per_port]):
            for packet in queue.packets:
                if packet.ingress is not None:
                    filled = packet.ingress.number * per_port + place
                    waits[filled, port.number * per_port + place] += packet.wire_bytes
    return dict(waits)


@pytest.mark.parametrize("first_seed", range(0, 120, 20))
def test_both_engines_hold_the_same_queues(first_seed: int) -> None:
    """Stopped in the middle, as where a run stalls; pauses on their way and storms are no holds."""
    for seed in range(first_seed, first_seed + 20):
        scenario = random_scenario(seed)
        limit_ns = int(np.random.default_rng([seed, 7]).integers(1_000, 15_000))
        inputs = inputs_of(replace(scenario, config=replace(scenario.config, time_limit_ns=limit_ns), faults=()))
        compiled = make_simulation(inputs, COMPILED[scenario.law])
        compiled.advance(10**8)
        reference = ReferenceEngine(inputs, *LAWS[scenario.law])
        reference.run()
        assert compiled.hold_columns()["port"].tolist() == holds_in(reference), f"seed {seed}"
        waits = compiled.waiting_columns()
        pairs = zip(waits["ingress"].tolist(), waits["port"].tolist(), strict=True)
        assert dict(zip(pairs, waits["bytes"].tolist(), strict=True)) == waits_in(reference), f"seed {seed}"
        assert compiled.packet_counts()["in_flight"] == reference.state.num_live, f"seed {seed}"
        if isinstance(reference.buffers, PriorityBuffers):
            held = [arrived.headroom_bytes for inputs in reference.buffers.inputs for arrived in inputs]
            assert compiled.input_columns()["headroom_bytes"].tolist() == held, f"seed {seed}"


def test_what_a_buffer_may_hold_when_it_is_resumed_is_said_of_ports() -> None:
    """Without priorities a port is resumed at its threshold; somewhere among these runs one is held."""
    for seed in range(0, 120, 2):
        scenario = random_scenario(seed)
        inputs = inputs_of(scenario)
        compiled = make_simulation(inputs, COMPILED[scenario.law])
        while compiled.advance(20).name == "RUNNING":
            holds = compiled.hold_columns()
            if len(holds["port"]):
                assert holds["resume_below_bytes"].tolist() == inputs["resume_below"][holds["port"]].tolist()
                return
    pytest.fail("no port is ever held")
