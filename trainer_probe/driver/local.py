"""A training run whose ranks are processes of this machine, started by our own launcher."""

import multiprocessing
import signal
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from fabrictune.foundation.errors import InputError, Mistake, UnavailableError
from fabrictune.trainer_probe.data.batches import Batches
from fabrictune.trainer_probe.driver.dataset import make_tokens
from fabrictune.trainer_probe.driver.devices import check_device
from fabrictune.trainer_probe.driver.outcome import Outcome, as_parquet, from_parquet
from fabrictune.trainer_probe.driver.reports import StepReport
from fabrictune.trainer_probe.driver.signals import telling_signals
from fabrictune.trainer_probe.launcher.processes import Arrays, launch
from fabrictune.trainer_probe.launcher.relay import relaying
from fabrictune.trainer_probe.recipes.schema import Recipe

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member
    from fabrictune.trainer_probe.driver.input_pipeline import Machine

MAX_RANKS = 256  # processes of one machine

Message = TypeVar("Message")


@dataclass(frozen=True, kw_only=True)
class Line(Generic[Message]):
    """Between a rank and the process that started it; that of other ranks than the first is dead."""

    send: Callable[[Message], None] = lambda message: None
    is_stopped: Callable[[], bool] = lambda: False


Work = Callable[["Member", "Machine", Line[Message]], Arrays]  # of a module, or a partial of such


def train_here(
    recipe: Recipe,
    *,
    tell: Callable[[StepReport], None],
    timeout_s: float,
    peak_flops_per_s: float | None = None,
) -> Outcome:
    """Train with a process for each rank; `tell` is called with each step's report. Ctrl-C ends it after a step.

    Raises InputError for data that can't be used and for more ranks than one machine should be asked for, and
    UnavailableError where torch is missing or a rank fails.
    """
    reports: list[StepReport] = []

    def take(report: StepReport) -> None:
        reports.append(report)
        tell(report)

    found, batches = work_here(recipe, partial(_train_rank, recipe, peak_flops_per_s), take, timeout_s=timeout_s)
    next_sample = recipe.first_sample + len(reports) * recipe.degrees.samples_per_step
    return Outcome(
        reports=tuple(reports),
        trace=from_parquet(found["trace"].tobytes()),
        was_stopped=bool(found["was_stopped"]),
        data_state=batches.state(next_sample),
    )


def work_here(
    recipe: Recipe, work: "Work[Message]", take: Callable[[Message], None], *, timeout_s: float
) -> tuple[Arrays, Batches]:
    """Call `work` in a process for each rank of a recipe, its data made ready; returns what rank 0 found, and the data.

    What rank 0 says on its line is passed to `take`; Ctrl-C is told to it there. Raises what `train_here` does.
    """
    _check_ranks(recipe)
    check_device(recipe)
    with tempfile.TemporaryDirectory(prefix="fabrictune-training-") as name, relaying(take) as sender:
        batches = make_tokens(recipe, Path(name))
        hearing, telling = multiprocessing.Pipe(duplex=False)
        target = partial(_work_rank, work, Path(batches.spec.path), uuid.uuid4().hex, sender, hearing)
        with telling_signals(lambda: telling.send("stop"), (signal.SIGINT,)):
            found = launch(recipe.degrees.layout, target, timeout_s=timeout_s)
    return found[0], batches


def _check_ranks(recipe: Recipe) -> None:
    layout = recipe.degrees.layout
    if layout.world_size > MAX_RANKS:
        raise InputError(
            Mistake(
                where=f"{recipe.name}: degrees.layout",
                found=f"tp {layout.tp} times dp {layout.dp} times pp {layout.pp}: {layout.world_size} ranks",
                allowed=f"at most {MAX_RANKS} processes on one machine",
                next_step="start it with torchrun or srun on the machines it is for",
            )
        )
    if recipe.device == "cuda" and layout.world_size > 1:
        raise UnavailableError(
            Mistake(
                where=f"{recipe.name}: device",
                found="processes started here talk over gloo, and GPUs want NCCL",
                next_step="torchrun --nproc-per-node GPUS -m fabrictune train run ...",
            )
        )


def _work_rank(
    work: "Work[Message]",
    tokens: Path,
    job: str,
    sender: "Connection[Message, Message]",
    hearing: "Connection[str, str]",
    member: "Member",
) -> Arrays:
    """Run in the rank's own process; rank 0 speaks for all, and alone hears that it should stop."""
    from fabrictune.trainer_probe.driver.input_pipeline import Machine

    line = Line(send=sender.send, is_stopped=hearing.poll) if member.rank == 0 else Line[Message]()
    return work(member, Machine(ranks=tuple(range(member.plan.world_size)), tokens=tokens, job=job), line)


def _train_rank(
    recipe: Recipe, peak_flops_per_s: float | None, member: "Member", machine: "Machine", line: Line[StepReport]
) -> Arrays:
    from fabrictune.trainer_probe.comm import Comm
    from fabrictune.trainer_probe.driver.loop import Watch, train
    from fabrictune.trainer_probe.driver.trace_collection import gather_trace

    comm = Comm(recipe.degrees.layout, member)
    watch = Watch(tell=line.send, is_stopped=line.is_stopped, peak_flops_per_s=peak_flops_per_s)
    was_stopped = train(recipe, comm, machine, watch)
    trace = gather_trace(comm)
    if trace is None:
        return {}
    return {"was_stopped": np.array(was_stopped), "trace": np.frombuffer(as_parquet(trace), np.uint8)}
