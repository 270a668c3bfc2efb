"""A training run of which this process is one rank, started by somebody else on any machines: torchrun, Slurm.

All ranks call this; before the first step they agree that they run the same thing, or all refuse with one message.
"""

import os
import signal
import socket
import tempfile
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
from fabrictune.trainer_probe.data.batches import Batches
from fabrictune.trainer_probe.driver.dataset import make_tokens
from fabrictune.trainer_probe.driver.devices import check_device
from fabrictune.trainer_probe.driver.outcome import Outcome
from fabrictune.trainer_probe.driver.preflight import Statement, judge, machine_of
from fabrictune.trainer_probe.driver.reports import StepReport
from fabrictune.trainer_probe.driver.signals import telling_signals
from fabrictune.trainer_probe.recipes.schema import Recipe

if TYPE_CHECKING:
    import torch.distributed as dist

    from fabrictune.collectives.startup.process_groups import Member
    from fabrictune.trainer_probe.driver.input_pipeline import Machine

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)  # of a terminal, and of launchers that end a job


def train_launched(
    launched: Launched,
    read: Callable[[], Recipe],
    *,
    tell: Callable[[Recipe, StepReport], None],
    startup_timeout_s: float,
    peak_flops_per_s: float | None = None,
) -> tuple[Recipe, Outcome] | None:
    """Train as one rank of many; returns what rank 0 is to record, and None on all others.

    `read` returns the recipe, and raises what is wrong with it. Raises RefusedError on every rank, with one text, where
    a rank has another version or recipe or unusable data; StartupError where ranks don't come.
    """
    require_extra("torch", extra="train", where="trainer")
    os.environ.update({**QUICK_RESOLVER, **os.environ})
    asked: list[bool] = []
    with (
        telling_signals(lambda: asked.append(True), STOP_SIGNALS),
        tempfile.TemporaryDirectory(prefix="fabrictune-training-") as name,
        _store(launched, startup_timeout_s) as store,
    ):
        recipe, statement = _look(launched, read, Path(name))
        machine = machine_of(launched.rank, _agree(launched, store, statement, startup_timeout_s))
        assert recipe is not None, "a rank that could not read it has been refused"
        member = _start(launched, recipe, store, startup_timeout_s)
        return _train(recipe, machine, member, tell, lambda: bool(asked), peak_flops_per_s)


def _look(launched: Launched, read: Callable[[], Recipe], folder: Path) -> tuple[Recipe | None, Statement]:
    """Return the recipe, and what this rank states; the first rank of a machine prepares its data."""
    is_first_there = launched.local_rank == 0
    versions = {name: installed_version(name) for name in ("fabrictune", "torch")}
    statement = Statement(host=socket.gethostname(), is_first_there=is_first_there, versions=versions, settings=None)
    try:
        recipe = read()
    except FabrictuneError as error:
        return None, replace(statement, mistakes=error.mistakes)
    statement = replace(statement, settings=recipe.settings())
    try:
        _check_ranks(recipe, launched)
        check_device(recipe, launched.local_rank)
        if is_first_there:
            batches = make_tokens(recipe, folder)
            statement = replace(statement, tokens=batches.spec.path, checksum=batches.file.checksum)
    except FabrictuneError as error:
        statement = replace(statement, mistakes=error.mistakes)
    return recipe, statement


def _check_ranks(recipe: Recipe, launched: Launched) -> None:
    layout = recipe.degrees.layout
    if layout.world_size != launched.num_ranks:
        raise InputError(
            Mistake(
                where=f"{recipe.name}: degrees.layout",
                found=f"tp {layout.tp} times dp {layout.dp} times pp {layout.pp}: {layout.world_size} ranks",
                allowed=f"{launched.num_ranks}, as {launched.launcher} has started",
                next_step="change the degrees, or start as many ranks",
            )
        )


@contextmanager
def _store(launched: Launched, timeout_s: float) -> Iterator["dist.Store"]:
    """Give the store of this start of the job: the launcher's, or one that rank 0 serves while the block runs."""
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


def _agree(launched: Launched, store: "dist.Store", statement: Statement, timeout_s: float) -> str:
    from fabrictune.collectives.startup.store_runner import perform

    steps = agree(launched.num_ranks, launched.rank, statement.to_json(), judge)
    return perform(store, steps, deadline_s=time.monotonic() + timeout_s)


def _start(launched: Launched, recipe: Recipe, store: "dist.Store", timeout_s: float) -> "Member":
    """Make this rank's groups: over gloo, and on GPUs over NCCL too."""
    import torch

    from fabrictune.collectives.startup.process_groups import start_process_groups

    is_on_gpu = recipe.device == "cuda"
    if is_on_gpu:
        torch.cuda.set_device(launched.local_rank)
    else:
        torch.set_num_threads(1)
    backend = "cpu:gloo,cuda:nccl" if is_on_gpu else "gloo"
    plan = GroupPlan.of_layout(recipe.degrees.layout)
    return start_process_groups(store, plan, launched.rank, timeout_s=timeout_s, backend=backend)


def _train(
    recipe: Recipe,
    machine: "Machine",
    member: "Member",
    tell: Callable[[Recipe, StepReport], None],
    is_stopped: Callable[[], bool],
    peak_flops_per_s: float | None,
) -> tuple[Recipe, Outcome] | None:
    import torch.distributed as dist

    from fabrictune.trainer_probe.comm import Comm
    from fabrictune.trainer_probe.driver.loop import Watch, train
    from fabrictune.trainer_probe.driver.trace_collection import gather_trace

    reports: list[StepReport] = []

    def take(report: StepReport) -> None:
        reports.append(report)
        if member.rank == 0:
            tell(recipe, report)

    comm = Comm(recipe.degrees.layout, member)
    was_stopped = train(
        recipe, comm, machine, Watch(tell=take, is_stopped=is_stopped, peak_flops_per_s=peak_flops_per_s)
    )
    trace = gather_trace(comm)
    dist.destroy_process_group()
    if trace is None:
        return None
    next_sample = recipe.first_sample + len(reports) * recipe.degrees.samples_per_step
    data_state = Batches(recipe.batches(machine.tokens)).state(next_sample)
    return recipe, Outcome(reports=tuple(reports), trace=trace, was_stopped=was_stopped, data_state=data_state)
