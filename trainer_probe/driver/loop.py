"""The training loop of one rank: batches in, one step after another, a report of each."""

import math
import time
from collections import deque

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.driver.input_pipeline import Feed, Machine, open_feed
from fabrictune.trainer_probe.driver.progress import Monitor, StepReport, StepSums, sum_over_ranks
from fabrictune.trainer_probe.driver.section_timeouts import NUM_RECENT, SectionTimeouts
from fabrictune.trainer_probe.gpus import find_peak
from fabrictune.trainer_probe.model.spec import model_flops_utilisation
from fabrictune.trainer_probe.optimizers.loss_scale import LossScale
from fabrictune.trainer_probe.optimizers.norms import clip
from fabrictune.trainer_probe.optimizers.optimizer import make_optimizer
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.policies import POLICIES
from fabrictune.trainer_probe.recipes.schema import Recipe

SECTION_TIMEOUTS = SectionTimeouts()


def train(recipe: Recipe, comm: Comm, machine: Machine, monitor: Monitor, device: torch.device) -> bool:
    """Train a recipe on a device; returns whether it was stopped before its last step.

    The ledger of `comm` then contains the last `num_traced_steps` steps, or fewer where the run was stopped.
    """
    rank = _Rank(recipe, comm, device, monitor)
    with open_feed(recipe, comm, machine, device) as feed:
        comm.restart_ledger()
        for step in range(recipe.num_steps):
            comm.limit_requests(SECTION_TIMEOUTS.step_s(rank.elapsed_s))
            if (recipe.num_steps - step) % recipe.num_traced_steps == 0:
                comm.forget_requests()
            if rank.run_step(step, feed) and step + 1 < recipe.num_steps:
                return True
    return False


class _Rank:
    """One rank's trainer and optimizer."""

    def __init__(self, recipe: Recipe, comm: Comm, device: torch.device, monitor: Monitor) -> None:
        self._recipe, self._comm, self._monitor = recipe, comm, monitor
        dtype: torch.dtype = getattr(torch, recipe.precision_name)
        policy = POLICIES[recipe.overlap]
        self._trainer = ParallelTrainer(recipe.model, recipe.degrees, comm, policy, dtype, device)
        self._optimizer = make_optimizer(self._trainer.shards, recipe.optimizer, comm)
        self._scale = LossScale.of(dtype)
        self.elapsed_s = deque[float](maxlen=NUM_RECENT)
        self._peak = monitor.peak_flops_per_s or _peak_of(device, recipe)

    def run_step(self, step: int, feed: Feed) -> bool:
        """Run a step and report it; returns whether any rank requests a stop."""
        began_ns, waited_ns = time.perf_counter_ns(), self._comm.exposed_wait_ns()
        learning_rate = self._recipe.schedule.learning_rate(step)
        loss_share, norm = self._update(step, feed, learning_rate)
        exposed_ns = {axis: total - waited_ns.get(axis, 0) for axis, total in self._comm.exposed_wait_ns().items()}
        sums = sum_over_ranks(
            self._comm, loss_share=loss_share, is_stopped=self._monitor.is_stopped(), exposed_ns=exposed_ns
        )
        elapsed_ns = time.perf_counter_ns() - began_ns
        self.elapsed_s.append(elapsed_ns / 1e9)
        self._monitor.on_step(self._report(step, sums, norm, learning_rate, elapsed_ns))
        return sums.num_stop_requests > 0

    def _update(self, step: int, feed: Feed, learning_rate: float) -> tuple[float, float]:
        """Run forward and backward passes and the optimizer; returns this rank's share of the loss, and the norm."""
        scale = 1.0 if self._scale is None else self._scale.value
        norm = math.nan

        def update() -> None:
            nonlocal norm
            max_norm = self._recipe.optimizer.max_gradient_norm
            norm = float(clip(self._trainer.shards, max_norm, self._comm, loss_scale=scale))
            if math.isfinite(norm):
                self._optimizer.step(learning_rate)

        loss_share = float(self._trainer.run_step(step, feed.take, update, loss_scale=scale))
        if self._scale is not None:
            self._scale = self._scale.after(is_finite=math.isfinite(norm))
        return loss_share, norm

    def _report(self, step: int, sums: StepSums, norm: float, learning_rate: float, elapsed_ns: int) -> StepReport:
        tokens_per_s = self._recipe.degrees.samples_per_step * self._recipe.model.sequence * 1e9 / elapsed_ns
        num_ranks = self._comm.layout.world_size
        return StepReport(
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
