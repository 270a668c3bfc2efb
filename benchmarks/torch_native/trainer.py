"""One rank's part of training the serial GPT by torch's means.

DTensor divides the products over tp with sequence parallelism, FSDP2 shards gradients and optimizer over dp (weights
stay whole between passes: ZeRO-2), and ScheduleInterleaved1F1B runs the chunks over pp.
"""

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn import functional

from benchmarks.torch_native.model import TorchChunk, arrange
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.model.initialization import make_weights
from fabrictune.trainer_probe.parallel.degrees import Degrees

_LAYER_PLAN: dict[str, ParallelStyle] = {
    "norm1": SequenceParallel(),
    "input": ColwiseParallel(input_layouts=Shard(1)),
    "output": RowwiseParallel(output_layouts=Shard(1)),
    "norm2": SequenceParallel(),
    "linear1": ColwiseParallel(input_layouts=Shard(1)),
    "linear2": RowwiseParallel(output_layouts=Shard(1)),
}


class TorchTrainer:
    """Trains on the same samples, from the same first values, as `ParallelTrainer` with the serial block.

    Compiled, each layer is, as torchtitan does it.
    """

    def __init__(self, model: GptSpec, degrees: Degrees, dtype: torch.dtype, *, is_compiled: bool = False) -> None:
        layout, shape = degrees.layout, degrees.pipeline
        assert model.block == "serial", "the block that torch's modules are written for here"
        assert layout.order == ("tp", "dp", "pp"), "the mesh numbers ranks so"
        ranks = torch.arange(layout.world_size).view(layout.pp, layout.dp, layout.tp)
        self._mesh = DeviceMesh("cpu", ranks, mesh_dim_names=("pp", "dp", "tp"))
        self._is_compiled = is_compiled
        place = self._mesh.get_local_rank("pp")
        self.chunks = [
            self._make_chunk(ChunkSpec(model=model, number=number, num_chunks=shape.num_stages), dtype)
            for number in range(place, shape.num_stages, shape.pp)
        ]
        stages = [
            PipelineStage(
                chunk, chunk.chunk.number, shape.num_stages, torch.device("cpu"), group=self._mesh["pp"].get_group()
            )
            for chunk in self.chunks
        ]
        self._has_first, self._has_last = self.chunks[0].chunk.is_first, self.chunks[-1].chunk.is_last
        self._schedule = ScheduleInterleaved1F1B(
            stages,  # type: ignore[arg-type]  # a list is invariant
            n_microbatches=shape.num_batches,
            loss_fn=_mean_loss,
        )

    def parameters(self) -> list[nn.Parameter]:
        """Return what an optimizer on this rank changes: its shards, by chunk."""
        return [parameter for chunk in self.chunks for parameter in chunk.parameters()]

    def run_step(self, tokens_BS: torch.Tensor, targets_BS: torch.Tensor) -> float:
        """Add up the gradients of this data-parallel rank's samples; returns their mean loss where the last stage is.

        Micro-batches are equal parts of the samples. Gradients are of the mean over all ranks' samples.
        """
        losses: list[torch.Tensor] = []
        inputs = (tokens_BS,) if self._has_first else ()
        with loss_parallel():
            if self._has_last:
                self._schedule.step(*inputs, target=targets_BS, losses=losses)
            else:
                self._schedule.step(*inputs)
        return float(torch.stack([loss.detach() for loss in losses]).mean()) if losses else 0.0

    def _make_chunk(self, spec: ChunkSpec, dtype: torch.dtype) -> TorchChunk:
        chunk = TorchChunk(spec, dtype)
        chunk.load_state_dict(arrange(spec, make_weights(spec)))
        if self._mesh["tp"].size() > 1:
            _divide(chunk, self._mesh["tp"])
        if self._is_compiled:
            for layer in chunk.layers.values():
                layer.compile(dynamic=False)
        if self._mesh["dp"].size() > 1:
            fully_shard(chunk, mesh=self._mesh["dp"], reshard_after_forward=False)
        return chunk


def _divide(chunk: TorchChunk, mesh: DeviceMesh) -> None:
    """Replace a chunk's parameters by DTensors over the tensor-parallel mesh, and divide its products."""
    for layer in chunk.layers.values():
        parallelize_module(layer, mesh, _LAYER_PLAN)
    if chunk.chunk.is_first:
        style = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
        parallelize_module(chunk, mesh, {"embedding": style})
        chunk.positions = nn.Parameter(distribute_tensor(chunk.positions.detach(), mesh, [Shard(0)]))
    if chunk.chunk.is_last:
        head = ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False)
        parallelize_module(chunk, mesh, {"last_norm": SequenceParallel(), "head": head})


def _mean_loss(logits_BSV: torch.Tensor, targets_BS: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits_BSV.flatten(0, 1), targets_BS.flatten())
