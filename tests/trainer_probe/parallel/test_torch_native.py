"""Another's text beside ours: torch's encoder layer, and torch's interleaved pipeline of such layers.

Our weights are put into torch's arrangement, in which queries, keys and values are blocks of rows; so are gradients.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from foundation.layout import ParallelLayout
from trainer_probe.launcher import launch
from trainer_probe.model.spec import ModelSpec
from trainer_probe.parallel.degrees import Degrees
from trainer_probe.policies import POLICIES

pytest.importorskip("torch")

import torch
from torch import nn

from trainer_probe.model.chunk import ChunkSpec
from trainer_probe.model.first_values import make_weights
from trainer_probe.model.forward import MicroBatch
from trainer_probe.model.layers import run_layer
from trainer_probe.model.operators import SingleProcess
from trainer_probe.parallel.trainer import ParallelTrainer

if TYPE_CHECKING:
    from collectives.startup.process_groups import Member

MODEL = ModelSpec(width=8, depth=4, num_heads=2, vocabulary=7, sequence=5, block="serial")
DEGREES = Degrees(layout=ParallelLayout(pp=2), virtual=2, num_batches=4, batch_size=2)
Tensors = Mapping[str, torch.Tensor]


class TorchChunk(nn.Module):
    """A chunk of the serial model, written with torch's modules."""

    def __init__(self, chunk: ChunkSpec) -> None:
        super().__init__()
        spec = chunk.model
        if chunk.is_first:
            self.embedding = nn.Embedding(spec.vocabulary, spec.width, dtype=torch.float64)
            self.positions = nn.Embedding(spec.sequence, spec.width, dtype=torch.float64)
        self.layers = nn.ModuleDict({str(layer): make_layer(spec) for layer in chunk.layers})
        if chunk.is_last:
            self.last_norm = nn.LayerNorm(spec.width, dtype=torch.float64)
            self.head = nn.Linear(spec.width, spec.vocabulary, bias=False, dtype=torch.float64)
        self.chunk = chunk
        self.load_state_dict(arrange(chunk, make_weights(chunk)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Tokens or activations, samples first: B S or B S D."""
        if self.chunk.is_first:
            x = self.embedding(x) + self.positions.weight
        mask_SS = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        for layer in self.layers.values():
            x = layer(x, src_mask=mask_SS)
        return self.head(self.last_norm(x)) if self.chunk.is_last else x


def make_layer(spec: ModelSpec) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(
        spec.width,
        spec.num_heads,
        4 * spec.width,
        dropout=0.0,
        activation=partial(nn.functional.gelu, approximate="tanh"),
        norm_first=True,
        batch_first=True,
        dtype=torch.float64,
    )


def arrange(chunk: ChunkSpec, ours: Tensors) -> dict[str, torch.Tensor]:
    """Return a chunk's weights, or their gradients, by torch's names and in its shapes."""
    found: dict[str, torch.Tensor] = {}
    if chunk.is_first:
        found |= {f"{name}.weight": ours[f"{name}.weight"] for name in ("embedding", "positions")}
    for layer in chunk.layers:
        found |= {f"layers.{layer}.{name}": values for name, values in arrange_layer(ours, f"layers.{layer}").items()}
    if chunk.is_last:
        found |= {"last_norm.weight": ours["last_norm.gain"], "last_norm.bias": ours["last_norm.shift"]}
        found["head.weight"] = ours["head.weight"].t()
    return found


def arrange_layer(ours: Tensors, name: str) -> dict[str, torch.Tensor]:
    attention, feed_forward = f"{name}.attention", f"{name}.feed_forward"
    return {
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


def test_the_serial_block_is_that_of_torch() -> None:
    """With weights that are all other than they begin, since a bias of nought could be left out unseen."""
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: values + torch.randn(values.shape, generator=generator, dtype=torch.float64)
        for name, values in make_weights(ChunkSpec(model=MODEL)).items()
    }
    x_SBD = torch.randn(MODEL.sequence, 3, MODEL.width, generator=generator, dtype=torch.float64)
    layer = make_layer(MODEL)
    layer.load_state_dict(arrange_layer(weights, "layers.0"))
    with torch.no_grad():
        expected_BSD = layer(x_SBD.transpose(0, 1), src_mask=torch.ones(5, 5).triu(1).bool())
    found_SBD = run_layer(MODEL, weights, SingleProcess(), x_SBD, 0, "")
    torch.testing.assert_close(found_SBD.transpose(0, 1), expected_BSD, rtol=0, atol=1e-12)


def train_both_ways(member: "Member") -> dict[str, NDArray[Any]]:
    """Return the gradients of a step by our trainer and by torch's schedule, and both losses."""
    from trainer_probe.comm import Comm

    comm = Comm(DEGREES.layout, member)
    ids_BS = torch.randint(7, (8, MODEL.sequence + 1), generator=torch.Generator().manual_seed(0))
    batches = [MicroBatch(tokens_BS=ids[:, :-1], targets_BS=ids[:, 1:]) for ids in ids_BS.split(DEGREES.batch_size)]
    trainer = ParallelTrainer(MODEL, DEGREES, comm, POLICIES["all"])
    found = {"ours/loss": trainer.run_step(0, batches, lambda: None).numpy()}
    for stage in trainer.stages.values():
        gradients = {name: values.grad for name, values in stage.weights.items() if values.grad is not None}
        found |= {f"ours/{name}": values.numpy() for name, values in arrange(stage.chunk, gradients).items()}
    chunks = [TorchChunk(stage.chunk) for stage in trainer.stages.values()]
    found["torch/loss"] = np.array(run_torch_pipeline(chunks, ids_BS, member))
    for chunk in chunks:
        for name, parameter in chunk.named_parameters():
            assert parameter.grad is not None
            found[f"torch/{name}"] = parameter.grad.numpy()
    return found


def run_torch_pipeline(chunks: list[TorchChunk], ids_BS: torch.Tensor, member: "Member") -> float:
    """Run one step of torch's own schedule over the same two processes; returns the mean loss on the last rank."""
    from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B

    def mean_loss(logits_BSV: torch.Tensor, targets_BS: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(logits_BSV.flatten(0, 1), targets_BS.flatten())

    stages = [
        PipelineStage(
            chunk, chunk.chunk.number, chunk.chunk.num_chunks, torch.device("cpu"), group=member.process_groups["pp0"]
        )
        for chunk in chunks
    ]
    schedule = ScheduleInterleaved1F1B(stages, n_microbatches=DEGREES.num_batches, loss_fn=mean_loss)  # type: ignore[arg-type]  # a list is invariant
    losses: list[torch.Tensor] = []
    if member.rank == 0:
        schedule.step(ids_BS[:, :-1].contiguous())
    else:
        schedule.step(target=ids_BS[:, 1:].contiguous(), losses=losses)
    return float(torch.stack(losses).mean().detach()) if losses else 0.0


def test_an_interleaved_pipeline_gives_the_gradients_of_torch() -> None:
    """Four stages on two ranks, four micro-batches; torch's schedule divides gradients by their number, as a mean."""
    for found in launch(DEGREES.layout, train_both_ways):
        names = {name.removeprefix("ours/") for name in found if name.startswith("ours/")}
        assert names == {name.removeprefix("torch/") for name in found if name.startswith("torch/")}
        for name in names:
            np.testing.assert_allclose(found[f"ours/{name}"], found[f"torch/{name}"], rtol=0, atol=1e-12, err_msg=name)
