"""Measurement on this machine: two processes that train, with probes of its parts between the steps.

Rounds of probes (`local_probes.py`) follow every step, so that whatever else the machine does disturbs probes and
training alike. Models of several sizes are trained in turn, each of whose steps gathers its weights and scatters its
gradients. Every other step waits for a request at once, so that its time is its own; the rest work beside it until they
need it.

Shapes: N requests, P probes, K rounds.
"""

import resource
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import BoolArray, IntArray
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
from fabrictune.validate.local_probes import BYTES_PER_ELEMENT, Probes
from fabrictune.validate.machine_share import MachineShare, machine_share, processor_times

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member
    from fabrictune.trainer_probe.comm import Comm

NUM_RANKS = 2
LAYOUT = ParallelLayout(dp=NUM_RANKS)
LEARNING_RATE = 0.1


@dataclass(frozen=True, kw_only=True)
class LocalSpec:
    """Settings of the run on this machine. Sizes of exchanges and of messages predicted from them must differ."""

    models: tuple[GptSpec, ...] = tuple(
        GptSpec(width=width, depth=2, num_heads=2, vocabulary=64, sequence=8) for width in (8, 64, 192)
    )  # 22 KB, 869 KB and 7.3 MB of weights
    num_steps: int = 20  # with each model and each way of waiting, after one that is not counted
    exchange_bytes: tuple[int, ...] = (64, 8 * 2**10, 128 * 2**10, 768 * 2**10, 3 * 2**20, 8 * 2**20)
    rounds_per_step: int = 1  # of probes
    timeout_s: float = 300.0

    def __post_init__(self) -> None:
        mistakes = [
            Mistake(where=name, found=str(getattr(self, name)), allowed="1 or more")
            for name in ("num_steps", "rounds_per_step")
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
    """Measured times, and what the ranks had of the machine."""

    probe_P: tuple[str, ...]
    bytes_P: IntArray
    probe_ps_PK: IntArray
    step_K: IntArray  # the step that each round follows
    trace: CommTrace  # of all counted steps, both ranks
    is_overlapped_N: BoolArray  # whether the request's step works beside it
    page_faults_N: IntArray  # of the requesting process during a request; UNKNOWN where it is overlapped
    page_bytes: int
    machine: MachineShare | None


def measure_local(spec: LocalSpec) -> LocalMeasurement:
    """Return probes and training steps of two gloo processes; raises UnavailableError."""
    results = launch(LAYOUT, partial(_run_rank, spec), timeout_s=spec.timeout_s)
    last_to_begin_ns_KP = np.max([rank["began_ns_KP"] for rank in results], axis=0)
    last_to_end_ns_KP = np.max([rank["ended_ns_KP"] for rank in results], axis=0)
    first = results[0]
    return LocalMeasurement(
        probe_P=tuple(first["probe_P"].tolist()),
        bytes_P=first["bytes_P"],
        probe_ps_PK=(last_to_end_ns_KP - last_to_begin_ns_KP).T * PS_PER_NS,
        step_K=first["step_K"],
        trace=merge([CommTrace.from_bytes(rank["trace"].tobytes()) for rank in results]),
        is_overlapped_N=np.concatenate([rank["is_overlapped_N"] for rank in results]),
        page_faults_N=np.concatenate([rank["page_faults_N"] for rank in results]),
        page_bytes=resource.getpagesize(),
        machine=_share(results),
    )


def _share(results: list[dict[str, NDArray[Any]]]) -> MachineShare | None:
    """Return what others had of the processors between the marks of rank 0."""
    marks = results[0]["marks"]
    own_s = sum(float(rank["own_s"]) for rank in results)
    return machine_share(marks[0], marks[1], own_s) if len(marks) == 2 else None


def _run_rank(spec: LocalSpec, member: "Member") -> dict[str, NDArray[Any]]:
    """Return a rank's probes and requests, from its own process."""
    from fabrictune.trainer_probe.comm import Comm
    from fabrictune.validate.counting_comm import CountingComm

    comm = CountingComm(LAYOUT, member)
    probes = Probes(member, Comm(LAYOUT, member), _rounded(spec.exchange_bytes).tolist())
    trainers = [_Training(model, comm) for model in spec.models]
    for trainer in trainers:
        trainer.run_step(0)
        probes.run()
    comm.restart_ledger()
    probes.forget()
    comm.page_faults.clear()
    marks, own_s = [processor_times()], time.process_time()
    num_steps = 2 * spec.num_steps * len(trainers)
    for step in range(num_steps):
        comm.waits_at_once = step % 2 == 0
        probes.work()
        trainers[step // 2 % len(trainers)].run_step(step)
        for _ in range(spec.rounds_per_step):
            probes.run()
    marks.append(processor_times())
    return {
        "own_s": np.array(time.process_time() - own_s),
        "marks": np.array([mark for mark in marks if mark is not None]),
        "probe_P": np.array(probes.probe_P),
        "bytes_P": np.array(probes.bytes_P, np.int64),
        "began_ns_KP": np.array(probes.began_ns_KP),
        "ended_ns_KP": np.array(probes.ended_ns_KP),
        "step_K": np.repeat(np.arange(num_steps), spec.rounds_per_step),
        "is_overlapped_N": comm.trace().step_N % 2 == 1,
        "page_faults_N": np.array(comm.page_faults, np.int64),
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


def _rounded(sizes: tuple[int, ...]) -> IntArray:
    """Return the sizes in whole elements."""
    return np.array(sizes, np.int64) // BYTES_PER_ELEMENT * BYTES_PER_ELEMENT
