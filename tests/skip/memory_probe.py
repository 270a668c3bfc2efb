"""`python -m tests.skip.memory_probe exact|bounded|off`: the memory that a ring takes in its own process."""

import os
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.engine_inputs.inputs import EngineInputs, make_engine_inputs
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network
from tests.skip.runs import LAWS, MTU_BYTES, finished, make_trace

NUM_NICS, NUM_PACKETS = 2_048, 512


def inputs_of(mode: Literal["exact", "bounded", "off"]) -> EngineInputs:
    """Return the ring, with skip `exact`, `bounded` or `off`."""
    fabric = build_clos(
        ClosSpec(
            num_hosts=NUM_NICS,
            hosts_per_tor_set=64,
            nics_per_host=1,
            tiers=2,
            nic_rate_bps=400 * 10**9,
            uplink_rate_bps=400 * 10**9,
            downlink_split=1,
            switch_radix=128,
            uplinks_per_tor=8,
        )
    )
    nics = np.arange(NUM_NICS)
    network = build_network(fabric, make_queue_pairs(nics, np.roll(nics, -1)), HashSpec())
    bytes_N = np.full(NUM_NICS, NUM_PACKETS * MTU_BYTES)
    traffic = make_trace(nics, bytes_N, np.zeros(NUM_NICS, np.int64), [[] for _ in nics])
    config = PacketConfig(mtu_bytes=MTU_BYTES, skip=mode)
    return make_engine_inputs(network, traffic, LAWS["swift"], config, seed=0, probe=None)


def resident_bytes() -> int:
    """Return the memory of this process that is resident now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    mode: Any = sys.argv[1]
    inputs = inputs_of(mode)
    before = resident_bytes()
    simulation = finished(inputs, LAWS["swift"], skips=mode != "off", events_per_slice=10**8)
    print(resident_bytes() - before, simulation.num_skipped_events)


if __name__ == "__main__":
    main()
