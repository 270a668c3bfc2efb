"""Random runs in which more repeats than packets: steps of rings, iterations, computation between them."""

from dataclasses import dataclass, field, replace

import numpy as np

from fabrictune.foundation.traces import UNKNOWN, Dependencies, Medium, TrafficTrace
from fabrictune.netsim.config.switch import PfcConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network
from tests.skip.features import with_faults
from tests.skip.runs import (
    LAWS,
    MTU_BYTES,
    NUM_LAWS_OF_PLAIN_RUNS,
    Run,
    random_config,
    random_fabric,
    random_probe,
)


@dataclass
class Rows:
    """Transfers so far, and the queue pairs that they use."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    columns: list[tuple[Medium, int, int, int, int, int]] = field(default_factory=list)
    waits: list[list[int]] = field(default_factory=list)

    def send(self, source: int, destination: int, num_bytes: int, waits: list[int], *, start_ps: int = 0) -> int:
        """Add a message between two NICs; returns its row."""
        pair = (source, destination)
        if pair not in self.pairs:
            self.pairs.append(pair)
        return self._add((Medium.FABRIC, self.pairs.index(pair), num_bytes, start_ps, 0, UNKNOWN), waits)

    def wait(self, delay_ps: int, waits: list[int]) -> int:
        """Add a delay after some rows."""
        return self._add((Medium.NONE, UNKNOWN, 0, 0, delay_ps, UNKNOWN), waits)

    def copy(self, gpu: int, num_bytes: int, waits: list[int]) -> int:
        """Add a transfer over NVLink to the next GPU."""
        return self._add((Medium.NVLINK, UNKNOWN, num_bytes, 0, 0, gpu), waits)

    def _add(self, row: tuple[Medium, int, int, int, int, int], waits: list[int]) -> int:
        self.columns.append(row)
        self.waits.append(waits)
        return len(self.columns) - 1

    def trace(self) -> TrafficTrace:
        """Return them as traffic."""
        medium_N, qp_N, bytes_N, start_ps_N, delay_ps_N, gpu_N = np.ascontiguousarray(
            np.array(self.columns, np.int64).T
        )
        return TrafficTrace(
            source_N=np.maximum(gpu_N, 0),
            destination_N=np.maximum(gpu_N, 0) + 1,
            medium_N=medium_N,
            qp_N=qp_N,
            bytes_N=bytes_N,
            start_ps_N=start_ps_N,
            delay_ps_N=delay_ps_N,
            operation_N=np.full(len(qp_N), UNKNOWN, np.int64),
            dependencies=Dependencies.from_lists(self.waits),
        )


def random_rounds(seed: int) -> Run:
    """Return a run of up to 16 hosts with up to 60 rounds; one in five has faults."""
    dice = np.random.default_rng([seed, 65])
    fabric = random_fabric(dice)
    rows = Rows()
    (_rings, _iterations, _trains)[int(dice.integers(3))](rows, fabric.num_nics, dice)
    if dice.integers(3) == 0:  # a message at some time
        start_ps = int(dice.integers(0, 400_000_000))
        source = int(dice.integers(fabric.num_nics))
        destination = (source + int(dice.integers(1, fabric.num_nics))) % fabric.num_nics
        rows.send(source, destination, int(dice.integers(1, 200)) * MTU_BYTES, [], start_ps=start_ps)
    source_Q, destination_Q = np.ascontiguousarray(np.array(rows.pairs, np.int64).T)
    config = random_config(dice)
    if dice.integers(2):  # rounds are longer than packets: nothing that ends them early
        config = replace(
            config, pfc=PfcConfig(), transport=TransportConfig(timeout_ns=50_000_000), time_limit_ns=100_000_000
        )
    run = Run(
        network=build_network(fabric, make_queue_pairs(source_Q, destination_Q), HashSpec()),
        traffic=_relayed(rows.trace(), len(rows.pairs), np.random.default_rng([seed, 70])),
        config=config,
        law=str(dice.choice(list(LAWS)[:NUM_LAWS_OF_PLAIN_RUNS])),
        seed=seed,
        probe=random_probe(dice) if dice.integers(4) == 0 else None,
    )
    return run if seed % 5 else with_faults(run, np.random.default_rng([seed, 71]))


def _relayed(traffic: TrafficTrace, num_pairs: int, dice: np.random.Generator) -> TrafficTrace:
    """Return, in a third of runs, transfers of which those of some queue pairs reach their NIC over NVLink."""
    is_relayed_Q = dice.integers(2, size=num_pairs) * (dice.integers(3) == 0) > 0
    is_relayed_N = (traffic.qp_N != UNKNOWN) & is_relayed_Q[traffic.qp_N]
    gpu_N = traffic.qp_N % 2
    return replace(
        traffic,
        relayed_from_N=np.where(is_relayed_N, gpu_N, UNKNOWN),
        relayed_to_N=np.where(is_relayed_N, gpu_N + 1, UNKNOWN),
    )


def _rings(rows: Rows, num_nics: int, dice: np.random.Generator) -> None:
    """Add rings in steps, side by side; a step may differ in its bytes."""
    nics = [int(nic) for nic in (dice.permutation(num_nics) if dice.integers(2) else np.arange(num_nics))]
    size = int(dice.choice([3, 4, num_nics]))
    num_steps = int(dice.integers(8, 60))
    for first in range(0, num_nics - size + 1, size) if dice.integers(2) else [0]:
        num_bytes = _bytes(dice)
        odd_step = int(dice.integers(2 * num_steps))
        before: list[int] = []
        for step in range(num_steps):
            ranks = range(size)
            before = [
                rows.send(
                    nics[first + rank],
                    nics[first + (rank + 1) % size],
                    num_bytes + MTU_BYTES * (step == odd_step),
                    [before[(rank - 1) % size]] if before else [],
                )
                for rank in ranks
            ]


def _iterations(rows: Rows, num_nics: int, dice: np.random.Generator) -> None:
    """Add iterations: messages, copies between GPUs, then computation that waits for all."""
    pairs = [(int(dice.integers(num_nics)), int(dice.integers(1, num_nics))) for _ in range(int(dice.integers(1, 6)))]
    sizes = [_bytes(dice) for _ in pairs]
    delays_ps = [int(dice.choice([0, 1_000, 7_777_777, 60_000_000])) for _ in range(2)]
    num_copies = int(dice.integers(0, 4))
    before: list[int] = []
    for _ in range(int(dice.integers(6, 40))):
        sent = [
            rows.send(source, (source + distance) % num_nics, size, before)
            for (source, distance), size in zip(pairs, sizes, strict=True)
        ]
        copied = [rows.copy(gpu % 2, 3_000_001, [sent[0]] if gpu % 2 else before) for gpu in range(num_copies)]
        before = [rows.wait(delay_ps, sent + copied) for delay_ps in delays_ps]


def _trains(rows: Rows, num_nics: int, dice: np.random.Generator) -> None:
    """Add messages of a few queue pairs, all ready at once or each after the last."""
    for _ in range(int(dice.integers(1, 5))):
        source = int(dice.integers(num_nics))
        destination = (source + int(dice.integers(1, num_nics))) % num_nics
        num_bytes, waits_for_last, last = _bytes(dice), bool(dice.integers(2)), -1
        for _ in range(int(dice.integers(5, 60))):
            last = rows.send(source, destination, num_bytes, [last] if waits_for_last and last >= 0 else [])


def _bytes(dice: np.random.Generator) -> int:
    return int(dice.integers(1, 60)) * MTU_BYTES + int(dice.integers(0, MTU_BYTES) * dice.integers(2))
