"""A training run of which this process is one rank, under a launcher such as torchrun or Slurm, on any machines.

All ranks call this; before the first step they check that they run the same, or all refuse with one message.
"""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.collectives.startup.consensus import agree
from fabrictune.collectives.startup.groups import GroupPlan
from fabrictune.collectives.startup.launchers import Launched
from fabrictune.collectives.startup.servers import QUICK_RESOLVER
from fabrictune.collectives.startup.stores import connect_store, listen, serve_tcp_store
from fabrictune.foundation.errors import FabrictuneError, InputError, Mistake, StartupError
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.records import installed_version
from fabrictune.foundation.temporary_folders import temporary_folder
from fabrictune.trainer_probe.checkpoint.running import CheckpointSettings
from fabrictune.trainer_probe.data.batches import Batches
from fabrictune.trainer_probe.operation.run_pages import create_run_page, remove_run_pages, run_pages
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.hardware import check_device, device_of, driver_settings
from fabrictune.trainer_probe.training.input_pipeline import Machine, make_batches
from fabrictune.trainer_probe.training.outcome import Outcome, gather_trace
from fabrictune.trainer_probe.training.preflight import RankReport, check_ranks, machine_of
from fabrictune.trainer_probe.training.progress import Monitor, StepReport, stop_signals
from fabrictune.trainer_probe.training.section_timeouts import SectionTimeouts
from fabrictune.trainer_probe.training.weights import check_weights

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

    from fabrictune.collectives.startup.process_groups import Member

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)  # of a terminal, and of launchers that end a job


def train_distributed(
    launched: Launched,
    read_recipe: Callable[[], Recipe],
    *,
    on_step: Callable[[Recipe, StepReport], None],
    startup_timeout_s: float,
    peak_flops_per_s: float | None = None,
    export: Path | None = None,
    checkpoints: CheckpointSettings | None = None,
    on_note: Callable[[str], None] = lambda text: None,
    spans: Callable[[Recipe], Path | None] = lambda recipe: None,
) -> tuple[Recipe, Outcome] | None:
    """Train as one rank of many; returns the recipe and its outcome on rank 0, None on all others.

    Raises RefusedError on every rank, with the same message, where a rank has another version or recipe or unusable
    data, among them the errors of `read_recipe`; StartupError where ranks are missing.
    """
    require_extra("torch", extra="train", where="trainer")
    os.environ.update({**QUICK_RESOLVER, **os.environ})
    stop_requests: list[bool] = []
    with (
        stop_signals(lambda: stop_requests.append(True), STOP_SIGNALS),
        temporary_folder("fabrictune-training-") as folder,
        _store(launched, startup_timeout_s) as store,
    ):
        recipe, report = _inspect(launched, read_recipe, folder)
        machine = machine_of(launched.rank, _exchange(launched, store, report, startup_timeout_s))
        assert recipe is not None, "a rank that could not read it is refused"
        device = device_of(recipe, launched.local_rank)
        member = _start(launched, recipe, store, startup_timeout_s, device)
        monitor = Monitor(
            on_step=lambda report: on_step(recipe, report),
            is_stopped=lambda: bool(stop_requests),
            peak_flops_per_s=peak_flops_per_s,
            on_note=on_note,
        )
        return _train(recipe, machine, member, device, monitor, export, checkpoints, spans(recipe))


def _inspect(launched: Launched, read_recipe: Callable[[], Recipe], folder: Path) -> tuple[Recipe | None, RankReport]:
    """Return the recipe and this rank's report; the first rank of a machine prepares its data."""
    is_first_there = launched.local_rank == 0
    versions = {name: installed_version(name) for name in ("fabrictune", "torch")}
    report = RankReport(host=socket.gethostname(), is_first_there=is_first_there, versions=versions, settings=None)
    try:
        recipe = read_recipe()
    except FabrictuneError as error:
        return None, replace(report, mistakes=error.mistakes)
    report = replace(report, settings=recipe.settings())
    try:
        _check_world_size(recipe, launched)
        check_device(recipe, launched.local_rank)
        check_weights(recipe)
        if is_first_there:
            batches = make_batches(recipe, folder)
            report = replace(report, tokens=batches.spec.path, checksum=batches.file.checksum)
    except FabrictuneError as error:
        report = replace(report, mistakes=error.mistakes)
    return recipe, report


def _check_world_size(recipe: Recipe, launched: Launched) -> None:
    layout = recipe.degrees.layout
    if layout.world_size != launched.num_ranks:
        raise InputError(
            Mistake(
                where=f"{recipe.name}: degrees.layout",
                found=f"{layout.describe_product()}: {layout.world_size} ranks",
                allowed=f"{launched.num_ranks}, as {launched.launcher} has started",
                next_step="change the degrees, or start as many ranks",
            )
        )


@contextmanager
def _store(launched: Launched, timeout_s: float) -> Iterator["dist.Store"]:
    """Yield the store of this start of the job: the launcher's, or one that rank 0 serves while the block runs."""
    address = StoreAddress(scheme="tcp", host=launched.host, port=launched.port)
    served = None
    if launched.rank == 0 and not launched.has_store:
        try:
            served = serve_tcp_store(listen(launched.host, launched.port))
        except OSError as error:
            next_step = "set MASTER_ADDR to this machine's name, and MASTER_PORT to a port that is free"
            raise StartupError(
                Mistake(where=str(address), found=f"cannot be served here ({error.strerror})", next_step=next_step)
            ) from error
    yield connect_store(address, attempt=launched.attempt, timeout_s=timeout_s)
    del served


def _exchange(launched: Launched, store: "dist.Store", report: RankReport, timeout_s: float) -> str:
    """Return the result of the check of all ranks' reports."""
    from fabrictune.collectives.startup.store_runner import perform

    steps = agree(launched.num_ranks, launched.rank, report.to_json(), check_ranks)
    return perform(store, steps, deadline_s=time.monotonic() + timeout_s)


def _start(
    launched: Launched, recipe: Recipe, store: "dist.Store", timeout_s: float, device: "torch.device"
) -> "Member":
    """Make this rank's groups: over gloo, and on GPUs over NCCL too."""
    import torch

    from fabrictune.collectives.startup.process_groups import start_process_groups

    is_on_gpu = device.type == "cuda"
    if is_on_gpu:
        for name, value in driver_settings(recipe).items():  # read when the device is first used
            os.environ.setdefault(name, value)
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)
    backend = "cpu:gloo,cuda:nccl" if is_on_gpu else "gloo"
    plan = GroupPlan.of_layout(recipe.degrees.layout)
    return start_process_groups(
        store,
        plan,
        launched.rank,
        timeout_s=timeout_s,
        request_timeout_s=SectionTimeouts().first_step_s,
        backend=backend,
    )


def _train(
    recipe: Recipe,
    machine: Machine,
    member: "Member",
    device: "torch.device",
    monitor: Monitor,
    export: Path | None,
    checkpoints: CheckpointSettings | None,
    spans: Path | None,
) -> tuple[Recipe, Outcome] | None:
    import torch.distributed as dist

    from fabrictune.trainer_probe.training.checkpointed import train_with_checkpoints
    from fabrictune.trainer_probe.training.timed_comm import timed_comm

    reports: list[StepReport] = []

    def on_report(report: StepReport) -> None:
        reports.append(report)
        if member.rank == 0:
            monitor.on_step(report)

    layout = recipe.degrees.layout
    page = None if spans is None else create_run_page(run_pages(spans), member.rank, layout)
    comm = timed_comm(layout, member, device, page=page)
    was_stopped, place = train_with_checkpoints(
        recipe,
        comm,
        machine,
        replace(monitor, on_step=on_report),
        device,
        checkpoints=checkpoints,
        export=export,
        spans=spans,
        page=page,
    )
    trace = gather_trace(comm)
    dist.destroy_process_group()
    if spans is not None:
        remove_run_pages(run_pages(spans))
    if trace is None:
        return None
    data_state = Batches(recipe.batches(machine.tokens)).state(recipe.first_place if place is None else place)
    return recipe, Outcome(reports=tuple(reports), trace=trace, was_stopped=was_stopped, data_state=data_state)
