"""Training over tensor, context, pipeline and data parallel ranks against one process, to the order of additions.

The one process runs a second implementation of each model, in plain torch over whole weights.

Each layout is trained for two steps of plain gradient descent without overlap and with all of it, in the same
processes; the one with all axes under every policy.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune.foundation.layout import Axis, ParallelLayout
from fabrictune.foundation.traces import CommTrace, Operation
from fabrictune.trainer_probe.data_parallel.spec import DataParallelSpec, StrategyName
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.model.gpt import Block, GptSpec
from fabrictune.trainer_probe.model.llama import LlamaSpec
from fabrictune.trainer_probe.model.moe import MoeSpec
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.model.weights import WeightSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.parallel.schedule import ScheduleName
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.plan import make_plan
from fabrictune.trainer_probe.policies import POLICIES, Recompute
from fabrictune.trainer_probe.recipes.schema import Recipe

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.model.initialization import make_weights
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.parallel.volumes import step_volumes
from tests.trainer_probe.model.plain_models import plain_loss

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

NUM_STEPS = 2
LEARNING_RATE = 0.5
Arrays = Mapping[str, NDArray[Any]]


def divide(
    *,
    tp: int = 1,
    cp: int = 1,
    pp: int = 1,
    v: int = 1,
    dp: int = 1,
    ep: int = 1,
    m: int = 1,
    b: int = 1,
    chunks: int = 1,
    schedule: ScheduleName | None = None,
) -> Degrees:
    """Chunks of the exchange of experts' tokens where there is one, else of tensor-parallel collectives."""
    return Degrees(
        layout=ParallelLayout(tp=tp, cp=cp, pp=pp, dp=dp, ep=ep),
        virtual=v,
        num_batches=m,
        batch_size=b,
        tensor_chunks=chunks if ep == 1 else 1,
        expert_chunks=chunks if ep > 1 else 1,
        schedule=schedule,
    )


Kind = Block | Literal["rotary", "llama", "moe", "moe-switch", "moe-groups"]

STRATEGIES: dict[str, StrategyName] = {  # of layouts that are not trained with the default
    "ddp-dp3": "ddp",
    "ddp-tp2-pp2-v2-dp2": "ddp",
    "zero2-dp3": "zero2",
    "zero2-tp2-pp2-v2-dp2": "zero2",
    "zero2-moe-tp2-dp2": "zero2",
    "zero3-dp3": "zero3",
    "zero3-tp2-pp2-v2-dp2": "zero3",
    "zero3-llama-pp4": "zero3",
    "zero3-moe-tp2-dp2": "zero3",
    "zero3-cp2-pp2-dp2": "zero3",
    "zero3-moe-tp2-cp2-dp2-ep2": "zero3",
    "zero3-full-tp2-dp2": "zero3",
    "ddp-moe-dp4-ep2": "ddp",
    "zero2-moe-dp4-ep4": "zero2",
    "zero3-moe-tp2-dp4-ep2": "zero3",
}

DEGREES: dict[str, tuple[Kind, Degrees]] = {
    "tp2": ("serial", divide(tp=2, m=2, chunks=2)),
    "pp2": ("serial", divide(pp=2, m=3)),
    "pp2-v2": ("parallel", divide(pp=2, v=2, m=4)),
    "dp3": ("parallel", divide(dp=3, m=2)),
    "tp2-dp2": ("serial", divide(tp=2, dp=2)),
    "tp2-pp2": ("parallel", divide(tp=2, pp=2, m=2, chunks=2)),
    "pp2-v2-dp2": ("serial", divide(pp=2, v=2, dp=2, m=2)),
    "pp4": ("parallel", divide(pp=4, m=5)),
    "tp4-dp2": ("parallel", divide(tp=4, dp=2)),
    "tp2-pp2-v2-dp2": ("parallel", divide(tp=2, pp=2, v=2, dp=2, m=4)),
    "llama-tp2-pp2-v2-dp2": ("llama", divide(tp=2, pp=2, v=2, dp=2, m=2, chunks=2)),
    "llama-pp4": ("llama", divide(pp=4, m=5)),
    "moe-tp2-pp2-v2-dp2": ("moe", divide(tp=2, pp=2, v=2, dp=2, m=2)),
    "moe-tp2-dp2": ("moe", divide(tp=2, dp=2, m=3, chunks=2)),
    "moe-pp2": ("moe", divide(pp=2, m=3)),
    "moe-dp2-ep2": ("moe", divide(dp=2, ep=2, m=2)),
    "moe-dp4-ep2": ("moe-switch", divide(dp=4, ep=2, m=2, b=2, chunks=3)),
    "moe-dp4-ep4": ("moe", divide(dp=4, ep=4, m=2, chunks=2)),
    "moe-tp2-dp2-ep2": ("moe-switch", divide(tp=2, dp=2, ep=2)),
    "zb-moe-dp2-pp2-ep2": ("moe", divide(dp=2, pp=2, ep=2, m=3, chunks=2, schedule="zb-h1")),
    "moe-tp2-dp4-ep2": ("moe", divide(tp=2, dp=4, ep=2, m=2, b=2)),
    "moe-tp2-pp2-v2-dp2-ep2": ("moe", divide(tp=2, pp=2, v=2, dp=2, ep=2, m=2, chunks=2)),
    "zb-pp4": ("parallel", divide(pp=4, m=5, schedule="zb-h1")),
    "zb-tp2-pp2-dp2": ("serial", divide(tp=2, pp=2, dp=2, m=3, chunks=2, schedule="zb-h1")),
    "zb-llama-tp2-pp4": ("llama", divide(tp=2, pp=4, m=2, schedule="zb-h1")),
    "zb-moe-tp2-pp2": ("moe", divide(tp=2, pp=2, m=3, schedule="zb-h1")),
    "cp2": ("serial", divide(cp=2, m=2)),
    "cp3-dp2": ("rotary", divide(cp=3, dp=2, m=2)),
    "llama-cp4": ("llama", divide(cp=4)),
    "tp2-cp2": ("parallel", divide(tp=2, cp=2, m=2, chunks=2)),
    "llama-tp2-cp2-pp2-v2": ("llama", divide(tp=2, cp=2, pp=2, v=2, m=2)),
    "cp2-pp2-dp2": ("parallel", divide(cp=2, pp=2, dp=2, m=3)),
    "zb-cp2-pp2": ("llama", divide(cp=2, pp=2, m=3, schedule="zb-h1")),
    "full-tp2-dp2": ("serial", divide(tp=2, dp=2, m=2, chunks=2)),
    "moe-cp2": ("moe-groups", divide(cp=2, m=2)),
    "moe-tp2-cp2-dp2-ep2": ("moe-groups", divide(tp=2, cp=2, dp=2, ep=2, m=2, chunks=2)),
    "zb-moe-cp2-pp2-dp2": ("moe-groups", divide(cp=2, pp=2, dp=2, m=2, schedule="zb-h1")),
    "full-moe-tp2-dp2-ep2": ("moe", divide(tp=2, dp=2, ep=2, m=2, chunks=2)),
    "full-zb-moe-tp2-pp2": ("moe", divide(tp=2, pp=2, m=3, schedule="zb-h1")),
    "selective-llama-tp2-pp2-v2": ("llama", divide(tp=2, pp=2, v=2, m=2)),
    "selective-cp2-pp2": ("llama", divide(cp=2, pp=2, m=2)),
}
RECOMPUTED: dict[str, Recompute] = {
    "full-tp2-dp2": "full",
    "full-moe-tp2-dp2-ep2": "full",
    "full-zb-moe-tp2-pp2": "full",
    "selective-llama-tp2-pp2-v2": "selective",
    "selective-cp2-pp2": "selective",
    "zero3-full-tp2-dp2": "full",
}
LAYOUTS = {
    **{name: (*shape, DataParallelSpec()) for name, shape in DEGREES.items()},
    **{
        name: (*DEGREES[name.partition("-")[2]], DataParallelSpec(strategy=strategy))
        for name, strategy in STRATEGIES.items()
    },
}


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A layout's training: what every rank holds, by policy and name, and the folder of the ledgers."""

    model: ModelSpec
    degrees: Degrees
    data_parallel: DataParallelSpec
    recompute: Recompute
    ranks: Sequence[Arrays]
    ledgers: Path

    @property
    def policies(self) -> Sequence[str]:
        return policies_of(self.degrees)

    def ledger(self, rank: int, policy: str) -> CommTrace:
        return CommTrace.read(self.ledgers / f"{policy}.{rank}.parquet")


def policies_of(degrees: Degrees) -> Sequence[str]:
    layout = degrees.layout
    if layout.cp > 1:
        return ["none", "cp", "all"]
    of_axes = ["tp", "pp", "dp"] if min(layout.tp, layout.pp, layout.dp) > 1 else []
    return ["none", *of_axes, *(["ep"] if layout.ep > 1 else []), "all"]


def make_model(kind: Kind, *, is_long: bool) -> ModelSpec:
    """The window of a long sequence is longer than a chunk of it, whatever the degree."""
    sequence, window = (48, 21) if is_long else (8, 3)
    shape: dict[str, Any] = {"width": 16, "depth": 4, "num_heads": 4, "vocabulary": 12, "sequence": sequence}
    if kind == "llama":
        return LlamaSpec(**shape, num_key_value_heads=2, feed_forward_width=12)
    grouped = {**shape, "num_key_value_heads": 2, "feed_forward_width": 12, "num_experts": 4}
    if kind == "moe":
        return MoeSpec(**grouped, capacity_factor=1.0, balance_coefficient=0.1)
    if kind == "moe-groups":
        return MoeSpec(**grouped, token_groups=8, capacity_factor=0.75, balance_coefficient=0.1)
    if kind == "moe-switch":  # one choice, of which none is dropped
        return MoeSpec(**grouped, num_choices=1, capacity_factor=None, balance_coefficient=0.1)
    if kind == "rotary":
        return GptSpec(**shape, block="serial", positions="rotary")
    return GptSpec(**shape, window=window, block=kind)


def make_batches(model: ModelSpec, degrees: Degrees, step: int, place: int) -> list[MicroBatch]:
    """The micro-batches of one data-parallel rank: its share of the step's samples."""
    generator = torch.Generator().manual_seed(step)
    shape = (degrees.layout.dp, degrees.num_batches, degrees.batch_size, model.sequence + 1)
    ids = torch.randint(model.vocabulary, shape, generator=generator)[place]
    return [MicroBatch(tokens_BS=batch[:, :-1], targets_BS=batch[:, 1:]) for batch in ids]


def train_rank(
    model: ModelSpec,
    degrees: Degrees,
    data_parallel: DataParallelSpec,
    recompute: Recompute,
    folder: Path,
    member: "Member",
) -> dict[str, NDArray[Any]]:
    """Train under each policy; leaves ledgers in `folder`, returns losses, gradient shards and whole weights."""
    from fabrictune.trainer_probe.comm import Comm

    found: dict[str, NDArray[Any]] = {}
    for name in policies_of(degrees):
        comm = Comm(degrees.layout, member)
        trainer = ParallelTrainer(
            model, degrees, comm, POLICIES[name], data_parallel=data_parallel, recompute=recompute
        )

        def descend(trainer: ParallelTrainer = trainer) -> None:
            for shard in trainer.shards:
                shard.values_E.sub_(shard.gradients_E, alpha=LEARNING_RATE)

        place = comm.members("dp").index(comm.rank)
        batches = [make_batches(model, degrees, step, place) for step in range(NUM_STEPS)]
        losses = [float(trainer.run_step(step, batches[step], descend)) for step in range(NUM_STEPS)]
        comm.trace().write(folder / f"{name}.{comm.rank}.parquet")
        trainer.complete()
        found[f"{name}/loss"] = np.array(losses)
        for stage in trainer.stages.values():
            found |= {f"{name}/value/{weight}": value.detach().numpy() for weight, value in stage.weights.items()}
        for shard in trainer.shards:
            for number, piece in shard.pieces():
                segment = shard.segments[number]
                start = max(0, shard.first - segment.offset)
                found[f"{name}/gradient/{segment.name}/{start}"] = shard.gradients_E[piece].numpy()
    return found


@cache
def train_alone(model: ModelSpec, degrees: Degrees) -> tuple[list[float], Mapping[str, torch.Tensor]]:
    """Return one process's losses and its weights after the last step, with the last step's gradients."""
    chunk = ChunkSpec(model=model)
    weights = {name: value.requires_grad_() for name, value in make_weights(chunk).items()}
    losses = []
    for step in range(NUM_STEPS):
        for value in weights.values():
            value.grad = None
        batches = [batch for place in range(degrees.layout.dp) for batch in make_batches(model, degrees, step, place)]
        sums = [plain_loss(model, weights, batch.tokens_BS, batch.targets_BS) for batch in batches]
        num_tokens = degrees.samples_per_step * model.sequence
        loss = torch.stack([cross_entropy for cross_entropy, _ in sums]).sum() / num_tokens
        (loss + torch.stack([added for _, added in sums]).sum() / num_tokens).backward()
        losses.append(float(loss.detach()))
        with torch.no_grad():
            for value in weights.values():
                assert value.grad is not None
                value.sub_(value.grad, alpha=LEARNING_RATE)
    return losses, weights


@pytest.fixture(scope="module", params=LAYOUTS)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    block, degrees, data_parallel = LAYOUTS[request.param]
    model, folder = make_model(block, is_long=degrees.layout.cp > 1), tmp_path_factory.mktemp("ledgers")
    recompute = RECOMPUTED.get(request.param, "none")
    ranks = launch(degrees.layout, partial(train_rank, model, degrees, data_parallel, recompute, folder))
    return Trained(
        model=model, degrees=degrees, data_parallel=data_parallel, recompute=recompute, ranks=ranks, ledgers=folder
    )


def test_loss_gradients_and_weights_equal_one_process(trained: Trained) -> None:
    """In double precision, to 1e-12, under every policy; the loss is the sum of the last stages' shares.

    Where experts are divided it is right to 1e-13 of itself.
    """
    losses, weights = train_alone(trained.model, trained.degrees)
    layout = trained.degrees.layout
    for policy in trained.policies:
        shares = [found[f"{policy}/loss"] for found in trained.ranks]
        atol = 1e-13 * min(losses) if layout.ep > 1 else 1e-12
        np.testing.assert_allclose(np.sum(shares, axis=0) / layout.tp, losses, rtol=0, atol=atol)
    for rank, found in enumerate(trained.ranks):
        place, specs = int(layout.coordinates(rank)["tp"]), specs_of(trained, rank)
        for key, values in found.items():
            _, kind, *names = key.split("/")
            if kind == "value":
                expected = specs[names[0]].local_part(weights[names[0]].detach(), layout.tp, place)
                np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12, err_msg=f"rank {rank}: {key}")
            elif kind == "gradient":
                gradient = weights[names[0]].grad
                assert gradient is not None
                part = specs[names[0]].local_part(gradient, layout.tp, place).flatten()
                expected = part[int(names[1]) : int(names[1]) + len(values)]
                np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12, err_msg=f"rank {rank}: {key}")


def test_every_weight_and_gradient_is_held(trained: Trained) -> None:
    """Over the ranks of one tensor-parallel place: each weight once a replica, each gradient once.

    With DDP each gradient too is on every replica.
    """
    layout = trained.degrees.layout
    for place in range(layout.tp):
        numbers = Counter[tuple[str, str]]()
        for rank, found in enumerate(trained.ranks):
            if layout.coordinates(rank)["tp"] == place:
                for key, values in found.items():
                    policy, kind, *names = key.split("/")
                    if policy == "all" and kind != "loss":
                        numbers[kind, names[0]] += values.size
        for weight in ChunkSpec(model=trained.model).weights():
            size = int(np.prod(weight.local_shape(layout.tp)))
            num_replicas = layout.degree(layout.expert_replica_axis if weight.is_of_experts else layout.replica_axis)
            assert numbers["value", weight.name] == num_replicas * size
            copies = num_replicas if trained.data_parallel.strategy == "ddp" else 1
            assert numbers["gradient", weight.name] == copies * size


def test_overlap_changes_no_bit(trained: Trained) -> None:
    """Weights, gradients and losses of each policy, compared with those of none."""
    for found in trained.ranks:
        for key, values in found.items():
            _, _, name = key.partition("/")
            assert np.array_equal(values, found[f"none/{name}"]), key


def test_the_ledger_has_the_bytes_of_the_closed_form(trained: Trained) -> None:
    """Of every rank, step and policy, by axis and operation."""
    for rank in range(trained.degrees.layout.world_size):
        place = int(trained.degrees.layout.coordinates(rank)["pp"])
        expected = step_volumes(
            trained.model,
            trained.degrees,
            place=place,
            element_bytes=8,
            data_parallel=trained.data_parallel,
            recompute=trained.recompute,
        )
        for policy in trained.policies:
            trace = trained.ledger(rank, policy)
            for step in range(NUM_STEPS):
                assert bytes_of_step(trace, step) == expected, (rank, policy, step)


def test_overlap_changes_no_request_but_their_order(trained: Trained) -> None:
    """The same names, operations, groups and bytes; only when they are made and waited for differs."""
    for rank in range(trained.degrees.layout.world_size):
        requests = {policy: requests_of(trained.ledger(rank, policy)) for policy in trained.policies}
        assert all(found == requests["none"] for found in requests.values())


def test_a_plan_has_the_requests_of_every_rank(trained: Trained) -> None:
    """Of groups that carry nothing and tensors without values, one rank a pipeline place: every rank's first step, in
    the same order and with the same waits, where products take no time."""
    for policy in trained.policies:
        overlap: Any = policy
        recipe = Recipe(
            name="plan",
            model=trained.model,
            degrees=trained.degrees,
            data_parallel=trained.data_parallel,
            overlap=overlap,
            recompute=trained.recompute,
            precision="float64",
        )
        job = make_plan(
            recipe, HardwareSpec(peak_flops_per_s=math.inf, achieved_flops_per_s=math.inf, memory_bytes_per_s=math.inf)
        ).trace
        for rank in range(trained.degrees.layout.world_size):
            found, expected = job.of_rank(rank), trained.ledger(rank, policy)
            first = range(np.count_nonzero(expected.step_N == 0))
            assert found.groups == expected.groups
            for name in ("tag_N", "axis_N", "policy_N", "operation_N", "group_N", "peer_N", "bytes_N", "rank_N"):
                assert list(getattr(found, name)) == list(getattr(expected, name))[: len(first)], (rank, policy, name)
            for row in first:
                assert found.dependencies.of(row).tolist() == expected.dependencies.of(row).tolist()


def specs_of(trained: Trained, rank: int) -> Mapping[str, WeightSpec]:
    """The weights of which a rank may have some; experts are consecutive, on neighbours along dp."""
    layout = trained.degrees.layout
    place = int(layout.coordinates(rank)["dp"]) % layout.ep
    return {weight.name: weight.of_experts(layout.ep, place) for weight in ChunkSpec(model=trained.model).weights()}


def bytes_of_step(trace: CommTrace, step: int) -> Counter[tuple[Axis, Operation]]:
    found = Counter[Any]()
    for row in np.nonzero(trace.step_N == step)[0]:
        found[trace.axis_N[row], Operation(trace.operation_N[row])] += int(trace.bytes_N[row])
    return found


def requests_of(trace: CommTrace) -> Counter[tuple[Any, ...]]:
    columns = (trace.step_N, trace.operation_N, trace.group_N, trace.peer_N, trace.bytes_N)
    return Counter(zip(trace.tag_N, *(column.tolist() for column in columns), strict=True))
