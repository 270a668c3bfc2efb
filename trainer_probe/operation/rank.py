"""One rank of a generation: it meets the others in the store, takes up the newest state, trains, and reports.

Requests between ranks have no limit of their own: the driver notices a rank that hangs, knows who is guilty, and ends
all. A rank ends with its executor.
"""

import json
import math
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.collectives.startup.groups import GroupPlan
from fabrictune.collectives.startup.servers import QUICK_RESOLVER
from fabrictune.collectives.startup.stores import connect_store
from fabrictune.foundation.errors import FabrictuneError
from fabrictune.trainer_probe.launcher import stack_dump
from fabrictune.trainer_probe.operation.node_data import prepare_tokens
from fabrictune.trainer_probe.operation.pages import RankPage
from fabrictune.trainer_probe.operation.tasks import RankTask
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.hooks import Hook, Run
from fabrictune.trainer_probe.training.input_pipeline import Machine
from fabrictune.trainer_probe.training.progress import Monitor, StepReport
from fabrictune.trainer_probe.training.section_timeouts import SectionTimeouts

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

STOP = b"stop"
NEVER_S = 30 * 24 * 3600.0  # the driver ends ranks, and no limit of a request
EXIT_FAILED = 1


class Reporter:
    """A rank's channel to its executor: events on the way out, the request to stop on the way in."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._is_stopped = False

    def event(self, kind: str, **values: Any) -> None:
        """Send an event of the journal; the executor that is gone takes this rank along."""
        with suppress(ConnectionError):
            self._channel.send(json.dumps({"kind": "event", "event": kind, "values": values}).encode())

    def result(self, **values: Any) -> None:
        """Send what the run has come to."""
        with suppress(ConnectionError):
            self._channel.send(json.dumps({"kind": "result", **values}).encode())

    def is_stopped(self) -> bool:
        """Return whether the run is to stop after this step."""
        with suppress(BlockingIOError, ConnectionError):
            self._is_stopped |= self._channel.recv(64, socket.MSG_DONTWAIT) == STOP
        return self._is_stopped


def run_rank(values: Mapping[str, Any], channel: socket.socket) -> int:
    """Be a rank; returns its exit code."""
    task = RankTask.of_values(values)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stack_dump.answer(task.stacks)
    page = RankPage.create(task.page)
    page.section("start")
    try:
        _train(task, page, Reporter(channel))
    except BaseException as error:
        page.fail(f"{type(error).__name__}: {' '.join(str(error).split())}")
        text = str(error) if isinstance(error, FabrictuneError) else traceback.format_exc()
        sys.stderr.write(f"{text}\n")
        return EXIT_FAILED
    page.section("done")
    return 0


def _train(task: RankTask, page: RankPage, reporter: Reporter) -> None:
    import torch
    import torch.distributed as dist

    from fabrictune.trainer_probe.operation.resumption import RankSaves
    from fabrictune.trainer_probe.operation.watched import loader_waits_of
    from fabrictune.trainer_probe.training.hardware import device_of
    from fabrictune.trainer_probe.training.loop import train
    from fabrictune.trainer_probe.training.timed_comm import timed_comm

    began_s = time.monotonic()
    if task.job.code:
        sys.path.insert(0, task.job.code)
    recipe = load_recipe(find_recipe(task.job.recipe), task.job.settings)
    os.environ.update({"GLOO_SOCKET_IFNAME": task.interface, **QUICK_RESOLVER})
    torch.set_num_threads(1)
    tokens = prepare_tokens(recipe, task.data)
    member = _meet(task, recipe)
    page.section("load")
    device = device_of(recipe)
    comm = timed_comm(recipe.degrees.layout, member, device, page=page)
    machine = Machine(ranks=task.ranks_here, tokens=tokens, job=_name(task), is_supervised=True)
    saves = RankSaves(task, comm, page, reporter.event)
    reports: list[StepReport] = []
    ready_s = began_s

    def before(run: Run, step: int) -> None:
        nonlocal ready_s
        if not reports:
            ready_s = time.monotonic()
        page.section("step" if reports else "first step")
        page.step(step)

    def after(report: StepReport) -> None:
        if task.rank == 0 and not reports:
            reporter.event(
                "training",
                generation=task.job.generation,
                step=report.step,
                restore_s=ready_s - began_s,
                read_bytes=saves.read_bytes,
                source=saves.source,
            )
        reports[:] = [report]
        if report.step + 1 == recipe.end_step:
            page.section("end")
        if task.rank == 0:
            reporter.event("step", **_step_values(task, report))

    next_step = recipe.first_step

    def finish(run: Run) -> None:
        nonlocal next_step
        next_step = run.step
        saves.save_last(run)

    was_stopped = train(
        recipe,
        comm,
        machine,
        Monitor(on_step=after, is_stopped=reporter.is_stopped),
        device,
        hooks=(Hook(before_step=before, take_of=loader_waits_of(page)), *saves.hooks),
        restore=saves.restore,
        timeouts=SectionTimeouts(first_step_s=NEVER_S, min_step_s=NEVER_S),
        at_end=finish,
        spans=task.spans,
    )
    page.section("end")
    dist.barrier()
    reporter.result(was_stopped=was_stopped, step=next_step)
    dist.destroy_process_group()


def _meet(task: RankTask, recipe: Recipe) -> "Member":
    """Return this rank in its groups, made through the generation's store."""
    from fabrictune.collectives.startup.process_groups import start_process_groups

    job = task.job
    store = connect_store(StoreAddress.parse(job.store), attempt=_name(task), timeout_s=job.startup_timeout_s)
    return start_process_groups(
        store,
        GroupPlan.of_layout(recipe.degrees.layout),
        task.rank,
        timeout_s=job.startup_timeout_s,
        request_timeout_s=NEVER_S,
        backend=job.transport,
    )


def _name(task: RankTask) -> str:
    """Return the name of a generation of the job; no other's keys begin with it."""
    return f"{task.job.job}-{task.job.generation}"


def _step_values(task: RankTask, report: StepReport) -> dict[str, Any]:
    from fabrictune.trainer_probe.training.outcome import training_row

    loss = report.loss if math.isfinite(report.loss) else None  # which JSON has no number for
    return {"generation": task.job.generation, **training_row(report), "loss": loss}
