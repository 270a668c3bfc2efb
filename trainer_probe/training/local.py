"""A training run whose ranks are processes of this machine, started by our own launcher."""

import multiprocessing
import signal
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fabrictune.foundation.errors import InputError, Mistake, UnavailableError
from fabrictune.foundation.temporary_folders import temporary_folder
from fabrictune.foundation.traces import CommTrace
from fabrictune.trainer_probe.checkpoint.running import CheckpointSettings
from fabrictune.trainer_probe.data.batches import Batches
from fabrictune.trainer_probe.launcher.processes import Arrays, launch
from fabrictune.trainer_probe.launcher.relay import relay
from fabrictune.trainer_probe.ledger import merge
from fabrictune.trainer_probe.operation.run_pages import (
    create_run_page,
    remove_old_pages,
    remove_run_pages,
    run_pages,
)
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.hardware import check_device, device_of
from fabrictune.trainer_probe.training.input_pipeline import Machine, make_batches
from fabrictune.trainer_probe.training.outcome import Outcome
from fabrictune.trainer_probe.training.progress import Channel, Monitor, Note, StepReport, stop_signals
from fabrictune.trainer_probe.training.section_timeouts import SectionTimeouts
from fabrictune.trainer_probe.training.weights import check_weights

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

MAX_RANKS = 256  # processes of one machine

Message = TypeVar("Message")
Work = Callable[["Member", Machine, Channel[Message]], Arrays]  # of a module, or a partial of such


def train_locally(
    recipe: Recipe,
    *,
    on_step: Callable[[StepReport], None],
    timeout_s: float,
    peak_flops_per_s: float | None = None,
    export: Path | None = None,
    checkpoints: CheckpointSettings | None = None,
    on_note: Callable[[str], None] = lambda text: None,
    spans: Path | None = None,
) -> Outcome:
    """Train with a process for each rank, calling `on_step` after each step. Ctrl-C ends the run after a step.

    Its weights are then written to the folder `export`, if given, as a Hugging Face checkpoint. It keeps `checkpoints`,
    and tells `on_note` what it went on from and which were not saved. Its ranks write to the folder `spans`, if given,
    and to pages in memory under its name, which a run that does not end leaves.

    Raises InputError for unusable data and for more than MAX_RANKS ranks, and UnavailableError where torch is missing
    or a rank fails.
    """
    reports: list[StepReport] = []

    def on_message(message: StepReport | Note) -> None:
        if isinstance(message, Note):
            on_note(message.text)
            return
        reports.append(message)
        on_step(message)

    work = partial(_train_rank, recipe, peak_flops_per_s, export, checkpoints, spans)
    remove_old_pages()
    if spans is not None:
        remove_run_pages(run_pages(spans))
    results, batches = run_locally(recipe, work, on_message, timeout_s=timeout_s)
    if spans is not None:
        remove_run_pages(run_pages(spans))
    next_sample = int(results[0]["place"])
    return Outcome(
        reports=tuple(reports),
        trace=merge([CommTrace.from_bytes(result["trace"].tobytes()) for result in results]),
        was_stopped=bool(results[0]["was_stopped"]),
        data_state=batches.state(next_sample),
    )


def run_locally(
    recipe: Recipe, work: "Work[Message]", on_message: Callable[[Message], None], *, timeout_s: float
) -> tuple[Sequence[Arrays], Batches]:
    """Call `work` in a process for each rank of a recipe, its data prepared; returns results by rank, and the data.

    Rank 0's channel sends to `on_message`, and reports Ctrl-C and SIGTERM to it. Raises the errors of `train_locally`.
    """
    _check_ranks(recipe)
    check_device(recipe)
    check_weights(recipe)
    with temporary_folder("fabrictune-training-") as folder, relay(on_message) as sender:
        batches = make_batches(recipe, folder)
        stop_receiver, stop_sender = multiprocessing.Pipe(duplex=False)
        target = partial(_run_rank, work, Path(batches.spec.path), uuid.uuid4().hex, sender, stop_receiver)
        with stop_signals(lambda: stop_sender.send("stop"), (signal.SIGINT, signal.SIGTERM)):
            results = launch(
                recipe.degrees.layout,
                target,
                timeout_s=timeout_s,
                request_timeout_s=SectionTimeouts().first_step_s,
            )
    return results, batches


def _check_ranks(recipe: Recipe) -> None:
    layout = recipe.degrees.layout
    if layout.world_size > MAX_RANKS:
        raise InputError(
            Mistake(
                where=f"{recipe.name}: degrees.layout",
                found=f"{layout.describe_product()}: {layout.world_size} ranks",
                allowed=f"at most {MAX_RANKS} processes on one machine",
                next_step="start it with torchrun or srun on the machines it is for",
            )
        )
    if recipe.device == "cuda" and layout.world_size > 1:
        raise UnavailableError(
            Mistake(
                where=f"{recipe.name}: device",
                found="processes started here communicate over gloo, and GPUs need NCCL",
                next_step="torchrun --nproc-per-node GPUS -m fabrictune train run ...",
            )
        )


def _run_rank(
    work: "Work[Message]",
    tokens: Path,
    job: str,
    sender: "Connection[Message, Message]",
    stop_receiver: "Connection[str, str]",
    member: "Member",
) -> Arrays:
    """Call `work` in a rank's own process; only rank 0 has a channel to the process that started it."""
    is_first = member.rank == 0
    channel = Channel(send=sender.send, is_stopped=stop_receiver.poll) if is_first else Channel[Message]()
    return work(member, Machine(ranks=tuple(range(member.plan.world_size)), tokens=tokens, job=job), channel)


def _train_rank(
    recipe: Recipe,
    peak_flops_per_s: float | None,
    export: Path | None,
    checkpoints: CheckpointSettings | None,
    spans: Path | None,
    member: "Member",
    machine: Machine,
    channel: Channel[StepReport | Note],
) -> Arrays:
    from fabrictune.trainer_probe.training.checkpointed import train_with_checkpoints
    from fabrictune.trainer_probe.training.timed_comm import timed_comm

    device, layout = device_of(recipe), recipe.degrees.layout
    page = None if spans is None else create_run_page(run_pages(spans), member.rank, layout)
    comm = timed_comm(layout, member, device, page=page)
    monitor = Monitor(
        on_step=channel.send,
        is_stopped=channel.is_stopped,
        peak_flops_per_s=peak_flops_per_s,
        on_note=lambda text: channel.send(Note(text=text)),
    )
    was_stopped, place = train_with_checkpoints(
        recipe, comm, machine, monitor, device, checkpoints=checkpoints, export=export, spans=spans, page=page
    )
    found = {"was_stopped": np.array(was_stopped), "place": np.array(recipe.first_place if place is None else place)}
    return {**found, "trace": np.frombuffer(comm.trace().to_bytes(), np.uint8)}
