"""Does the parallel block learn as the serial one does, and LAMB at four times the batch as AdamW?

Small byte-level models are trained on a text, in one process. Every arm of the study sees as many tokens, and tries
the same number of learning rates on a seed of its own; its best one is then run on other seeds, on which it is judged.
A seed gives the first weights and the order of samples, so arms are compared seed by seed. The loss is that of held-out
text, in nats a byte.

Each run leaves a file, and a run whose file is there is not run again: a study that was cut short goes on.

Run: `python -m benchmarks.studies.lamb_and_block runs/lamb-and-block`, with paths of texts behind it for others than
the sources of Python's own library, which are then not the same text everywhere.
"""

import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fabrictune.collectives.startup.groups import GroupPlan
from fabrictune.collectives.startup.process_groups import Member
from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.data.batches import Batches, BatchSpec
from fabrictune.trainer_probe.data.tokenization import ByteTokenizer, tokenize
from fabrictune.trainer_probe.model.forward import MicroBatch, run_chunk
from fabrictune.trainer_probe.model.gpt import Block, GptSpec
from fabrictune.trainer_probe.model.operators import SingleProcess
from fabrictune.trainer_probe.optimizers.learning_rate import LearningRateSchedule
from fabrictune.trainer_probe.optimizers.norms import clip_factor
from fabrictune.trainer_probe.optimizers.optimizer import make_optimizer
from fabrictune.trainer_probe.optimizers.spec import OptimizerName, OptimizerSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.policies import POLICIES

WIDTH, DEPTH, NUM_HEADS, SEQUENCE = 64, 4, 4, 64
BATCH_SIZE, NUM_STEPS = 8, 600  # of the small batch; four times the one is a fourth of the other
LARGER = 4
WARM_UP_FRACTION = 0.1
NUM_LOOKS = 10  # at the held-out loss, evenly over a run, of whose steps it is a divisor
HELD_OUT_EVERY = 20  # files
HELD_OUT_SAMPLES = 256
TUNING_SEED, SEEDS = 100, (0, 1, 2)
ADAMW_RATES = (1e-3, 3e-3, 1e-2, 3e-2)
LAMB_RATES = (3e-3, 1e-2, 3e-2, 1e-1)
STUDENT_T = {3: 4.303, 5: 2.776}  # two-sided 95 % by number of seeds


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One way to train."""

    name: str
    block: Block
    optimizer: OptimizerName
    larger: int  # times the small batch
    rates: Sequence[float]


ARMS = (
    Arm(name="adamw", block="parallel", optimizer="adamw", larger=1, rates=ADAMW_RATES),
    Arm(name="adamw-serial", block="serial", optimizer="adamw", larger=1, rates=ADAMW_RATES),
    Arm(name="lamb-4x", block="parallel", optimizer="lamb", larger=LARGER, rates=LAMB_RATES),
    Arm(name="adamw-4x", block="parallel", optimizer="adamw", larger=LARGER, rates=ADAMW_RATES),
)
QUESTIONS = (("adamw-serial", "adamw"), ("adamw", "lamb-4x"), ("adamw", "adamw-4x"), ("adamw-4x", "lamb-4x"))


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Token files of a text and of the part of it that is held out."""

    training: Path
    held_out: Path


def main(folder: Path, texts: Sequence[Path]) -> None:
    """Run what is missing of the study, and print its tables."""
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    corpus = _tokenize(folder, texts or sorted(Path(os.__file__).parent.glob("*.py")))
    best = {arm.name: _tune(arm, corpus, folder) for arm in ARMS}
    for seed in SEEDS:
        for arm in ARMS:
            _run(arm, best[arm.name], seed, corpus, folder)
    curves_L = {arm.name: np.array([_run(arm, best[arm.name], seed, corpus, folder) for seed in SEEDS]) for arm in ARMS}
    print("\n".join([*_losses(best, curves_L), "", *_gaps(curves_L)]))


def _tokenize(folder: Path, texts: Sequence[Path]) -> Corpus:
    """Write both token files, where they are missing; the last of every twenty texts is held out."""
    corpus = Corpus(training=folder / "training.tokens", held_out=folder / "held-out.tokens")
    parts: dict[Path, list[Path]] = {corpus.training: [], corpus.held_out: []}
    for number, text in enumerate(texts):
        is_held_out = number % HELD_OUT_EVERY == HELD_OUT_EVERY - 1
        parts[corpus.held_out if is_held_out else corpus.training].append(text)
    for path, files in parts.items():
        if not path.exists():
            tokenize(files, path, ByteTokenizer())
    return corpus


def _tune(arm: Arm, corpus: Corpus, folder: Path) -> float:
    """Return the learning rate with the lowest held-out loss at the end, on a seed that is not judged by."""
    return min(arm.rates, key=lambda rate: _last(_run(arm, rate, TUNING_SEED, corpus, folder)))


def _last(losses_L: Sequence[float]) -> float:
    return losses_L[-1] if math.isfinite(losses_L[-1]) else math.inf


def _run(arm: Arm, rate: float, seed: int, corpus: Corpus, folder: Path) -> list[float]:
    """Return the held-out losses over a run (L looks), from its file where it has been run."""
    path = folder / f"{arm.name}.{rate:g}.{seed}.json"
    if not path.exists():
        text = json.dumps(list(_train(arm, rate, seed, corpus)))
        unfinished = path.with_suffix(".part")
        unfinished.write_text(text)
        unfinished.replace(path)
    losses: list[float] = json.loads(path.read_text())
    return losses


def _train(arm: Arm, rate: float, seed: int, corpus: Corpus) -> Iterator[float]:
    """Yield the held-out loss now and then."""
    model = GptSpec(
        width=WIDTH,
        depth=DEPTH,
        num_heads=NUM_HEADS,
        vocabulary=ByteTokenizer.vocabulary_size,
        sequence=SEQUENCE,
        block=arm.block,
        seed=seed,
    )
    layout = ParallelLayout()
    comm = Comm(layout, Member(rank=0, plan=GroupPlan.of_layout(layout), process_groups={}, elapsed_s=0.0))
    degrees = Degrees(layout=layout, batch_size=BATCH_SIZE * arm.larger)
    trainer = ParallelTrainer(model, degrees, comm, POLICIES["none"], torch.float32)
    optimizer_spec = OptimizerSpec(name=arm.optimizer)
    optimizer = make_optimizer(trainer.shards, optimizer_spec, comm)
    num_steps = NUM_STEPS // arm.larger
    schedule = LearningRateSchedule(
        peak=rate, num_steps=num_steps, num_warmup_steps=round(WARM_UP_FRACTION * num_steps)
    )
    batches = Batches(_portions(corpus.training, degrees.batch_size, seed))
    held_out = _batch(Batches(_portions(corpus.held_out, HELD_OUT_SAMPLES, 0)), 0)
    for step in range(num_steps):

        def update(step: int = step) -> None:
            _, factor = clip_factor(trainer.shards, optimizer_spec.max_gradient_norm, comm)
            optimizer.step(schedule.learning_rate(step), factor)

        trainer.run_step(step, [_batch(batches, step * degrees.batch_size)], update)
        comm.restart_ledger()
        if (step + 1) % (num_steps // NUM_LOOKS) == 0:
            yield _held_out_loss(trainer, held_out)


def _portions(path: Path, batch_size: int, seed: int) -> BatchSpec:
    return BatchSpec(
        path=str(path),
        sequence_length=SEQUENCE,
        batch_size=batch_size,
        vocabulary_size=ByteTokenizer.vocabulary_size,
        seed=seed,
    )


def _batch(batches: Batches, place: int) -> MicroBatch:
    ids_RC = np.empty((batches.spec.rows, SEQUENCE + 1), dtype=np.int64)
    batches.read(place, 0, ids_RC)
    ids = torch.from_numpy(ids_RC)
    return MicroBatch(tokens_BS=ids[:, :-1].contiguous(), targets_BS=ids[:, 1:].contiguous())


@torch.no_grad()
def _held_out_loss(trainer: ParallelTrainer, held_out: MicroBatch) -> float:
    (stage,) = trainer.stages.values()
    loss = run_chunk(stage.chunk, stage.weights, SingleProcess(), held_out, None, "held-out")
    return float(loss) / held_out.targets_BS.numel()


def _losses(best: dict[str, float], curves: dict[str, FloatArray]) -> Iterator[str]:
    """Yield a table: of each arm the mean held-out loss at each look, and how far seeds lie apart at the end."""
    tokens_L = np.arange(1, NUM_LOOKS + 1) * BATCH_SIZE * SEQUENCE * NUM_STEPS // NUM_LOOKS
    looks = range(1, NUM_LOOKS, 2)
    yield "| arm | best rate | " + " | ".join(f"{tokens_L[look] // 1000} k" for look in looks) + " | deviation |"
    yield "| --- " * (3 + len(looks)) + "|"
    for name, losses_RL in curves.items():
        means = " | ".join(f"{losses_RL[:, look].mean():.4f}" for look in looks)
        yield f"| {name} | {best[name]:g} | {means} | {losses_RL[:, -1].std(ddof=1):.4f} |"


def _gaps(curves: dict[str, FloatArray]) -> Iterator[str]:
    """Yield a table: the second arm's last loss less the first's, its mean over seeds and the interval of that mean."""
    yield "| arms | gap | 95 % interval |"
    yield "| --- | --- | --- |"
    for first, second in QUESTIONS:
        gap_R = curves[second][:, -1] - curves[first][:, -1]
        half = STUDENT_T[len(gap_R)] * gap_R.std(ddof=1) / math.sqrt(len(gap_R))
        mean = gap_R.mean()
        yield f"| {second} less {first} | {mean:+.4f} | {mean - half:+.4f} to {mean + half:+.4f} |"


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(text) for text in sys.argv[2:]])
