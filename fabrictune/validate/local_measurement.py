"""Measurement on this machine: two processes that train, and exchange messages between the steps.

An exchange is both processes sending to each other at once, as the members of a ring of two do in every step. One of
each size follows every step, so that whatever else the machine does disturbs exchanges and training alike; like a
collective, it lasts from the last to begin to the last to end. Models of several sizes are trained, each of whose steps
gathers its weights and scatters its gradients.

Shapes: E sizes of exchanges, K repetitions.
"""

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.seeds import stream
from fabrictune.foundation.traces import CommTrace
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.ledger import merge
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.policies import POLICIES

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member
    from fabrictune.trainer_probe.comm import Comm

NUM_RANKS = 2
LAYOUT = ParallelLayout(dp=NUM_RANKS)
BYTES_PER_ELEMENT = 8  # double precision
LEARNING_RATE = 0.1


@dataclass(frozen=True, kw_only=True)
class LocalSpec:
    """Settings of the run on this machine. Sizes of exchanges and of messages predicted from them must differ."""

    models: tuple[GptSpec, ...] = tuple(
        GptSpec(width=width, depth=2, num_heads=2, vocabulary=64, sequence=8) for width in (8, 64, 192)
    )  # 22 KB, 869 KB and 7.3 MB of weights
    num_steps: int = 20  # with each model, after one that is not counted
    exchange_bytes: tuple[int, ...] = (8 * 2**10, 128 * 2**10, 768 * 2**10, 6 * 2**20)
    exchanges_per_step: int = 3  # of each size
    timeout_s: float = 300.0

    def __post_init__(self) -> None:
        mistakes = [
            Mistake(where=name, found=str(getattr(self, name)), allowed="1 or more")
            for name in ("num_steps", "exchanges_per_step")
            if getattr(self, name) < 1
        ]
        if len(set(self.exchange_bytes)) < 2 or min(self.exchange_bytes) < BYTES_PER_ELEMENT:
            mistakes.append(
                Mistake(
                    where="exchange_bytes",
                    found=str(self.exchange_bytes),
                    allowed=f"two sizes or more, from {BYTES_PER_ELEMENT} B",
                    next_step="separating a latency from a rate needs two sizes",
                )
            )
        if mistakes:
            raise InputError(*mistakes)


@dataclass(frozen=True, kw_only=True)
class LocalMeasurement:
    """Measured times."""

    exchange_bytes_E: IntArray
    exchange_ps_EK: IntArray
    trace: CommTrace  # of all counted steps, both ranks


def measure_local(spec: LocalSpec) -> LocalMeasurement:
    """Return exchanges and training steps of two gloo processes; raises UnavailableError."""
    results = launch(LAYOUT, partial(_run_rank, spec), timeout_s=spec.timeout_s)
    last_to_begin_ns_KE = np.max([rank["began_ns_KE"] for rank in results], axis=0)
    last_to_end_ns_KE = np.max([rank["ended_ns_KE"] for rank in results], axis=0)
    return LocalMeasurement(
        exchange_bytes_E=_rounded(spec.exchange_bytes),
        exchange_ps_EK=(last_to_end_ns_KE - last_to_begin_ns_KE).T * PS_PER_NS,
        trace=merge([CommTrace.from_bytes(rank["trace"].tobytes()) for rank in results]),
    )


def _run_rank(spec: LocalSpec, member: "Member") -> dict[str, NDArray[Any]]:
    """Return a rank's exchanges and requests, from its own process."""
    from fabrictune.trainer_probe.comm import Comm

    comm, exchanges = Comm(LAYOUT, member), _Exchanges(Comm(LAYOUT, member), _rounded(spec.exchange_bytes).tolist())
    trainers = [_Training(model, comm) for model in spec.models]
    for trainer in trainers:
        trainer.run_step(0)
        exchanges.run()
    comm.restart_ledger()
    exchanges.forget()
    for number, trainer in enumerate(trainers):
        for step in range(spec.num_steps):
            trainer.run_step(number * spec.num_steps + step)
            for _ in range(spec.exchanges_per_step):
                exchanges.run()
    return {
        "began_ns_KE": np.array(exchanges.began_ns_KE),
        "ended_ns_KE": np.array(exchanges.ended_ns_KE),
        "trace": np.frombuffer(comm.trace().to_bytes(), np.uint8),
    }


class _Training:
    """One rank's part of training a model on one seeded sample again and again."""

    def __init__(self, model: GptSpec, comm: "Comm") -> None:
        import torch

        from fabrictune.trainer_probe.model.forward import MicroBatch
        from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer

        self._trainer = ParallelTrainer(model, Degrees(layout=LAYOUT), comm, POLICIES["none"])
        ids = stream(model.seed, "sample", comm.rank).integers(model.vocabulary, size=(1, model.sequence + 1))
        ids_1C = torch.from_numpy(ids)
        self._batches = [MicroBatch(tokens_BS=ids_1C[:, :-1], targets_BS=ids_1C[:, 1:])]

    def run_step(self, step: int) -> None:
        """Gather the weights, run forward and backward, scatter the gradients, and descend."""
        self._trainer.run_step(step, self._batches, self._descend)

    def _descend(self) -> None:
        for shard in self._trainer.shards:
            shard.values_E.sub_(shard.gradients_E, alpha=LEARNING_RATE)


class _Exchanges:
    """One rank's side of the exchanges, and when each began and ended for it."""

    def __init__(self, comm: "Comm", sizes: list[int]) -> None:
        import torch

        self._comm = comm
        lengths = [num_bytes // BYTES_PER_ELEMENT for num_bytes in sizes]
        self._outgoing = [torch.ones(length, dtype=torch.float64) for length in lengths]
        self._incoming = [torch.ones(length, dtype=torch.float64) for length in lengths]
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.began_ns_KE: list[list[int]] = []
        self.ended_ns_KE: list[list[int]] = []

    def run(self) -> None:
        """Exchange a message of each size."""
        began_ns, ended_ns = [], []
        peer = 1 - self._comm.rank
        for outgoing, incoming in zip(self._outgoing, self._incoming, strict=True):
            self._comm.barrier(axis="dp", tag="exchange").wait()
            began_ns.append(time.perf_counter_ns())
            receive = self._comm.receive(incoming, peer=peer, axis="dp", tag="exchange")
            self._comm.send(outgoing, peer=peer, axis="dp", tag="exchange").wait()
            receive.wait()
            ended_ns.append(time.perf_counter_ns())
        self.began_ns_KE.append(began_ns)
        self.ended_ns_KE.append(ended_ns)


def _rounded(sizes: tuple[int, ...]) -> IntArray:
    """Return the sizes in whole elements."""
    return np.array(sizes, np.int64) // BYTES_PER_ELEMENT * BYTES_PER_ELEMENT
