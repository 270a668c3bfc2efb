"""A job operated from this process: its folder, its journal, its driver, and nodes of this machine."""

import os
import signal
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from fabrictune.foundation.errors import FabrictuneWarning, InputError, Mistake
from fabrictune.trainer_probe.operation.backends.choice import NodeSource
from fabrictune.trainer_probe.operation.changes import read_change
from fabrictune.trainer_probe.operation.commands import Finish
from fabrictune.trainer_probe.operation.continuation import Continuation
from fabrictune.trainer_probe.operation.driver import Driver
from fabrictune.trainer_probe.operation.driver_state import JobSettings, Limits
from fabrictune.trainer_probe.operation.events import Event
from fabrictune.trainer_probe.operation.job_clock import BootClock
from fabrictune.trainer_probe.operation.job_control import JobControl
from fabrictune.trainer_probe.operation.journal import Journal, open_journal
from fabrictune.trainer_probe.operation.messages import Listener, listen
from fabrictune.trainer_probe.operation.rules import RuleSettings
from fabrictune.trainer_probe.operation.run_folder import RunFolder, open_run_folder
from fabrictune.trainer_probe.operation.tasks import JobTask, SavePlan, Transport
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.progress import stop_signals

_MAX_KEPT = 4096  # events of an earlier driver that the rules see


@dataclass(frozen=True, kw_only=True)
class Operation:
    """What a job is to be operated with."""

    recipe: Recipe
    recipe_file: str
    changes: Mapping[str, Any]  # of the recipe, by key path
    num_nodes: int
    num_slots: int
    num_spares: int = 0
    saves: SavePlan = field(default_factory=SavePlan)
    transport: Transport = "gloo"
    store: str = ""  # Redis; "" for a store of the first node
    nodes: NodeSource = field(default_factory=NodeSource)
    host: str = "127.0.0.1"  # that the driver listens on
    port: int = 0  # 0 for a free one, the same after a restart
    interface: str = "lo"  # of the nodes
    tor_sets: Mapping[str, str] = field(default_factory=dict)  # by name of a host or node
    inside: tuple[str, ...] = ()  # words before the command of a node, {node} in them its name
    orphan_limit_s: float = 600.0
    limits: Limits = field(default_factory=Limits)
    rules: RuleSettings = field(default_factory=RuleSettings)


def operate(operation: Operation, run: Path, *, on_event: Callable[[Event], None]) -> Finish:
    """Operate a job in the foreground to its end; started again with the same folder it goes on.

    Ctrl-C ends it after a step, with a checkpoint. Raises InputError for settings that do not fit one another or the
    job in the folder, UnavailableError where nodes cannot be started.
    """
    _check(operation)
    with open_run_folder(run) as folder, closing(open_journal(str(run))) as journal:
        before, events = _read(journal, on_event)
        if before.outcome == "finished":
            ended = events[-1].values
            return Finish(outcome="finished", cause="", step=int(ended["step"]))
        clock = _clock(events)
        _check_same(operation, before)
        with _listen(operation, folder) as listener:
            folder.write_address(*listener.address[:2])
            backend = operation.nodes.open(folder)
            control = _control(operation, folder, before, backend.living())
            for event in events[-_MAX_KEPT:]:
                control.on_recorded(event)
            driver = Driver(
                control,
                journal,
                backend,
                listener,
                clock,
                _commands(operation, folder, listener),
                on_event=on_event,
                read_change=partial(read_change, folder),
                forget_change=partial(folder.change_file.unlink, missing_ok=True),
            )
            _record_start(operation, before, driver, clock)
            with stop_signals(driver.stop, (signal.SIGINT, signal.SIGTERM)):
                try:
                    return driver.run()
                except KeyboardInterrupt:
                    backend.close()
                    raise


def _check(operation: Operation) -> None:
    mistakes = []
    num_ranks, room = operation.recipe.degrees.layout.world_size, operation.num_nodes * operation.num_slots
    if num_ranks > room:
        mistakes.append(
            Mistake(
                where="--nodes, --slots",
                found=f"{operation.num_nodes} nodes of {operation.num_slots} slots",
                allowed=f"room for the {num_ranks} ranks of {operation.recipe.name}",
            )
        )
    saves = operation.saves
    if saves.memory_every and saves.every % saves.memory_every:
        mistakes.append(
            Mistake(where="--save-every", found=str(saves.every), allowed=f"a multiple of {saves.memory_every}")
        )
    if operation.nodes.backend != "local" and (operation.host.startswith("127.") or operation.interface == "lo"):
        warnings.warn(
            f"--host {operation.host} --interface {operation.interface}: nodes on other hosts do not reach the "
            "loopback device; give an address of this host and the nodes' interface",
            FabrictuneWarning,
            stacklevel=3,
        )
    if operation.recipe.device == "cuda" and operation.transport == "ordered":
        mistakes.append(Mistake(where="--backend-transport", found="ordered", allowed="gloo on GPUs"))
    if mistakes:
        raise InputError(*mistakes)


def _read(journal: Journal, on_event: Callable[[Event], None]) -> tuple[Continuation, list[Event]]:
    state, events = Continuation(), list[Event]()
    for event in journal.read():
        state = state.after(event)
        events.append(event)
        on_event(event)
    return state, events


def _clock(events: Sequence[Event]) -> BootClock:
    if not events:
        return BootClock.begin()
    origin = events[0].values["settings"]["clock"]
    return BootClock.resume(origin, events[-1].elapsed_s, events[-1].time_ns)


def _check_same(operation: Operation, before: Continuation) -> None:
    """Raise InputError where the folder has a job of another recipe."""
    if before.settings is None:
        return
    own, theirs = operation.recipe.settings(), before.settings["recipe"]
    changed = sorted(name for name in {*own, *theirs} if own.get(name) != theirs.get(name))
    if changed:
        raise InputError(
            Mistake(
                where="RECIPE",
                found=f"other {', '.join(changed[:4])} than this job's",
                next_step="choose another --run",
            )
        )


def _listen(operation: Operation, folder: RunFolder) -> Listener:
    """Return the listener, on the port of the driver before if that is free."""
    key, port = folder.key(), folder.last_port()
    if operation.port:
        return listen(operation.host, operation.port, key)
    if port:
        try:
            return listen(operation.host, port, key)
        except InputError:
            if any(folder.nodes.glob("*/executor.json")):
                raise
    return listen(operation.host, 0, key)


def _control(operation: Operation, folder: RunFolder, before: Continuation, living: Collection[str]) -> JobControl:
    import time

    task = JobTask(
        job=folder.job(),
        generation=0,
        recipe=operation.recipe_file,
        settings=operation.changes,
        transport=operation.transport,
        saves=operation.saves,
    )
    settings = JobSettings(
        task=task,
        layout=operation.recipe.degrees.layout,
        num_nodes=operation.num_nodes,
        num_spares=operation.num_spares,
        num_slots=operation.num_slots,
        store=operation.store,
        tor_sets=operation.tor_sets,
        last_step=operation.recipe.end_step,
        limits=operation.limits,
    )
    if before.task is not None:
        same = replace(before.task, saves=operation.saves, transport=operation.transport)
        before = replace(before, task=same)
    return JobControl(settings, operation.rules, before, living, time.monotonic())


def _commands(operation: Operation, folder: RunFolder, listener: Listener) -> Callable[[str], Sequence[str]]:
    """Return the function that gives the command of a node's executor."""
    host, port = listener.address[:2]
    options = {
        "--driver": f"{host}:{port}",
        "--slots": str(operation.num_slots),
        "--interface": operation.interface,
        "--orphan-limit": f"{operation.orphan_limit_s:g}",
    }

    def command(node: str) -> Sequence[str]:
        inside = [word.replace("{node}", node) for word in operation.inside]
        return [*inside, *operation.nodes.command(folder, node, options)]

    return command


def _record_start(operation: Operation, before: Continuation, driver: Driver, clock: BootClock) -> None:
    if before.settings is None:
        recipe = operation.recipe
        driver.record(
            "job started",
            recipe=recipe.name,
            num_ranks=recipe.degrees.layout.world_size,
            num_nodes=operation.num_nodes,
            settings={"recipe": recipe.settings(), "clock": clock.origin(), "saves": vars(operation.saves)},
        )
    driver.record("driver started", pid=os.getpid(), continues=before.settings is not None)
