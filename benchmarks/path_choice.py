"""What choosing a path costs at a hop: every mode on the same packets, whose order does not matter.

Each host of a fat tree sends 250 messages of one packet to its partner, each on a queue pair of its own, so that
no mode sends anything twice. Every mode moves the same packets over the same number of links, so the difference to
fixed paths is the price of choosing, and of what the other queues and other addresses in memory make of it.

Run: `python -m benchmarks.run path_choice`
"""

import statistics
import time
from typing import Any

import numpy as np

from fabrictune.cc.compiler import compile_law
from fabrictune.cc.laws import load_law
from fabrictune.netsim import _engine
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.packet import make_simulation
from fabrictune.netsim.workloads.permutation import PermutationSpec, make_permutation
from fabrictune.netsim.workloads.table import one_message_each
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.routing import build_network

RUNS = 5
RADIX = 8
MESSAGES_PER_HOST = 250
SEED = 1
MODES = {
    "hash": PathChoiceConfig(),
    "weighted": PathChoiceConfig(mode="weighted"),
    "flowlet": PathChoiceConfig(mode="flowlet"),
    "spray": PathChoiceConfig(mode="spray"),
    "spray-round-robin": PathChoiceConfig(mode="spray", spray="round-robin"),
    "adaptive": PathChoiceConfig(mode="adaptive"),
    "adaptive-acknowledgements": PathChoiceConfig(mode="adaptive", acknowledgements="same"),
}


def benchmarks() -> list[dict[str, Any]]:
    """Return processor nanoseconds a packet and link, as rows of benchmarks/results.json."""
    fabric = build_fat_tree(FatTreeSpec(radix=RADIX, link_rate_bps=100_000_000_000, cable_mm=200_000))
    partners, _ = make_permutation(PermutationSpec(message_bytes=1), fabric, SEED)
    source_Q = np.tile(partners.source_nic_Q, MESSAGES_PER_HOST)
    destination_Q = np.tile(partners.destination_nic_Q, MESSAGES_PER_HOST)
    pairs, traffic = one_message_each(source_Q, destination_Q, 4096)
    network, law = build_network(fabric, pairs, HashSpec()), compile_law(load_law("none"))
    rows = []
    for mode, choice in MODES.items():
        config = PacketConfig(path_choice=choice, skip="off")
        inputs = make_engine_inputs(network, traffic, law, config, seed=SEED, probe=None)
        values = []
        for _ in range(RUNS):
            simulation = make_simulation(inputs, law)
            started_s = time.process_time()
            outcome = simulation.advance(2**62)
            seconds = time.process_time() - started_s
            assert outcome == _engine.Outcome.FINISHED, outcome
            values.append(seconds / int(simulation.port_columns()["tx_packets"].sum()) * 1e9)
        spread = f"median of {RUNS}, {min(values):.1f} to {max(values):.1f}"
        rows.append(
            {
                "name": f"netsim.path-choice.{mode}",
                "value": statistics.median(values),
                "unit": "ns/hop",
                "spread": spread,
            }
        )
    return rows
