"""Activations computed again: gradients to the last bit, live memory, and operations."""

from dataclasses import replace
from typing import Any

import pytest

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.model.hardware_flops import hardware_flops_per_token
from fabrictune.trainer_probe.model.llama import LlamaSpec
from fabrictune.trainer_probe.model.moe import MoeSpec
from fabrictune.trainer_probe.model.spec import ModelSpec, flops_per_token
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.policies import POLICIES, Recompute
from fabrictune.trainer_probe.recipes.schema import Recipe

pytest.importorskip("torch")

import torch
from torch.profiler import ProfilerActivity, profile

from fabrictune.collectives.startup.groups import GroupPlan
from fabrictune.collectives.startup.process_groups import Member
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.model.initialization import make_weights
from fabrictune.trainer_probe.model.operators import SingleProcess
from fabrictune.trainer_probe.model.recomputation import RecomputedContext
from fabrictune.trainer_probe.parallel.passes import ChunkPasses
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.memory import stage_activation_bytes
from fabrictune.trainer_probe.planning.plan import make_plan

BATCH = 3
NUMBERS_BYTES = 64  # of balance losses of two layers, 32, and of a rank's four sums of routing, 8 each
ALONE = ParallelLayout()
SHAPE: dict[str, Any] = {"width": 16, "depth": 3, "num_heads": 4, "vocabulary": 12, "sequence": 8}
GROUPED: dict[str, Any] = {**SHAPE, "num_key_value_heads": 2, "feed_forward_width": 12}
MODELS: dict[str, ModelSpec] = {
    "gpt": GptSpec(**SHAPE, window=3),
    "serial": GptSpec(**SHAPE, block="serial", positions="rotary"),
    "llama": LlamaSpec(**GROUPED),
    "moe": MoeSpec(**GROUPED),
}


def train(model: ModelSpec, degrees: Degrees, recompute: Recompute) -> torch.Tensor:
    """Return the loss and the gradients of the second step."""
    comm = Comm(ALONE, Member(rank=0, plan=GroupPlan.of_layout(ALONE), process_groups={}, elapsed_s=0.0))
    trainer = ParallelTrainer(model, degrees, comm, POLICIES["none"], torch.float32, recompute=recompute)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(model.vocabulary, (degrees.num_batches, 2, model.sequence), generator=generator)
    batches = [MicroBatch(tokens_BS=batch, targets_BS=batch) for batch in ids]
    (shard,) = trainer.shards

    def descend() -> None:
        shard.values_E.sub_(shard.gradients_E)

    trainer.run_step(0, batches, descend)
    loss = trainer.run_step(1, batches, lambda: None)
    return torch.cat([loss[None], shard.gradients_E])


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1"])
@pytest.mark.parametrize("name", MODELS)
def test_no_bit_of_a_gradient_changes(name: str, schedule: str) -> None:
    """Of any weight, under both policies, with backward passes in one or in two."""
    degrees = Degrees(num_batches=2, batch_size=2, schedule="zb-h1" if schedule == "zb-h1" else None)
    expected = train(MODELS[name], degrees, "none")
    for recompute in RECOMPUTE:
        assert torch.equal(train(MODELS[name], degrees, recompute), expected), recompute


RECOMPUTE: tuple[Recompute, Recompute] = ("selective", "full")


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("name", MODELS)
def test_a_plan_counts_the_hardware_s_operations(name: str, recompute: Recompute) -> None:
    """As torch dispatches them, over all places; full recomputation repeats all but the head. MFU is by the model's."""
    model = MODELS[name]
    degrees = Degrees(layout=ParallelLayout(tp=2, pp=3), num_batches=2, batch_size=2)
    plan = make_plan(Recipe(name="flops", model=model, degrees=degrees, recompute=recompute), HardwareSpec())
    extra = hardware_flops_per_token(model, recompute) - flops_per_token(model)
    assert plan.hardware_flops - plan.model_flops == extra * plan.num_tokens / 6
    if name != "moe":  # whose experts have slots that stay empty
        assert int(plan.flops_P.sum()) * 2 == hardware_flops_per_token(model, recompute) * plan.num_tokens
    assert plan.mfu_fraction * plan.at_best.step_ps == pytest.approx(
        plan.model_flops / HardwareSpec().peak_flops_per_s * 1e12
    )


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("name", MODELS)
def test_memory_alive_between_the_passes_is_the_plan_s(name: str, recompute: Recompute) -> None:
    """What torch's allocator has given and not taken back after the forward pass of a stage of two layers, but for
    its input, which was there before, and numbers. Less with more recomputation."""
    model = replace(MODELS[name], depth=6)
    chunk = ChunkSpec(model=model, number=1, num_chunks=3)
    degrees = Degrees(batch_size=BATCH)
    operators = SingleProcess()
    if recompute == "selective":
        operators.context = RecomputedContext(operators.context)
    weights = {name: value.float().requires_grad_() for name, value in make_weights(chunk).items()}
    passes = ChunkPasses(chunk=chunk, weights=weights, operators=operators, recompute=recompute)
    ids = torch.zeros(BATCH, model.sequence, dtype=torch.int64)
    x = torch.randn(model.sequence, BATCH, model.width).requires_grad_()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as trace:
        output = passes.forward(MicroBatch(tokens_BS=ids, targets_BS=ids), x, "")
    alive = sum(event.self_cpu_memory_usage for event in trace.events())
    assert output.requires_grad
    assert alive + x.nbytes == pytest.approx(stage_activation_bytes(chunk, degrees, 4, recompute), abs=NUMBERS_BYTES)
