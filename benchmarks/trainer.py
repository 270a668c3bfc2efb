"""Training over all three axes: ours beside torch's own, overlap beside none, and how long ranks take to start.

Each is compared as it is, and with layers compiled on both sides. Processes of one thread, single precision, AdamW; a
step is everything from the batch to changed weights. Racers stand in the same processes and take steps in turn,
barriers between, so that what else the machine does meets all of them; they are compared within a round.

With fewer processor cores than ranks, another rank computes while one waits, so that overlap hides latencies and
uneven ranks, and no bytes: copying them takes the same cores. A pipeline of as many ranks as there are cores shows
what overlap does where a rank that waits is a core that idles.

Run: `python -m benchmarks.run trainer`
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.seeds import stream
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.model.gpt import Block, GptSpec
from fabrictune.trainer_probe.optimizers.spec import OptimizerSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees

if TYPE_CHECKING:
    import torch

    from fabrictune.collectives.startup.process_groups import Member

MODEL = GptSpec(width=256, depth=4, num_heads=4, vocabulary=1024, sequence=128)
ALL_AXES = Degrees(layout=ParallelLayout(tp=2, pp=2, dp=2), virtual=2, num_batches=4, batch_size=2)
PIPELINE = Degrees(layout=ParallelLayout(pp=2), virtual=2, num_batches=8, batch_size=1)
OPTIMIZER = OptimizerSpec()
LEARNING_RATE = 3e-4
NUM_ROUNDS, STEPS_A_ROUND, WARM_UP_STEPS = 10, 4, 2
NUM_STARTS = 5
NUM_RESAMPLES = 10_000  # of rounds, for the interval of a median

TakeStep = Callable[[int], object]
Rounds = FloatArray  # a figure of each round, R


@dataclass(frozen=True, kw_only=True)
class Racer:
    """A trainer: torch's own where there is no policy."""

    block: Block
    policy: str = ""
    is_compiled: bool = False


TORCH, TORCH_COMPILED = Racer(block="serial"), Racer(block="serial", is_compiled=True)
SERIAL_COMPILED = Racer(block="serial", policy="all", is_compiled=True)
SERIAL, SERIAL_WAITING = Racer(block="serial", policy="all"), Racer(block="serial", policy="none")
PARALLEL, PARALLEL_WAITING = Racer(block="parallel", policy="all"), Racer(block="parallel", policy="none")


def benchmarks() -> list[dict[str, Any]]:
    """Return tokens/s, ratios, gains and the start's time, as rows of benchmarks/results.json."""
    racers = (TORCH, SERIAL, SERIAL_WAITING, PARALLEL, PARALLEL_WAITING)
    return [
        *_all_axes(_race(ALL_AXES, racers)),
        *_compiled(_race(ALL_AXES, (TORCH_COMPILED, SERIAL_COMPILED))),
        *_pipeline(_race(PIPELINE, (PARALLEL, PARALLEL_WAITING))),
        _row("start-of-8-ranks", np.array([_start_s() for _ in range(NUM_STARTS)]), "s"),
    ]


def _all_axes(took_s: Mapping[Racer, Rounds]) -> Iterator[dict[str, Any]]:
    num_tokens = ALL_AXES.samples_per_step * MODEL.sequence * STEPS_A_ROUND
    for racer, took_R in took_s.items():
        name = f"{racer.block}-{racer.policy}" if racer.policy else f"{racer.block}-torch"
        yield _row(f"tp2-pp2-dp2.{name}.tokens", num_tokens / took_R, "tokens/s")
    yield _row("tp2-pp2-dp2.serial-over-torch", took_s[TORCH] / took_s[SERIAL], "times")
    yield _row("tp2-pp2-dp2.parallel-over-torch", took_s[TORCH] / took_s[PARALLEL], "times")
    yield _row("tp2-pp2-dp2.overlap-gain-serial", _gain(took_s[SERIAL], took_s[SERIAL_WAITING]), "%")
    yield _row("tp2-pp2-dp2.overlap-gain-parallel", _gain(took_s[PARALLEL], took_s[PARALLEL_WAITING]), "%")


def _pipeline(took_s: Mapping[Racer, Rounds]) -> Iterator[dict[str, Any]]:
    yield _row("pp2.overlap-gain-parallel", _gain(took_s[PARALLEL], took_s[PARALLEL_WAITING]), "%")


def _compiled(took_s: Mapping[Racer, Rounds]) -> Iterator[dict[str, Any]]:
    yield _row(
        "tp2-pp2-dp2.compiled-serial-over-compiled-torch", took_s[TORCH_COMPILED] / took_s[SERIAL_COMPILED], "times"
    )


def _gain(took_R: Rounds, waiting_R: Rounds) -> Rounds:
    """Return by how much a racer is faster than the other that waits, in percent."""
    return 100 * (waiting_R / took_R - 1)


def _race(degrees: Degrees, racers: Sequence[Racer]) -> Mapping[Racer, Rounds]:
    """Return the seconds of each round (R), by racer."""
    found = launch(degrees.layout, partial(_run_rounds, degrees, racers), timeout_s=1800.0)
    return dict(zip(racers, found[0]["took_s"], strict=True))


def _run_rounds(degrees: Degrees, racers: Sequence[Racer], member: "Member") -> dict[str, NDArray[Any]]:
    """Run in the rank's own process."""
    import torch.distributed as dist

    steps = [
        _make_ours(degrees, racer, member) if racer.policy else _make_torchs(degrees, racer, member) for racer in racers
    ]
    took_s = np.zeros((len(racers), NUM_ROUNDS))
    for step in range(WARM_UP_STEPS):
        for take_step in steps:
            take_step(step)
    turns = list(range(len(racers)))
    for number in range(NUM_ROUNDS):
        for step in range(STEPS_A_ROUND):
            for turn in turns if step % 2 == 0 else reversed(turns):
                dist.barrier()
                started = time.perf_counter()
                steps[turn](step)
                dist.barrier()
                took_s[turn, number] += time.perf_counter() - started
    return {"took_s": took_s}


def _make_ours(degrees: Degrees, racer: Racer, member: "Member") -> TakeStep:
    import torch

    from fabrictune.trainer_probe.comm import Comm
    from fabrictune.trainer_probe.model.forward import MicroBatch
    from fabrictune.trainer_probe.optimizers.optimizer import make_optimizer
    from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
    from fabrictune.trainer_probe.policies import POLICIES, Compilation

    comm = Comm(degrees.layout, member)
    model = replace(MODEL, block=racer.block)
    compilation: Compilation = "layers" if racer.is_compiled else "none"
    policy = POLICIES[racer.policy]
    trainer = ParallelTrainer(model, degrees, comm, policy, torch.float32, compilation=compilation)
    optimizer = make_optimizer(trainer.shards, OPTIMIZER, comm)

    def take_step(step: int) -> None:
        parts = (samples.chunk(degrees.num_batches) for samples in _samples(degrees, member.rank, step))
        batches = [MicroBatch(tokens_BS=tokens, targets_BS=targets) for tokens, targets in zip(*parts, strict=True)]
        trainer.run_step(step, batches, lambda: optimizer.step(LEARNING_RATE))

    return take_step


def _make_torchs(degrees: Degrees, racer: Racer, member: "Member") -> TakeStep:
    import torch

    from benchmarks.torch_native.trainer import TorchTrainer

    trainer = TorchTrainer(replace(MODEL, block=racer.block), degrees, torch.float32, is_compiled=racer.is_compiled)
    optimizer = torch.optim.AdamW(
        trainer.parameters(),
        LEARNING_RATE,
        betas=(OPTIMIZER.beta1, OPTIMIZER.beta2),
        eps=OPTIMIZER.epsilon,
        weight_decay=OPTIMIZER.weight_decay,
        foreach=True,
    )

    def take_step(step: int) -> None:
        trainer.run_step(*_samples(degrees, member.rank, step))
        optimizer.step()
        optimizer.zero_grad()

    return take_step


def _samples(degrees: Degrees, rank: int, step: int) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Return a rank's tokens and targets of a step (B S)."""
    import torch

    replica = int(degrees.layout.coordinates(rank)["dp"])
    shape = (degrees.num_batches * degrees.batch_size, MODEL.sequence + 1)
    ids = torch.from_numpy(stream(0, "benchmark", step, replica).integers(MODEL.vocabulary, size=shape))
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


def _start_s() -> float:
    """Return how long eight ranks take from the call until all have made their groups and ended."""
    started = time.perf_counter()
    launch(ALL_AXES.layout, _do_nothing)
    return time.perf_counter() - started


def _do_nothing(member: "Member") -> dict[str, NDArray[Any]]:
    return {}


def _row(name: str, figure_R: Rounds, unit: str) -> dict[str, Any]:
    """Return a row; the interval is the bootstrap's, of the median over rounds."""
    draws = stream(0, "benchmark", "rounds").integers(len(figure_R), size=(NUM_RESAMPLES, len(figure_R)))
    low, high = np.quantile(np.median(figure_R[draws], axis=1), [0.025, 0.975])  # noqa: TID251, of an estimator
    extremes = f"{figure_R.min():,.2f} to {figure_R.max():,.2f}"
    return {
        "name": f"trainer_probe.{name}",
        "value": statistics.median(figure_R.tolist()),
        "unit": unit,
        "spread": f"95 % {low:,.2f} to {high:,.2f}, rounds {extremes}",
    }
