"""The training loop of one rank: batches in, one step after another, a report of each."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch

from fabrictune.foundation.spans import SpanKind
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.data.batches import Batches
from fabrictune.trainer_probe.gpus import find_peak
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.spans.garbage import collected_together
from fabrictune.trainer_probe.spans.recorder import SpanRecorder, recording
from fabrictune.trainer_probe.state.pieces import PieceSource
from fabrictune.trainer_probe.state.train_state import StateHead
from fabrictune.trainer_probe.training.hooks import Hook, Run, Take
from fabrictune.trainer_probe.training.input_pipeline import Machine, open_feed
from fabrictune.trainer_probe.training.progress import Monitor, StepReport
from fabrictune.trainer_probe.training.section_timeouts import NUM_RECENT, SectionTimeouts
from fabrictune.trainer_probe.training.training import Training
from fabrictune.trainer_probe.training.weights import export_weights, load_weights

SECTION_TIMEOUTS = SectionTimeouts()


def train(
    recipe: Recipe,
    comm: Comm,
    machine: Machine,
    monitor: Monitor,
    device: torch.device,
    *,
    hooks: Sequence[Hook] = (),
    state: tuple[StateHead, PieceSource] | None = None,
    restore: Callable[[Training], bool] = lambda training: False,
    export: Path | None = None,
    timeouts: SectionTimeouts = SECTION_TIMEOUTS,
    at_end: Callable[[Run], None] | None = None,
    spans: Path | None = None,
) -> bool:
    """Train a recipe on a device; returns whether it was stopped before its last step.

    With a state, which all ranks give, the run goes on from there to the recipe's last step; so does it where `restore`
    has loaded one and returns True. With a folder to export to, rank 0 writes the weights there at the end, as a
    Hugging Face checkpoint. This rank's spans are written to the folder `spans`, if given. `at_end` is called after the
    last step or a stop, on every rank. Afterwards the ledger of `comm` contains the last `num_traced_steps` steps, or
    fewer where the run was stopped. Raises the errors of `Training.load`.
    """
    with ExitStack() as stack:
        collect = stack.enter_context(collected_together(recipe.collect_garbage_every))
        recorder = None if spans is None else stack.enter_context(recording(comm, spans))
        hooks = (collect, request_limits(comm, timeouts), *hooks, reports(monitor))
        training = Training(
            recipe,
            comm,
            device,
            batches=lambda: Batches(recipe.batches(machine.tokens)),
            hooks=hooks if recorder is None else recorder.around(hooks),
            is_stopped=monitor.is_stopped,
            peak_flops_per_s=monitor.peak_flops_per_s or _peak_of(device, recipe),
        )
        if state is not None:
            training.load(*state)
        elif not restore(training):
            load_weights(training)
        was_stopped = _run_steps(training, machine, device, recorder)
    if recorder is not None and recorder.failure is not None and comm.rank == 0:
        monitor.on_note(recorder.failure)
    if at_end is not None:
        at_end(training)
    if export is not None:
        export_weights(training, export)
    return was_stopped


def _run_steps(training: Training, machine: Machine, device: torch.device, recorder: SpanRecorder | None) -> bool:
    """Run the steps up to the recipe's last one; returns whether they were stopped before."""
    recipe, comm = training.recipe, training.comm
    with open_feed(recipe, comm, machine, device, first_place=training.place) as feed:
        comm.restart_ledger()
        take: Take = feed.take
        if recorder is not None:
            recorder.begin()
            take = recorder.timed(SpanKind.LOADER, feed.take)
        for step in range(training.step, recipe.end_step):
            if (recipe.end_step - step) % recipe.num_traced_steps == 0:
                comm.forget_requests()
            if training.run_step(take).is_stopped and step + 1 < recipe.end_step:
                return True
    return False


def request_limits(comm: Comm, timeouts: SectionTimeouts = SECTION_TIMEOUTS) -> Hook:
    """Return the hook that limits the requests of each step by the time that earlier ones took."""
    elapsed_s = deque[float](maxlen=NUM_RECENT)

    def limit(run: Run, step: int) -> None:
        comm.limit_requests(timeouts.step_s(elapsed_s))

    def note(run: Run, report: StepReport) -> None:
        elapsed_s.append(report.elapsed_ns / 1e9)

    return Hook(before_step=limit, after_step=note)


def reports(monitor: Monitor) -> Hook:
    """Return the hook that gives a monitor each step's report."""
    return Hook(after_step=lambda run, report: monitor.on_step(report))


def _peak_of(device: torch.device, recipe: Recipe) -> float | None:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "a CPU"
    return find_peak(name, recipe.precision_name)
