"""A training run whose ranks are processes of this machine, started by our own launcher."""

import multiprocessing
import signal
import tempfile
import uuid
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from foundation.errors import InputError, Mistake, UnavailableError
from foundation.traces import CommTrace
from trainer_probe.driver.outcome import Outcome, as_parquet
from trainer_probe.driver.reports import StepReport
from trainer_probe.driver.stopping import telling_signals
from trainer_probe.driver.tokens import make_tokens
from trainer_probe.launcher import Arrays, launch
from trainer_probe.recipes.schema import Recipe
from trainer_probe.relaying import relaying

if TYPE_CHECKING:
    from collectives.startup.process_groups import Member

MAX_RANKS = 256  # processes of one machine


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
    _check_ranks(recipe)
    reports: list[StepReport] = []

    def take(report: StepReport) -> None:
        reports.append(report)
        tell(report)

    with tempfile.TemporaryDirectory(prefix="fabrictune-training-") as name, relaying(take) as sender:
        folder = Path(name)
        batches = make_tokens(recipe, folder)
        hearing, telling = multiprocessing.Pipe(duplex=False)
        target = partial(
            _train_rank, recipe, Path(batches.spec.path), uuid.uuid4().hex, sender, hearing, peak_flops_per_s
        )
        with telling_signals(lambda: telling.send("stop"), (signal.SIGINT,)):
            found = launch(recipe.degrees.layout, target, timeout_s=timeout_s)[0]
        path = folder / "trace.parquet"
        path.write_bytes(found["trace"].tobytes())
        trace = CommTrace.read(path)
    next_sample = recipe.first_sample + len(reports) * recipe.degrees.samples_per_step
    return Outcome(
        reports=tuple(reports),
        trace=trace,
        was_stopped=bool(found["was_stopped"]),
        data_state=batches.state(next_sample),
    )


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


def _train_rank(
    recipe: Recipe,
    tokens: Path,
    job: str,
    sender: "Connection[StepReport, StepReport]",
    hearing: "Connection[str, str]",
    peak_flops_per_s: float | None,
    member: "Member",
) -> Arrays:
    """Run in the rank's own process; rank 0 speaks for all, and alone hears that it should stop."""
    from trainer_probe.comm import Comm
    from trainer_probe.driver.feeding import Machine
    from trainer_probe.driver.gathering import gather_trace
    from trainer_probe.driver.loop import Watch, train

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C reaches every rank, in the middle of a step
    is_first = member.rank == 0
    comm = Comm(recipe.degrees.layout, member)
    machine = Machine(ranks=tuple(range(recipe.degrees.layout.world_size)), tokens=tokens, job=job)
    watch = Watch(
        tell=sender.send if is_first else lambda report: None,
        is_stopped=hearing.poll if is_first else lambda: False,
        peak_flops_per_s=peak_flops_per_s,
    )
    was_stopped = train(recipe, comm, machine, watch)
    trace = gather_trace(comm)
    if trace is None:
        return {}
    return {"was_stopped": np.array(was_stopped), "trace": np.frombuffer(as_parquet(trace), np.uint8)}
