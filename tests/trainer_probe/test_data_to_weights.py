"""From text to weights: a loader, all three axes, gradients clipped, LAMB and AdamW; against one rank."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.data.batches import BatchSpec
from fabrictune.trainer_probe.data.loader import Loader, LoaderProcess
from fabrictune.trainer_probe.data.service import Service
from fabrictune.trainer_probe.data.tokenization import ByteTokenizer, tokenize
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.optimizers.learning_rate import LearningRateSchedule
from fabrictune.trainer_probe.optimizers.spec import OptimizerName, OptimizerSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.policies import POLICIES

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.optimizers.norms import clip_factor
from fabrictune.trainer_probe.optimizers.optimizer import OPTIMIZERS, make_optimizer
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from tests.trainer_probe.optimizers.flat_models import comm_of_one

README = Path(__file__).parents[2] / "README.md"
MODEL = GptSpec(width=16, depth=2, num_heads=2, vocabulary=258, sequence=8, window=4, block="parallel")
BATCH_SIZE, NUM_STEPS = 4, 3
SCHEDULE = LearningRateSchedule(peak=0.02, num_steps=NUM_STEPS, num_warmup_steps=1)


def divide(layout: ParallelLayout) -> Degrees:
    return Degrees(layout=layout, num_batches=BATCH_SIZE // layout.dp, batch_size=1)


def train_with_each(layout: ParallelLayout, address: str, comm: Comm) -> dict[str, NDArray[Any]]:
    """Return this rank's losses, norms and weights by optimizer, each trained on batches of its own."""
    found: dict[str, NDArray[Any]] = {}
    with Loader(address, comm.members("dp").index(comm.rank)) as loader:
        for name in OPTIMIZERS:
            found |= {f"{name}/{key}": values for key, values in train(name, layout, loader, comm).items()}
    return found


def train(name: OptimizerName, layout: ParallelLayout, loader: Loader, comm: Comm) -> dict[str, NDArray[Any]]:
    spec = OptimizerSpec(name=name, epsilon=1e-6, max_gradient_norm=0.5)
    trainer = ParallelTrainer(MODEL, divide(layout), comm, POLICIES["all"])
    optimizer = make_optimizer(trainer.shards, spec, comm)
    losses, norms = [], []
    for step in range(NUM_STEPS):

        def update(step: int = step) -> None:
            norm, factor = clip_factor(trainer.shards, spec.max_gradient_norm, comm)
            norms.append(float(norm))
            optimizer.step(SCHEDULE.learning_rate(step), factor)

        losses.append(trainer.run_step(step, [micro_batch(row[None]) for row in loader.take()], update))
    trainer.complete()
    weights = [weight for stage in trainer.stages.values() for weight in stage.weights.items()]
    return {
        "loss": np.array(losses),
        "norm": np.array(norms),
        **{name: value.detach().numpy() for name, value in weights},
    }


def micro_batch(ids_RC: IntArray) -> MicroBatch:
    ids = torch.from_numpy(ids_RC)
    return MicroBatch(tokens_BS=ids[:, :-1], targets_BS=ids[:, 1:])


def train_rank(layout: ParallelLayout, address: str, member: "Member") -> dict[str, NDArray[Any]]:
    return train_with_each(layout, address, Comm(layout, member))


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The README as bytes."""
    path = tmp_path_factory.mktemp("tokens") / "readme.tokens"
    tokenize([README], path, ByteTokenizer())
    return path


def one_loader(tokens: Path, layout: ParallelLayout) -> LoaderProcess:
    """Start a loader for all ranks of this machine."""
    batches = BatchSpec(
        path=str(tokens),
        sequence_length=MODEL.sequence,
        batch_size=BATCH_SIZE,
        vocabulary_size=MODEL.vocabulary,
        num_replicas=layout.dp,
    )
    return LoaderProcess(Service(batches=batches, replicas=tuple(range(layout.dp)), num_workers=layout.world_size))


@pytest.fixture(scope="module")
def alone(tokens: Path) -> dict[str, NDArray[Any]]:
    layout = ParallelLayout()
    with one_loader(tokens, layout) as loader:
        return train_with_each(layout, loader.address, comm_of_one())


@pytest.mark.parametrize(
    "layout", [ParallelLayout(tp=2, dp=2), ParallelLayout(tp=2, pp=2), ParallelLayout(pp=2, dp=2)], ids=str
)
def test_a_layout_trains_as_one_rank(layout: ParallelLayout, tokens: Path, alone: dict[str, NDArray[Any]]) -> None:
    """Three steps: each needs the same samples, the norm over all ranks, and trust ratios over whole weights."""
    with one_loader(tokens, layout) as loader:
        found = launch(layout, partial(train_rank, layout, loader.address))
    specs = {weight.name: weight for weight in ChunkSpec(model=MODEL).weights()}
    for rank, arrays in enumerate(found):
        place = int(layout.coordinates(rank)["tp"])
        for key, values in arrays.items():
            name = key.partition("/")[2]
            expected = alone[key]
            if name in specs:
                expected = specs[name].local_part(torch.from_numpy(expected), layout.tp, place).numpy()
            if name != "loss":  # which only the last stages know, each its share
                np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12, err_msg=f"rank {rank}: {key}")
    for name in OPTIMIZERS:
        losses = np.sum([arrays[f"{name}/loss"] for arrays in found], axis=0) / layout.tp
        np.testing.assert_allclose(losses, alone[f"{name}/loss"], rtol=0, atol=1e-12)


def test_every_step_clips_and_changes_the_weights(alone: dict[str, NDArray[Any]]) -> None:
    """Or the test above would hold for any clipping, and for any optimizer that does nothing."""
    assert all((alone[f"{name}/norm"] > 0.5).all() for name in OPTIMIZERS)
    weights = [key.partition("/")[2] for key in alone if key.startswith("lamb/")]
    changed = [key for key in weights if not np.array_equal(alone[f"lamb/{key}"], alone[f"adamw/{key}"])]
    assert changed == weights
