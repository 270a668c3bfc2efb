"""One run of a sweep's point: from plain data to its record.

A worker keeps what the points of a sweep have in common: a law is compiled once for all parameters, and fabric, traffic
and paths are made once for all points that differ in the law or the engine alone.
"""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from threading import Lock
from typing import Any, Protocol, TypeVar

import numpy as np

from fabrictune.cc.interface import CompiledLaw
from fabrictune.foundation.documents import Document, Mark
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.metrics.measures import measure_all, measures_as_json
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.settings.binding import bind
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.scenario.compilation import CompiledScenario, assemble
from fabrictune.scenario.composition import Composed, compose
from fabrictune.scenario.engines import engine_of, without_ignored
from fabrictune.scenario.extensions import load_extensions
from fabrictune.scenario.laws import resolve
from fabrictune.scenario.schema import Scenario
from fabrictune.studies.simulation import judge, run_engine
from fabrictune.sweeps.points import Task

KIND = "sweep point"
MAX_KEPT = 8  # fabrics with their traffic, and laws
RESULT_TABLES = ("transfers", "ports", "queues")  # what a key without effect leaves as it was

Kept = TypeVar("Kept")


class Stopped(Protocol):
    """A callback that returns whether to abandon a run."""

    def __call__(self) -> bool: ...


class Worker:
    """Runs tasks, from one thread or several; each run takes `most_threads` at most, since others run beside it."""

    def __init__(self, *, most_threads: int = 1) -> None:
        self._most_threads = most_threads
        self._laws: OrderedDict[Hashable, Any] = OrderedDict()
        self._composed: OrderedDict[Hashable, Any] = OrderedDict()
        self._making = Lock()  # what is made here holds the interpreter's lock anyway

    def run(self, task: Task, is_stopped: Stopped = lambda: False) -> RunRecord:
        """Return the record of a run; one that its input or its law made impossible has `failure` in its head.

        Raises KeyboardInterrupt once `is_stopped`, UnavailableError where this machine cannot run it.
        """
        try:
            scenario = without_ignored(self._scenario(task))
            compiled = self._with_few_threads(assemble(self._compose(scenario), self._law(scenario, task)))
            record = judge(compiled, run_engine(compiled, progress=_watch(is_stopped)))
        except InputError as error:
            return RunRecord(
                kind=KIND, run={**describe_run(seed=task.seed, started=0), **_head(task), "failure": str(error)}
            )
        if record.run["outcome"] == "interrupted":
            raise KeyboardInterrupt
        metrics = measures_as_json(measure_all(record))
        head = {**record.run, **_head(task), "metrics": metrics, "result": _digest(record)}
        return replace(record, kind=KIND, run=head, tables=record.tables if task.keep_tables else {})

    def _scenario(self, task: Task) -> Scenario:
        """Return the task's scenario with the extensions that it names; raises InputError."""
        scenario = bind(Scenario, task.tree, folder=task.folder)
        with self._making:
            return load_extensions(scenario, _document(task), trust_code=task.trust_code)

    def _with_few_threads(self, compiled: CompiledScenario) -> CompiledScenario:
        config = compiled.config
        if not isinstance(config, PacketConfig) or config.threads <= self._most_threads:
            return compiled
        return replace(compiled, config=replace(config, threads=self._most_threads))

    def _law(self, scenario: Scenario, task: Task) -> CompiledLaw | None:
        if "law" in engine_of(scenario).ignores:
            return None
        from fabrictune.cc.compiler import with_settings  # here, since it loads LLVM

        with self._making:
            law = resolve(scenario.law, document=_document(task), trust_code=task.trust_code)
            name = (scenario.law.name, str(getattr(scenario.law.spec, "file", "")), law.file_sha256)
            compiled: CompiledLaw = _kept(self._laws, name, law.compiled)
            return with_settings(compiled, law.module, law.parameters)

    def _compose(self, scenario: Scenario) -> Composed:
        parts = repr((scenario.fabric, scenario.routing, scenario.traffic, scenario.seed, _folded(scenario)))
        with self._making:
            composed: Composed = _kept(self._composed, parts, lambda: compose(scenario))
        return replace(composed, scenario=scenario)


def _folded(scenario: Scenario) -> Any:
    """Return what else traffic follows from where one rail stands for all."""
    return scenario.fold and (scenario.engine, scenario.faults)


def _kept(store: OrderedDict[Hashable, Any], key: Hashable, make: Callable[[], Any]) -> Any:
    """Return what is kept under a key, made if it is not there; the least recently used is dropped."""
    if key not in store:
        store[key] = make()
    store.move_to_end(key)
    while len(store) > MAX_KEPT:
        store.popitem(last=False)
    return store[key]


def _document(task: Task) -> Document:
    """Return the place of a task's settings: a sweep's folder has no lines."""
    return Document(path=task.folder / "scenario", text=_text(task), tree=task.tree, find_marks=lambda: Mark(0))


def _watch(is_stopped: Stopped) -> Progress:
    """Return what the engine calls between its slices: it leaves as Ctrl-C would."""

    def watch(_fraction: float, _note: str = "") -> None:
        if is_stopped():
            raise KeyboardInterrupt

    return watch


def _head(task: Task) -> dict[str, Any]:
    """Return what a record says of its point; `scenario` is one that runs it again."""
    return {"values": dict(task.values), "seed": task.seed, "scenario": _text(task)}


def _text(task: Task) -> str:
    """Return the scenario as a file would have it; JSON is YAML too."""
    return json.dumps(task.tree, indent=2)


def _digest(record: RunRecord) -> str:
    """Return a digest of all numbers of the run."""
    digest = hashlib.blake2b(digest_size=16)
    for name in RESULT_TABLES:
        for column, values in record.tables.get(name, {}).items():
            if values.dtype != object:
                digest.update(f"{name}.{column}".encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
