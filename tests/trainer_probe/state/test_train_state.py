"""A training that stops after some steps and goes on from its state, against the one that never stopped.

Real processes: each trains without a break, keeps its state half way, and goes on from it with a new trainer.
Every rank of other layouts, alone in this process, then takes up the states.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune.foundation.errors import InputError
from fabrictune.trainer_probe.data_parallel.spec import DataParallelSpec
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.data.batches import Batches
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.model.weights import WeightSpec
from fabrictune.trainer_probe.planning.dry_run import join_alone
from fabrictune.trainer_probe.state.pieces import VALUE, Piece, PieceSource, PieceTable
from fabrictune.trainer_probe.state.train_state import StateHead, TrainState, join
from fabrictune.trainer_probe.training.hardware import device_of
from fabrictune.trainer_probe.training.hooks import Hook, Run
from fabrictune.trainer_probe.training.input_pipeline import make_batches
from fabrictune.trainer_probe.training.loop import train
from fabrictune.trainer_probe.training.progress import Monitor, StepReport
from fabrictune.trainer_probe.training.training import Training
from tests.patience import patience
from tests.trainer_probe.optimizers.flat_models import comm_of_one
from tests.trainer_probe.training.alone import machine_of_one, small

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

HALF, WHOLE = 2, 4  # steps
PRECISIONS = ("float64", "float32", "bfloat16", "float16")
LAYOUT = {"tp": 2, "pp": 2, "dp": 2}
CASES = (
    *((optimizer, precision, "zero1") for optimizer in ("adamw", "lamb") for precision in PRECISIONS),
    *(("adamw", "bfloat16", strategy) for strategy in ("ddp", "zero2", "zero3")),
    ("adamw", "bfloat16", "zero1", "experts"),
    ("lamb", "float64", "zero3", "experts"),
)
CHANGES: Mapping[str, object] = {
    "model": {"width": 16, "depth": 4, "num_heads": 4, "vocabulary": 60, "sequence": 8, "block": "serial"},
    "degrees": {"layout": LAYOUT, "virtual": 2, "num_batches": 2, "batch_size": 1},
    "data": {"source": "synthetic", "num_tokens": 4001},
    "schedule": {"peak": 0.01, "num_steps": 6, "num_warmup_steps": 1},
    "num_steps": WHOLE,
}
MIXTURE: Mapping[str, object] = {
    "family": "moe",
    "width": 16,
    "depth": 4,
    "num_heads": 4,
    "num_key_value_heads": 2,
    "num_experts": 4,
    "feed_forward_width": 12,
    "vocabulary": 60,
    "sequence": 8,
}
EXPERTS: Mapping[str, object] = {  # with ranks that share sequences and ranks that share experts
    "model": {**MIXTURE, "token_groups": 4},
    "degrees": {"layout": {"tp": 2, "cp": 2, "dp": 2, "ep": 2}, "num_batches": 2, "expert_chunks": 2},
}
OTHER_LAYOUTS: Mapping[str, Mapping[str, object]] = {
    "one process ddp": {"layout": {}},
    "tp4 dp3 zero1": {"layout": {"tp": 4, "dp": 3}},
    "tp2 dp3 zero3": {"layout": {"tp": 2, "dp": 3}},
    "cp2 dp2 zero2": {"layout": {"cp": 2, "dp": 2}},
    "dp3 ddp": {"layout": {"dp": 3}},
    "pp4 zero2": {"layout": {"pp": 4}, "num_batches": 4},
    "pp2 v2 dp5 zero1": {"layout": {"pp": 2, "dp": 5}, "virtual": 2, "num_batches": 2},
}
Arrays = dict[str, NDArray[Any]]


def recipe_of(
    optimizer: str, precision: str, strategy: str = "zero1", model: str = "gpt", *, degrees: object = None
) -> Recipe:
    changes = {**CHANGES, "optimizer": {"name": optimizer}, "precision": precision}
    changes |= EXPERTS if model == "experts" else {}
    changes["data_parallel.strategy"] = strategy
    if precision == "float16":
        changes["schedule.peak"] = 1.0  # after the first step gradients overflow
    return load_recipe(find_recipe("tiny"), changes if degrees is None else {**changes, "degrees": degrees})


class Cutting:
    """A rank's micro-batches of the steps from a place on."""

    def __init__(self, recipe: Recipe, tokens: Path, comm: Comm, place: int) -> None:
        self.batches = Batches(recipe.batches(tokens))
        self.place, self.degrees = place, recipe.degrees
        self.replica = comm.members("dp").index(comm.rank)

    def take(self) -> list[MicroBatch]:
        ids_RC = np.zeros((self.batches.spec.rows, self.batches.spec.sequence_length + 1), np.int64)
        self.batches.read(self.place, self.replica, ids_RC)
        self.place += self.degrees.samples_per_step
        parts = torch.from_numpy(ids_RC).split(self.degrees.batch_size)
        return [MicroBatch(tokens_BS=part[:, :-1], targets_BS=part[:, 1:]) for part in parts]


def make_training(recipe: Recipe, tokens: Path, comm: Comm) -> Training:
    return Training(recipe, comm, device_of(recipe), batches=lambda: Batches(recipe.batches(tokens)))


def numbers(report: StepReport) -> list[float]:
    """All of a report but times."""
    return [report.step, report.loss, report.gradient_norm, report.learning_rate, report.loss_scale]


def arrays(prefix: str, state: TrainState) -> Arrays:
    return {
        f"{prefix}/{piece.weight}/{piece.part}/{piece.begin}/{name}": tensor.numpy()
        for piece in state.pieces
        for name, tensor in piece.tensors.items()
    }


def stop_and_go_on(tokens: Path, cases: Sequence[tuple[str, ...]], member: "Member") -> Arrays:
    """Train without a break and with one in the middle; returns reports, states half way and final ones."""
    found: Arrays = {}
    for names in cases:
        recipe, case = recipe_of(*names), "/".join(names)
        comm = Comm(recipe.degrees.layout, member)
        training = make_training(recipe, tokens, comm)
        feed = Cutting(recipe, tokens, comm, training.place)
        reports = [training.run_step(feed.take).report for _ in range(HALF)]
        state = training.state().clone()
        reports += [training.run_step(feed.take).report for _ in range(HALF, WHOLE)]
        again = make_training(recipe, tokens, Comm(recipe.degrees.layout, member))
        again.load(StateHead.from_json(state.head.to_json()), PieceTable(state.pieces, state.head.tp))
        feed = Cutting(recipe, tokens, comm, again.place)
        later = [again.run_step(feed.take).report for _ in range(HALF, WHOLE)]
        found |= arrays(f"{case}/half", state)
        found |= arrays(f"{case}/end", training.state()) | arrays(f"{case}/end again", again.state())
        found[f"{case}/reports"] = np.array([numbers(report) for report in reports])
        found[f"{case}/later"] = np.array([numbers(report) for report in later])
        found[f"{case}/progress"] = np.array([state.head.step, state.head.num_updates, state.head.data["place"]])
        assert training.state().head == again.state().head
    return found


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of synthetic tokens."""
    return Path(make_batches(recipe_of("adamw", "float32"), tmp_path_factory.mktemp("tokens")).spec.path)


@cache
def trained(tokens: Path) -> Sequence[Arrays]:
    """What each rank found, all cases of a layout in one start of the processes."""
    found: list[Arrays] = [{} for _ in range(8)]
    for layout, cases in groupby(CASES, lambda case: recipe_of(*case).degrees.layout):
        ranks = launch(layout, partial(stop_and_go_on, tokens, list(cases)), timeout_s=patience(300))
        for every, own in zip(found, ranks, strict=True):
            every |= own
    return found


def states_of(tokens: Path, case: str, moment: str) -> PieceTable:
    """The pieces of all ranks."""
    pieces: dict[tuple[int, str, int, int], dict[str, torch.Tensor]] = {}
    for rank, found in enumerate(trained(tokens)):
        for key, array in found.items():
            if key.startswith(f"{case}/{moment}/"):
                weight, part, begin, name = key.removeprefix(f"{case}/{moment}/").split("/")
                pieces.setdefault((rank, weight, int(part), int(begin)), {})[name] = torch.from_numpy(array)
    found_pieces = [
        Piece(weight=weight, part=part, begin=begin, tensors=tensors)
        for (_, weight, part, begin), tensors in pieces.items()
    ]
    return PieceTable(found_pieces, LAYOUT["tp"])


def whole(recipe: Recipe, table: PieceTable) -> dict[str, torch.Tensor]:
    """Whole weights and moments by name."""
    result: dict[str, torch.Tensor] = {}
    for weight in ChunkSpec(model=recipe.model).weights():
        count = int(np.prod(weight.shape))
        kind = torch.float64 if recipe.precision == "float64" else torch.float32
        tensors = {name: torch.full((count,), -1.0, dtype=kind) for name in (VALUE, "first_moment", "second_moment")}
        piece = Piece(weight=weight.name, part=0, begin=0, tensors=tensors)
        assert table.missing(piece, weight, 1) == ()
        table.fill(piece, weight, 1)
        result |= {f"{weight.name} {name}": tensor for name, tensor in tensors.items()}
    return result


@pytest.mark.parametrize("case", ["/".join(case) for case in CASES])
def test_a_training_goes_on_bit_by_bit(tokens: Path, case: str) -> None:
    """Reports, values and moments of the steps after the break, on eight ranks: tp 2, pp 2 with 2 chunks, dp 2.

    Experts are on tp 2, cp 2, dp 2 with ep 2.
    """
    for found in trained(tokens):
        assert found[f"{case}/later"].tolist() == found[f"{case}/reports"][HALF:].tolist()
        ends = {key: array for key, array in found.items() if key.startswith(f"{case}/end/")}
        assert len(ends) > 20
        for key, array in ends.items():
            np.testing.assert_array_equal(found[key.replace("/end/", "/end again/")], array, err_msg=key, strict=True)
        step, num_updates, place = found[f"{case}/progress"].tolist()
        finite = np.isfinite(found[f"{case}/reports"][:HALF, 2])
        assert (step, num_updates, place) == (HALF, finite.sum(), HALF * 4)
        if "float64" in case:
            assert finite.all()
            assert len({tuple(row[1:4]) for row in found[f"{case}/reports"].tolist()}) == WHOLE  # every step differs


def test_a_loss_scale_goes_on(tokens: Path) -> None:
    """Gradients times 65,536 overflow in the second step, which is skipped: one update, and half of the scale."""
    found = trained(tokens)[0]
    assert found["adamw/float16/zero1/reports"][:3, 4].tolist() == [2.0**16, 2.0**16, 2.0**15]
    assert found["adamw/float16/zero1/later"][0, 4] == 2.0**15
    assert found["adamw/float16/zero1/progress"][:2].tolist() == [HALF, 1]
    assert found["adamw/bfloat16/zero1/reports"][:, 4].tolist() == [1.0] * WHOLE


@pytest.mark.parametrize("layout", OTHER_LAYOUTS)
@pytest.mark.parametrize("case", ["adamw/float64/zero1", "lamb/bfloat16/zero1", "adamw/bfloat16/zero3"])
def test_another_layout_takes_up_the_same_whole_state(tokens: Path, case: str, layout: str) -> None:
    """Every rank of the other layout, its padding too, and back to whole weights: 0 ulp in values and moments."""
    source = states_of(tokens, case, "half")
    optimizer, precision, _ = case.split("/")
    recipe = recipe_of(optimizer, precision, layout.split()[-1], degrees=OTHER_LAYOUTS[layout])
    expected = whole(recipe, source)
    states = []
    for rank in range(recipe.degrees.layout.world_size):
        with join_alone(recipe.degrees.layout, rank) as member:
            training = make_training(recipe, tokens, Comm(recipe.degrees.layout, member))
            head = replace(training.state().head, step=HALF, num_updates=HALF)
            training.load(head, source)
            states.append(training.state().clone())
    head, table = join(states)
    assert (head.step, head.num_updates) == (HALF, HALF)
    found = whole(recipe, table)
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    assert len(expected) == 3 * len(ChunkSpec(model=recipe.model).weights())


class Numbered:
    """A source in which each element of each tensor of each weight is a number of its own."""

    def missing(self, *_: object) -> tuple[str, ...]:
        return ()

    def fill(self, piece: Piece, weight: WeightSpec, tp: int) -> None:
        for number, name in enumerate(sorted(piece.tensors)):
            whole = torch.arange(int(np.prod(weight.shape)), dtype=torch.float64).view(weight.shape) + 0.25 * number
            own = weight.local_part(whole, tp, piece.part).flatten()
            piece.tensors[name].copy_(own[piece.begin : piece.end])


def test_experts_and_all_else_move_from_layout_to_layout(tokens: Path) -> None:
    """Numbers go through layouts with other experts on a rank and other strategies, and come out as they went in."""
    layouts: Sequence[tuple[Mapping[str, object], str]] = (
        ({"layout": {"tp": 2, "dp": 4, "ep": 2}}, "zero1"),
        ({"layout": {"pp": 2, "dp": 4, "ep": 4}, "virtual": 2, "num_batches": 2}, "zero2"),
        ({"layout": {"tp": 2, "pp": 2, "dp": 2}}, "zero3"),
        ({"layout": {}}, "ddp"),
    )
    source: PieceSource = Numbered()
    for degrees, strategy in layouts:
        recipe = load_recipe(find_recipe("tiny"), {**CHANGES, "model": MIXTURE, "degrees": degrees})
        recipe = replace(recipe, data_parallel=DataParallelSpec(strategy=strategy))  # type: ignore[arg-type]  # a name
        states = []
        for rank in range(recipe.degrees.layout.world_size):
            with join_alone(recipe.degrees.layout, rank) as member:
                training = make_training(recipe, tokens, Comm(recipe.degrees.layout, member))
                training.load(training.state().head, source)
                states.append(training.state().clone())
        source = join(states)[1]
    found = whole(recipe, join(states)[1])
    for weight in ChunkSpec(model=recipe.model).weights():
        count = int(np.prod(weight.shape))
        for number, name in enumerate(("first_moment", "second_moment", VALUE)):
            assert found[f"{weight.name} {name}"].tolist() == [place + 0.25 * number for place in range(count)]


def test_a_run_counts_its_steps_from_a_state(tmp_path: Path) -> None:
    """Four steps at once, or two, and a run of the same recipe that takes up the state and has the same last step."""
    recipe = small({"schedule": {"peak": 0.02, "num_steps": 4}, "num_traced_steps": 1})
    states: list[TrainState] = []
    reports: list[StepReport] = []

    def keep(training: Run, report: StepReport) -> None:
        if training.step == HALF:
            states.append(training.state().clone())

    watch = Monitor(on_step=reports.append, is_stopped=lambda: False)
    machine, device = machine_of_one(recipe, tmp_path), device_of(recipe)
    train(recipe, comm_of_one(), machine, watch, device, hooks=[Hook(after_step=keep)])
    comm = comm_of_one()
    train(recipe, comm, replace(machine, job="again"), watch, device, state=join(states))
    assert [report.step for report in reports] == [0, 1, 2, 3, 2, 3]
    assert [numbers(report) for report in reports[HALF:WHOLE]] == [numbers(report) for report in reports[WHOLE:]]
    assert set(comm.trace().step_N.tolist()) == {3}


def test_a_recipe_may_begin_at_a_step(tmp_path: Path) -> None:
    """Step 2 has the learning rate and the samples of step 2: the first sample is 2 times 4 unless given."""
    reports: list[StepReport] = []
    recipe = small({"schedule": {"peak": 0.02, "num_steps": 4}, "first_step": 2, "num_steps": 2})
    watch = Monitor(on_step=reports.append, is_stopped=lambda: False)
    train(recipe, comm_of_one(), machine_of_one(recipe, tmp_path), watch, device_of(recipe))
    assert [report.step for report in reports] == [2, 3]
    assert [report.learning_rate for report in reports] == [recipe.schedule.learning_rate(step) for step in (2, 3)]
    assert recipe.first_place == 8
    assert small({"first_step": 2, "first_sample": 5}).first_place == 5


def test_a_state_of_another_training_is_refused_with_all_mistakes(tmp_path: Path) -> None:
    """Another width, optimizer, precision, order of samples; and nothing has changed in the trainer."""
    recipe = small()
    batches = make_batches(recipe, tmp_path)
    training = make_training(recipe, Path(batches.spec.path), comm_of_one())
    state = training.state().clone()
    settings = {**state.head.settings, "model.width": 32, "optimizer.name": "lamb", "schedule.peak": 1.0}
    data = {**state.head.data, "seed": 7}
    other = replace(state.head, settings=settings, master_precision="float64", data=data)
    with pytest.raises(InputError) as raised:
        training.load(other, PieceTable(state.pieces, 1))
    assert str(raised.value) == "\n".join(
        (
            "state: model.width: 32",
            "  allowed: 16, as in tiny",
            "  next: resume with the recipe of the earlier run",
            "state: optimizer.name: lamb",
            "  allowed: adamw, as in tiny",
            "  next: resume with the recipe of the earlier run",
            "state: precision of master values: float64",
            "  allowed: float32, as in tiny",
            "  next: resume with the recipe of the earlier run",
            "state of the data: seed: 0",
            "  allowed: 7, as when the state was saved",
            "  next: resume with the token file and settings of the earlier run",
        )
    )
    with pytest.raises(InputError, match="state: pieces: not there: "):
        training.load(state.head, PieceTable(state.pieces[1:], 1))
    with pytest.raises(InputError, match="states of the ranks: of steps 5 too"):
        join([state, replace(state, head=replace(state.head, step=5))])
