"""Experts divided over ranks: reports and optimizers against one process, states between layouts, and overlap.

Loss, gradients, requests and plans of more layouts are in `test_trainer.py`.
"""

from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.settings.binding import Chosen
from fabrictune.foundation.traces import CommTrace, Operation
from fabrictune.trainer_probe.data_parallel.spec import DataParallelSpec, StrategyName
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.model.moe import MoeSpec
from fabrictune.trainer_probe.optimizers.spec import OptimizerSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.recipes.schema import Recipe, SyntheticSource
from fabrictune.trainer_probe.training.local import train_locally
from fabrictune.trainer_probe.training.outcome import training_table
from fabrictune.trainer_probe.training.progress import StepReport
from tests.patience import patience

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.data.batches import Batches
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.experts import RoutingSums, balance_loss, dispatch, route
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.model.weights import Capacity
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.planning.dry_run import join_alone
from fabrictune.trainer_probe.policies import POLICIES
from fabrictune.trainer_probe.state.pieces import VALUE, Piece, PieceTable
from fabrictune.trainer_probe.state.train_state import TrainState, join
from fabrictune.trainer_probe.training.hardware import device_of
from fabrictune.trainer_probe.training.input_pipeline import make_batches
from fabrictune.trainer_probe.training.training import Training
from tests.trainer_probe.optimizers.flat_models import comm_of_one

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

MODEL = MoeSpec(
    width=16,
    depth=2,
    num_heads=4,
    num_key_value_heads=2,
    feed_forward_width=12,
    vocabulary=64,
    sequence=16,
    num_experts=4,
    capacity_factor=1.0,
)
ALONE = ParallelLayout()
DIVIDED = ParallelLayout(tp=2, dp=4, ep=2)
SAMPLES = 8  # of a step


def make_recipe(layout: ParallelLayout, strategy: StrategyName = "zero1") -> Recipe:
    return Recipe(
        name="experts",
        model=MODEL,
        degrees=Degrees(layout=layout, num_batches=SAMPLES // layout.dp, expert_chunks=2 if layout.ep > 1 else 1),
        optimizer=OptimizerSpec(name="lamb", max_gradient_norm=0.5, epsilon=1e-6),
        precision="float64",
        data_parallel=DataParallelSpec(strategy=strategy),
        data=Chosen(name="synthetic", spec=SyntheticSource(num_tokens=4096)),
        num_steps=3,
        num_traced_steps=1,
    )


@cache
def reports_of(layout: ParallelLayout, strategy: StrategyName = "zero1") -> tuple[StepReport, ...]:
    outcome = train_locally(make_recipe(layout, strategy), on_step=lambda report: None, timeout_s=patience(300))
    return outcome.reports


def numbers(report: StepReport) -> list[float]:
    assert report.routing is not None
    return [report.loss, report.gradient_norm, report.routing.balance_loss, report.routing.dropped_fraction]


@pytest.mark.parametrize("strategy", ["ddp", "zero1", "zero3"])
def test_reports_and_updates_are_those_of_one_process(strategy: StrategyName) -> None:
    """Three steps of LAMB with clipping, whose norms are of all of a layer's experts: loss and norm show the updates,
    balance loss and dropped choices the routing of all ranks."""
    for alone, divided in zip(reports_of(ALONE), reports_of(DIVIDED, strategy), strict=True):
        assert alone.gradient_norm > 0.5, "clipped"
        assert alone.routing is not None
        assert 0 < alone.routing.dropped_fraction < 1
        np.testing.assert_allclose(numbers(divided), numbers(alone), rtol=1e-12)


def test_routing_has_columns_of_its_own() -> None:
    """Where a model has experts."""
    reports = reports_of(ALONE)
    table = training_table(reports)
    assert table["balance_loss"].tolist() == [numbers(report)[2] for report in reports]
    assert table["dropped_fraction"].tolist() == [numbers(report)[3] for report in reports]
    assert "balance_loss" not in training_table([replace(report, routing=None) for report in reports])


def test_sums_count_what_is_dropped_and_what_balance_costs() -> None:
    """Eight tokens of two samples choose expert 0 first and 1 second; two slots each leave 4 of 8 choices a sample.

    Loads of a half and a half, and probabilities that sum to 4 over each sample's 4 tokens: 4 (1/2) (p0 + p1) 4.
    """
    logits_PBX = torch.tensor([2.0, 1.0, 0.0, 0.0], dtype=torch.float64).expand(4, 2, 4)
    routing = route(logits_PBX, 2)
    dispatched = dispatch(
        torch.ones(4, 2, 3), routing.choice_PBK, routing.gate_PBK, Capacity(num_experts=4, num_slots=2, num_tokens=4)
    )
    sums, p = RoutingSums(), routing.probability_PBX[0, 0].tolist()
    for _ in range(2):
        sums.add(balance_loss(routing, dispatched), routing, dispatched)
    assert sums.numbers() == pytest.approx((2 * 2 * 4 * 0.5 * (p[0] + p[1]) * 4, 16, 16, 32))
    sums.reset()
    assert sums.numbers() == (0, 0, 0, 0)


def run_step(recipe: Recipe, policies: tuple[str, ...], folder: Path, member: "Member") -> dict[str, NDArray[Any]]:
    """Leave the requests of a step under each policy in `folder`."""
    for policy in policies:
        comm = Comm(recipe.degrees.layout, member)
        trainer = ParallelTrainer(MODEL, recipe.degrees, comm, POLICIES[policy])
        ids = torch.zeros(recipe.degrees.num_batches, 1, MODEL.sequence, dtype=torch.int64)
        trainer.run_step(0, [MicroBatch(tokens_BS=batch, targets_BS=batch) for batch in ids], lambda: None)
        comm.trace().write(folder / f"{policy}.{comm.rank}.parquet")
    return {}


def test_overlapped_chunks_are_under_way_while_experts_compute(tmp_path: Path) -> None:
    """The second chunk's request is made before the first has arrived, and the first's results return before the
    second is taken; under another policy each is waited for where it is made."""
    recipe, policies = make_recipe(ParallelLayout(dp=2, ep=2)), ("tp", "ep", "all")
    launch(recipe.degrees.layout, partial(run_step, recipe, policies, tmp_path))
    for policy in policies:
        trace = CommTrace.read(tmp_path / f"{policy}.0.parquet")
        rows = {tag: row for row, tag in enumerate(trace.tag_N) if trace.operation_N[row] == Operation.ALL_TO_ALL}
        assert len(rows) == 4 * 2 * MODEL.depth * recipe.degrees.num_batches, "every request has a name of its own"
        begin = "stage0.batch0.layer0.experts"
        for direction, first, second in (("forward", 0, 1), ("backward", 1, 0)):
            early, late = ("dispatch", "combine") if direction == "forward" else ("combine", "dispatch")
            there = [rows[f"{begin}.{early}.{number}.{direction}"] for number in (first, second)]
            back = [rows[f"{begin}.{late}.{number}.{direction}"] for number in (first, second)]
            assert there < back
            assert (there[0] in trace.dependencies.of(there[1])) == (policy == "tp")
            assert (there[0] in trace.dependencies.of(back[0])) == (policy != "tp"), "else it waits for the second"
            assert (back[0] in trace.dependencies.of(back[1])) == (policy == "tp")


def make_training(recipe: Recipe, tokens: Path, comm: Comm) -> Training:
    return Training(recipe, comm, device_of(recipe), batches=lambda: Batches(recipe.batches(tokens)))


def whole(table: PieceTable) -> dict[str, torch.Tensor]:
    """Whole weights by name."""
    result = {}
    for weight in ChunkSpec(model=MODEL).weights():
        values = {VALUE: torch.full((int(np.prod(weight.shape)),), -1.0, dtype=torch.float64)}
        piece = Piece(weight=weight.name, part=0, begin=0, tensors=values)
        assert table.missing(piece, weight, 1) == ()
        table.fill(piece, weight, 1)
        result[weight.name] = values[VALUE]
    return result


@pytest.mark.parametrize(
    "layout", [DIVIDED, ParallelLayout(dp=4, ep=4), ParallelLayout(tp=2, dp=2, pp=2, ep=2)], ids=str
)
def test_ranks_of_all_experts_take_up_a_state_and_give_it_back(layout: ParallelLayout, tmp_path: Path) -> None:
    """One process' values and moments, to the last bit; and every rank draws the initial values of its experts."""
    tokens = Path(make_batches(make_recipe(ALONE), tmp_path).spec.path)
    alone = make_training(make_recipe(ALONE), tokens, comm_of_one())
    initial = whole(join([alone.state().clone()])[1])
    state, states, drawn = moved(alone.state()), [], []
    for rank in range(layout.world_size):
        with join_alone(layout, rank) as member:
            training = make_training(make_recipe(layout), tokens, Comm(layout, member))
            drawn.append(training.state().clone())
            training.load(state.head, PieceTable(state.pieces, 1))
            states.append(training.state().clone())
    for found, expected in ((drawn, initial), (states, whole(PieceTable(state.pieces, 1)))):
        values = whole(join(found)[1])
        assert all(torch.equal(values[name], tensor) for name, tensor in expected.items())


def moved(state: TrainState) -> TrainState:
    """The state with other values, each another."""
    generator = torch.Generator().manual_seed(0)
    for piece in state.pieces:
        for tensor in piece.tensors.values():
            tensor.copy_(torch.randn(tensor.shape, generator=generator, dtype=torch.float64))
    return state.clone()
