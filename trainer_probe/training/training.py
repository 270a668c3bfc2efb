"""One rank's training: trainer, optimizer and loss scale, stepped, reported, and taken or taken up as a state."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import torch

from fabrictune.foundation.errors import InputError
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.data.batches import Batches
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.spec import model_flops_utilisation
from fabrictune.trainer_probe.model.weights import WeightSpec
from fabrictune.trainer_probe.optimizers.loss_scale import LossScale
from fabrictune.trainer_probe.optimizers.norms import clip_factor
from fabrictune.trainer_probe.optimizers.optimizer import make_optimizer
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.policies import POLICIES
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.state.pieces import VALUE, Piece, PieceSource, pieces_of
from fabrictune.trainer_probe.state.train_state import StateHead, TrainState, check_head, missing_pieces
from fabrictune.trainer_probe.training.hooks import Hook, Hooks, Take
from fabrictune.trainer_probe.training.progress import StepReport, StepSums, sum_over_ranks

NUM_UPDATES = "num_steps"  # the optimizer's name for it


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """A step of one rank, and whether any rank requests a stop."""

    report: StepReport
    is_stopped: bool


class Training:
    """One rank of a recipe's training, made by all ranks at once.

    `step` is the number of the next step and `place` its first sample's in the order of samples.
    """

    def __init__(
        self,
        recipe: Recipe,
        comm: Comm,
        device: torch.device,
        *,
        batches: Callable[[], Batches],
        hooks: Iterable[Hook] = (),
        is_stopped: Callable[[], bool] = lambda: False,
        peak_flops_per_s: float | None = None,
    ) -> None:
        self.recipe, self.comm = recipe, comm
        self.step, self.place = recipe.first_step, recipe.first_place
        self._batches, self._is_stopped, self._peak = batches, is_stopped, peak_flops_per_s
        self._hooks = Hooks(hooks)
        dtype: torch.dtype = getattr(torch, recipe.precision_name)
        self._trainer = ParallelTrainer(
            recipe.model,
            recipe.degrees,
            comm,
            POLICIES[recipe.overlap],
            dtype,
            device,
            self._hooks.passes_of,
            recipe.data_parallel,
            recipe.recompute,
            recipe.compile,
        )
        self._optimizer = make_optimizer(self._trainer.shards, recipe.optimizer, comm)
        self._scale = LossScale.of(dtype)

    def run_step(self, take: Take) -> StepResult:
        """Run the next step on the micro-batches that `take` returns, with the hooks around it."""
        for before in self._hooks.before_step:
            before(self, self.step)
        began_ns, waited_ns = time.perf_counter_ns(), self.comm.exposed_wait_ns()
        scale, learning_rate = self._scale, self.recipe.schedule.learning_rate(self.step)
        loss_share, norm = self._update(self._hooks.take_of(take), learning_rate)
        exposed_ns = {axis: total - waited_ns.get(axis, 0) for axis, total in self.comm.exposed_wait_ns().items()}
        sums = sum_over_ranks(
            self.comm,
            loss_share=loss_share,
            is_stopped=self._is_stopped(),
            is_busy=self._hooks.is_busy(),
            exposed_ns=exposed_ns,
            routing_sums=self._trainer.routing_sums,
        )
        report = self._report(sums, norm, learning_rate, scale, time.perf_counter_ns() - began_ns)
        self.step += 1
        self.place += self.recipe.degrees.samples_per_step
        for after in self._hooks.after_step:
            after(self, report)
        return StepResult(report=report, is_stopped=sums.num_stop_requests > 0)

    def state(self) -> TrainState:
        """Return this rank's state between two steps; its tensors are views, good until the next step."""
        return TrainState(head=self.head(), pieces=self.pieces())

    def head(self) -> StateHead:
        """Return the part of the state that all ranks share, between two steps."""
        scale = self._scale
        return StateHead(
            step=self.step,
            num_updates=int(self._optimizer.moments.state()[NUM_UPDATES]),
            loss_scale=None if scale is None else scale.value,
            num_good_steps=0 if scale is None else scale.num_good_steps,
            data=self._batches().state(self.place),
            master_precision=self._master_precision(),
            settings=self.recipe.settings(),
        )

    def load(self, head: StateHead, source: PieceSource) -> None:
        """Go on from a state of any layout; raises InputError, with all mistakes, and then nothing has changed.

        A loss scale that the state lacks begins anew.
        """
        pieces, tp = self.pieces(), self.comm.layout.tp
        weights = self._weights()
        mistakes = list(check_head(head, self.recipe, self._master_precision()))
        if not mistakes:
            missing = (text for piece in pieces for text in source.missing(piece, weights[piece.weight], tp))
            mistakes += missing_pieces(missing)
        try:
            place = self._batches().resume(head.data)
        except InputError as error:
            mistakes += error.mistakes
        if mistakes:
            raise InputError(*mistakes)
        with torch.no_grad():
            for piece in pieces:
                source.fill(piece, weights[piece.weight], tp)
        moments = self._optimizer.moments
        moments.load({**moments.state(), NUM_UPDATES: torch.tensor(head.num_updates)})
        self.step, self.place = head.step, place
        if self._scale is not None:
            self._scale = head.scale() or self._scale

    def load_values(self, source: PieceSource) -> None:
        """Begin with a source's master values in the place of the initial ones; raises InputError for missing ones."""
        weights, tp = self._weights(), self.comm.layout.tp
        pieces = [replace(piece, tensors={VALUE: piece.tensors[VALUE]}) for piece in self.pieces()]
        missing = (text for piece in pieces for text in source.missing(piece, weights[piece.weight], tp))
        if mistakes := list(missing_pieces(missing)):
            raise InputError(*mistakes)
        with torch.no_grad():
            for piece in pieces:
                source.fill(piece, weights[piece.weight], tp)

    def complete(self) -> None:
        """Gather all values, so that every rank has its stages' whole weights."""
        self._trainer.complete()

    def pieces(self) -> tuple[Piece, ...]:
        """Return this rank's master values and moments, views of its storage."""
        place = self.comm.members("tp").index(self.comm.rank)
        return pieces_of(self._trainer.shards, self._optimizer.moments.state(), place)

    def _weights(self) -> dict[str, WeightSpec]:
        """Return the model's whole weights by name."""
        return {weight.name: weight for weight in ChunkSpec(model=self.recipe.model).weights()}

    def _master_precision(self) -> str:
        return str(self._trainer.shards[0].values_E.dtype).removeprefix("torch.")

    def _update(self, take: Take, learning_rate: float) -> tuple[float, float]:
        """Run forward and backward passes and the optimizer; returns this rank's share of the loss, and the norm."""
        scale = 1.0 if self._scale is None else self._scale.value
        norm = math.nan

        def update() -> None:
            nonlocal norm
            for before in self._hooks.before_update:
                before(self)
            max_norm = self.recipe.optimizer.max_gradient_norm
            whole, factor = clip_factor(self._trainer.shards, max_norm, self.comm, loss_scale=scale)
            norm = float(whole)
            if math.isfinite(norm):
                self._optimizer.step(learning_rate, factor)
            for after in self._hooks.after_update:
                after(self)

        loss_share = float(self._trainer.run_step(self.step, take, update, loss_scale=scale))
        if self._scale is not None:
            self._scale = self._scale.after(is_finite=math.isfinite(norm))
        return loss_share, norm

    def _report(
        self, sums: StepSums, norm: float, learning_rate: float, scale: LossScale | None, elapsed_ns: int
    ) -> StepReport:
        tokens_per_s = self.recipe.degrees.samples_per_step * self.recipe.model.sequence * 1e9 / elapsed_ns
        num_ranks = self.comm.layout.world_size
        return StepReport(
            step=self.step,
            loss=sums.loss,
            gradient_norm=norm,
            learning_rate=learning_rate,
            loss_scale=1.0 if scale is None else scale.value,
            is_skipped=not math.isfinite(norm),
            elapsed_ns=elapsed_ns,
            tokens_per_s=tokens_per_s,
            mfu_fraction=self._utilisation(tokens_per_s),
            exposed_ns={axis: round(total / num_ranks) for axis, total in sums.exposed_ns.items()},
            routing=sums.routing,
            num_busy=sums.num_busy,
        )

    def _utilisation(self, tokens_per_s: float) -> float:
        if self._peak is None:
            return math.nan
        return model_flops_utilisation(
            self.recipe.model,
            tokens_per_s=tokens_per_s,
            num_gpus=self.comm.layout.world_size,
            peak_flops_per_s=self._peak,
        )
