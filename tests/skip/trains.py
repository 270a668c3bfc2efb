"""Runs of which bounded skip takes much: trains of long messages of eight pairs that meet at uplinks."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.config.transport import CnpConfig
from fabrictune.netsim.engine_inputs.inputs import EngineInputs, make_engine_inputs
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network
from tests.skip.rounds import Rows
from tests.skip.runs import LAWS

NUM_PAIRS, NUM_MESSAGES = 8, 16
DELAY_PS = 1_000_000  # of the first pair, times the pair's number for the others


@dataclass(frozen=True, kw_only=True)
class Train:
    """A law, a configuration, and what is set beside bounded skip."""

    law: str
    config: PacketConfig
    num_uplinks: int = 2
    settings: dict[str, Any] = field(default_factory=dict)
    copy_bytes: int = 900_000
    intruder_ps: int | None = None  # when a message of another pair begins

    def inputs(self) -> EngineInputs:
        """Return the run as an engine reads it."""
        fabric = build_clos(
            ClosSpec(
                num_hosts=2 * NUM_PAIRS,
                hosts_per_tor_set=NUM_PAIRS,
                nics_per_host=1,
                tiers=2,
                nic_rate_bps=400 * 10**9,
                uplink_rate_bps=400 * 10**9,
                downlink_split=1,
                uplinks_per_tor=self.num_uplinks,
                host_cable_mm=3_000,
            )
        )
        rows = _rows(self.copy_bytes)
        if self.intruder_ps is not None:
            rows.send(0, NUM_PAIRS + 1, 3_000_000, [], start_ps=self.intruder_ps)
        source_Q, destination_Q = np.ascontiguousarray(np.array(rows.pairs, np.int64).T)
        network = build_network(fabric, make_queue_pairs(source_Q, destination_Q), HashSpec())
        return make_engine_inputs(
            network, rows.trace(), LAWS[self.law], self.config, seed=3, probe=None, capture=None, faults=()
        )


def _rows(copy_bytes: int) -> Rows:
    """Return messages of a pair one after another, some after computation, some after a copy between GPUs."""
    rows, last = Rows(), [list[int]() for _ in range(NUM_PAIRS)]
    for number in range(NUM_MESSAGES):
        for pair, before in enumerate(last):
            waits = before
            if number % 3 == 2:
                waits = [rows.wait(DELAY_PS * (pair + 1), waits)]
            if number % 4 == 1:
                waits = [rows.copy(pair % 2, copy_bytes, waits)]
            num_bytes = 12_000_000 + 500_000 * pair
            last[pair] = [rows.send(pair, NUM_PAIRS + pair // 2, num_bytes, waits)]
    return rows


SLOW_CNP = CnpConfig(interval_ns=4_000, handling_delay_ns=1_000)
FEW_ANSWERS = PacketConfig(ack_every_packets=3, cnp=SLOW_CNP)
PAUSING = PacketConfig(pfc=PfcConfig(enabled=True, buffer_bytes=300_000), cnp=SLOW_CNP)
ENDING = PacketConfig(time_limit_ns=9_000_000, ecn=EcnConfig(kmin_bytes=50_000, kmax_bytes=200_000, pmax_fraction=0.2))

TRAINS = {
    "few answers": Train(law="swift", config=FEW_ANSWERS, num_uplinks=1),
    "few answers, notified": Train(law="hybrid", config=FEW_ANSWERS, num_uplinks=1),
    "few answers, marked": Train(law="dctcp", config=FEW_ANSWERS, num_uplinks=1),
    "pauses": Train(law="swift", config=PAUSING),
    "pauses, notified": Train(law="hybrid", config=PAUSING),
    "pauses, marked": Train(law="dctcp", config=PAUSING, settings={"skip_precision": 0.2}),
    "audits": Train(law="nscc", config=PAUSING, settings={"audited_fraction": 0.3}),
    "audits, notified": Train(law="hybrid", config=PAUSING, settings={"audited_fraction": 0.5}),
    "copies behind one another": Train(law="swift", config=PAUSING, copy_bytes=90_000_000),
    "one comes amid spans": Train(law="swift", config=PAUSING, intruder_ps=3_000_000_000),
    "one comes amid spans, later": Train(law="swift", config=PAUSING, intruder_ps=8_000_000_000),
    "one comes amid spans, marked": Train(law="dctcp", config=PAUSING, intruder_ps=5_000_000_000),
    "one comes amid spans, marked, later": Train(law="dctcp", config=PAUSING, intruder_ps=6_500_000_000),
    "a time limit": Train(law="dctcp", config=ENDING),
    "a time limit, and a bias": Train(law="timely", config=ENDING, settings={"mean_rate_bias": 0.02}),
}
