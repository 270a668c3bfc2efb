"""Another's text beside ours: torch's encoder layer, and training by torch's means over all three axes.

DTensor with sequence parallelism, FSDP2 and the interleaved pipeline run together over gloo as they do over NCCL.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.policies import POLICIES

pytest.importorskip("torch")

import torch
from torch import nn

from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.forward import MicroBatch, run_layer
from fabrictune.trainer_probe.model.initialization import make_weights
from fabrictune.trainer_probe.model.operators import SingleProcess
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

MODEL = GptSpec(width=8, depth=4, num_heads=2, vocabulary=6, sequence=4, block="serial")
DEGREES = Degrees(layout=ParallelLayout(tp=2, pp=2, dp=2), virtual=2, num_batches=4, batch_size=2)
NUM_STEPS = 2
Arrays = dict[str, NDArray[Any]]


def test_the_serial_block_is_that_of_torch() -> None:
    """With weights that are all other than they begin, since a bias of nought could be left out unseen."""
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: values + torch.randn(values.shape, generator=generator, dtype=torch.float64)
        for name, values in make_weights(ChunkSpec(model=MODEL)).items()
    }
    x_SBD = torch.randn(MODEL.sequence, 3, MODEL.width, generator=generator, dtype=torch.float64)
    layer = make_encoder_layer(MODEL, weights, "layers.0")
    with torch.no_grad():
        expected_BSD = layer(x_SBD.transpose(0, 1), src_mask=torch.ones(4, 4).triu(1).bool())
    found_SBD = run_layer(MODEL, weights, SingleProcess(), 0, x_SBD, "")
    torch.testing.assert_close(found_SBD.transpose(0, 1), expected_BSD, rtol=0, atol=1e-12)


def make_encoder_layer(spec: GptSpec, ours: Mapping[str, torch.Tensor], name: str) -> nn.Module:
    """Queries, keys and values of all heads are blocks of rows there."""
    layer = nn.TransformerEncoderLayer(
        spec.width,
        spec.num_heads,
        4 * spec.width,
        dropout=0.0,
        activation=partial(nn.functional.gelu, approximate="tanh"),
        norm_first=True,
        batch_first=True,
        dtype=torch.float64,
    )
    attention, feed_forward = f"{name}.attention", f"{name}.feed_forward"
    layer.load_state_dict(
        {
            "self_attn.in_proj_weight": ours[f"{attention}.input.weight"].permute(2, 1, 3, 0).flatten(0, 2),
            "self_attn.in_proj_bias": ours[f"{attention}.input.bias"].transpose(0, 1).flatten(),
            "self_attn.out_proj.weight": ours[f"{attention}.output.weight"].flatten(0, 2).t(),
            "self_attn.out_proj.bias": ours[f"{attention}.output.bias"],
            "linear1.weight": ours[f"{feed_forward}.input.weight"].flatten(1).t(),
            "linear1.bias": ours[f"{feed_forward}.input.bias"].flatten(),
            "linear2.weight": ours[f"{feed_forward}.output.weight"].flatten(0, 2).t(),
            "linear2.bias": ours[f"{feed_forward}.output.bias"],
            "norm1.weight": ours[f"{attention}.norm.gain"],
            "norm1.bias": ours[f"{attention}.norm.shift"],
            "norm2.weight": ours[f"{feed_forward}.norm.gain"],
            "norm2.bias": ours[f"{feed_forward}.norm.shift"],
        }
    )
    return layer


def test_training_over_all_axes_is_that_of_torch() -> None:
    """Two steps of descent at rate 1, so that values change by gradients, over tp 2, pp 2 with two chunks, and dp 2.

    Every rank compares its tensor-parallel part of every weight of its stages, gathered over dp.
    """
    ranks = launch(DEGREES.layout, train_both_ways)
    losses = np.sum([found["ours/loss"] for found in ranks], axis=0) / DEGREES.layout.tp
    torch_losses = np.sum([found["torch/loss"] for found in ranks], axis=0) / DEGREES.layout.tp / DEGREES.layout.dp
    np.testing.assert_allclose(losses, torch_losses, rtol=0, atol=1e-12)
    for rank, found in enumerate(ranks):
        names = {name.removeprefix("ours/") for name in found if name.startswith("ours/value/")}
        assert names == {name.removeprefix("torch/") for name in found if name.startswith("torch/value/")}
        for name in names:
            ours, torchs = found[f"ours/{name}"], found[f"torch/{name}"]
            np.testing.assert_allclose(ours, torchs, rtol=0, atol=1e-12, err_msg=f"rank {rank}: {name}")


def train_both_ways(member: "Member") -> Arrays:
    """Return the losses and the whole weights of both trainers, after each has taken the same steps."""
    place = int(DEGREES.layout.coordinates(member.rank)["dp"])
    ids_NRBS = torch.randint(
        MODEL.vocabulary,
        (NUM_STEPS, DEGREES.layout.dp, DEGREES.num_batches * DEGREES.batch_size, MODEL.sequence + 1),
        generator=torch.Generator().manual_seed(0),
    )
    return train_ours(member, ids_NRBS[:, place]) | train_torchs(ids_NRBS[:, place])


def train_ours(member: "Member", ids_NBS: torch.Tensor) -> Arrays:
    from benchmarks.torch_native.model import arrange
    from fabrictune.trainer_probe.comm import Comm

    trainer = ParallelTrainer(MODEL, DEGREES, Comm(DEGREES.layout, member), POLICIES["all"])

    def descend() -> None:
        for shard in trainer.shards:
            shard.values_E.sub_(shard.gradients_E)

    losses = []
    for step, ids_BS in enumerate(ids_NBS):
        batches = [MicroBatch(tokens_BS=ids[:, :-1], targets_BS=ids[:, 1:]) for ids in ids_BS.split(DEGREES.batch_size)]
        losses.append(float(trainer.run_step(step, batches, descend)))
    trainer.complete()
    found = {"ours/loss": np.array(losses)}
    for stage in trainer.stages.values():
        values = {name: value.detach() for name, value in stage.weights.items()}
        found |= {f"ours/value/{name}": value.numpy() for name, value in arrange(stage.chunk, values).items()}
    return found


def train_torchs(ids_NBS: torch.Tensor) -> Arrays:
    from torch.distributed.tensor import DTensor

    from benchmarks.torch_native.trainer import TorchTrainer

    trainer = TorchTrainer(MODEL, DEGREES, torch.float64)
    losses = []
    for ids_BS in ids_NBS:
        losses.append(trainer.run_step(ids_BS[:, :-1].contiguous(), ids_BS[:, 1:].contiguous()))
        with torch.no_grad():
            for parameter in trainer.parameters():
                assert parameter.grad is not None
                parameter.sub_(parameter.grad)
                parameter.grad = None
    found = {"torch/loss": np.array(losses)}
    for chunk in trainer.chunks:
        chunk.unshard()  # type: ignore[operator]  # FSDP's: gathers over dp
        for name, value in chunk.named_parameters():
            part = value.data
            assert isinstance(part, DTensor), "divided over tp"
            found[f"torch/value/{name}"] = part.to_local().numpy()
    return found
