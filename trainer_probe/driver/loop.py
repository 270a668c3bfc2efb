"""The training loop of one rank: batches in, one step after another, a report of each."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.driver.device_peaks import find_peak
from fabrictune.trainer_probe.driver.input_pipeline import Feed, Machine, feeding
from fabrictune.trainer_probe.driver.reports import StepReport, add_up
from fabrictune.trainer_probe.model.counts import model_flops_utilisation
from fabrictune.trainer_probe.optimizers.clipping import clip
from fabrictune.trainer_probe.optimizers.loss_scale import LossScale
from fabrictune.trainer_probe.optimizers.optimizer import make_optimizer
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.policies import POLICIES
from fabrictune.trainer_probe.recipes.schema import Recipe


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What is told of a run while it goes on, and what it is asked."""

    tell: Callable[[StepReport], None]  # called on every rank, with the same numbers
    is_stopped: Callable[[], bool]  # asked on every rank; one that says so ends the run of all after the step
    peak_flops_per_s: float | None = None  # of one device; looked up by its name where not given


def train(recipe: Recipe, comm: Comm, machine: Machine, watch: Watch) -> bool:
    """Train as the recipe says; returns whether it was stopped before its last step.

    The communicator's ledger then holds the last `num_traced_steps` steps, and at most as many where it was stopped.
    """
    device = torch.device(recipe.device)
    rank = _Rank(recipe, comm, device, watch)
    with feeding(recipe, comm, machine, device) as feed:
        comm.restart_ledger()
        for step in range(recipe.num_steps):
            if (recipe.num_steps - step) % recipe.num_traced_steps == 0:
                comm.forget_requests()
            if rank.run_step(step, feed) and step + 1 < recipe.num_steps:
                return True
    return False


class _Rank:
    """One rank's trainer and optimizer."""

    def __init__(self, recipe: Recipe, comm: Comm, device: torch.device, watch: Watch) -> None:
        self._recipe, self._comm, self._watch = recipe, comm, watch
        dtype: torch.dtype = getattr(torch, recipe.precision_name)
        policy = POLICIES[recipe.overlap]
        self._trainer = ParallelTrainer(recipe.model, recipe.degrees, comm, policy, dtype, device)
        self._optimizer = make_optimizer(self._trainer.shards, recipe.optimizer, comm)
        self._scale = LossScale.of(dtype)
        self._peak = watch.peak_flops_per_s or _peak_of(device, recipe)

    def run_step(self, step: int, feed: Feed) -> bool:
        """Run a step and report it; returns whether anybody asked to stop."""
        began_ns, waited_ns = time.perf_counter_ns(), self._comm.exposed_wait_ns()
        scale = 1.0 if self._scale is None else self._scale.value
        learning_rate, norm = self._recipe.schedule.learning_rate(step), math.nan

        def update() -> None:
            nonlocal norm
            norm = float(
                clip(self._trainer.shards, self._recipe.optimizer.max_gradient_norm, self._comm, loss_scale=scale)
            )
            if math.isfinite(norm):
                self._optimizer.step(learning_rate)

        share = float(self._trainer.run_step(step, feed.take(), update, loss_scale=scale))
        exposed_ns = {axis: total - waited_ns.get(axis, 0) for axis, total in self._comm.exposed_wait_ns().items()}
        if self._scale is not None:
            self._scale = self._scale.after(is_finite=math.isfinite(norm))
        sums = add_up(self._comm, loss_share=share, asks_to_stop=self._watch.is_stopped(), exposed_ns=exposed_ns)
        elapsed_ns = time.perf_counter_ns() - began_ns
        num_ranks = self._comm.layout.world_size
        tokens_per_s = self._recipe.degrees.samples_per_step * self._recipe.model.sequence * 1e9 / elapsed_ns
        self._watch.tell(
            StepReport(
                step=step,
                loss=sums.loss,
                gradient_norm=norm,
                learning_rate=learning_rate,
                is_skipped=not math.isfinite(norm),
                elapsed_ns=elapsed_ns,
                tokens_per_s=tokens_per_s,
                mfu_fraction=self._utilisation(tokens_per_s),
                exposed_ns={axis: round(total / num_ranks) for axis, total in sums.exposed_ns.items()},
            )
        )
        return sums.num_stop_requests > 0

    def _utilisation(self, tokens_per_s: float) -> float:
        if self._peak is None:
            return math.nan
        return model_flops_utilisation(
            self._recipe.model,
            tokens_per_s=tokens_per_s,
            num_gpus=self._comm.layout.world_size,
            peak_flops_per_s=self._peak,
        )


def _peak_of(device: torch.device, recipe: Recipe) -> float | None:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "a CPU"
    return find_peak(name, recipe.precision_name)
