"""A point of a sweep: the scenario with some keys set; and its runs, one for each seed, known by what they run.

A run's identity is a digest of the scenario as bound, defaults and all, with the content of every file it names, the
text of the law, the meanings of the metrics, the compiled engines and the version of this package. So a run that was
done is never done again, whatever the file of the sweep looks like by then; and one whose scenario, law, traffic or
engine has changed is.
"""

import dataclasses
import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from fabrictune.cc.laws import LAWS
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.extensions.kinds import Extension
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.records import installed_version
from fabrictune.netsim import _engine
from fabrictune.scenario.extensions import describe_extensions
from fabrictune.scenario.overrides import override
from fabrictune.scenario.schema import Scenario
from fabrictune.sweeps.schema import Sweep
from fabrictune.sweeps.search import AxisValues
from fabrictune.topology import _fairness

ENGINES = (_engine, _fairness)
# on a simulated run
WITHOUT_EFFECT = ("name", "question", "switches", "whatif", "factors", "document", "trust_code", "notes")
DIGEST_BYTES = 12  # of a name: 2**48 runs before two would be expected to share one


@dataclass(frozen=True, kw_only=True)
class Task:
    """One run of a point, as plain data that can be sent to another process."""

    id: str
    tree: Mapping[str, Any]  # of the scenario's file, changed
    folder: Path  # that names of files in it are relative to
    values: Mapping[str, Any]  # of the keys that are varied
    seed: int
    keep_tables: bool
    trust_code: bool


@dataclass(frozen=True, kw_only=True)
class Point:
    """The scenario with one value for each axis."""

    values: AxisValues
    tasks: tuple[Task, ...]  # one for each seed
    refusal: str = ""  # why the scenario cannot have these values; then there are no tasks

    @property
    def scenario_tree(self) -> Mapping[str, Any]:
        """The scenario's file with the point's values."""
        return self.tasks[0].tree


class PointMaker:
    """Makes points of a sweep on its scenario, which must have come from a file."""

    def __init__(self, sweep: Sweep, scenario: Scenario, *, trust_code: bool) -> None:
        assert scenario.document is not None, "the scenario came from a file"
        self._sweep = sweep
        self._scenario = scenario
        self._folder = scenario.document.path.parent.resolve()
        self._trust_code = trust_code
        self._digest_by_file: dict[Path, str] = {}

    def make(self, values: AxisValues) -> Point:
        """Return the point; one that the scenario refuses says why."""
        try:
            return self.check(values)
        except InputError as error:
            return Point(values=values, tasks=(), refusal=str(error))

    def check(self, values: AxisValues) -> Point:
        """Return the point; raises InputError, with the nearest guess for a key that does not exist."""
        varied = {axis.key: value for axis, value in zip(self._sweep.vary, values, strict=True)}
        return self._point(values, varied)

    def make_changed(self, changes: Mapping[str, Any]) -> Point:
        """Return the point with these keys set and all others as they are; one that the scenario refuses says why."""
        values = tuple(changes.items())
        try:
            return self._point(values, changes)
        except InputError as error:
            return Point(values=values, tasks=(), refusal=str(error))

    def _point(self, values: AxisValues, varied: Mapping[str, Any]) -> Point:
        origin = str(self._sweep.document.path) if self._sweep.document else "sweep"
        changes = {**self._sweep.change, **varied}
        scenario = override(self._scenario, changes, origin=origin)
        scenario.require_parts(self._sweep.objectives, where=self._sweep.where("objectives"))
        assert scenario.document is not None, "changed, it still has a document"
        tree = scenario.document.tree
        seeds = range(scenario.seed, scenario.seed + self._sweep.seeds)
        content = self._content(scenario)
        tasks = tuple(
            Task(
                id=_digest({**content, "seed": seed}),
                tree={**tree, "seed": seed},
                folder=self._folder,
                values=varied,
                seed=seed,
                keep_tables=self._sweep.keep_tables,
                trust_code=self._trust_code,
            )
            for seed in seeds
        )
        return Point(values=values, tasks=tasks)

    def _content(self, scenario: Scenario) -> dict[str, Any]:
        """Return everything a run depends on but its seed, as JSON values."""
        fields = {
            field.name: self._plain(getattr(scenario, field.name))
            for field in dataclasses.fields(scenario)
            if field.name not in WITHOUT_EFFECT
        }
        law = LAWS.get(scenario.law.name)
        return {
            "version": installed_version("fabrictune"),
            "engines": _engine_digests(),
            "metrics": {name: metric.meaning for name, metric in METRICS.items()},
            "law source": inspect.getsource(law) if law else "",
            "extensions": describe_extensions(scenario),
            "keep_tables": self._sweep.keep_tables,
            **fields,
        }

    def _plain(self, value: Any) -> Any:
        """Return a setting as JSON values, a file as the digest of its content."""
        if isinstance(value, Extension):
            return value.sha256
        if dataclasses.is_dataclass(value):
            fields = {field.name: self._plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
            return {"": type(value).__name__, **fields}
        if isinstance(value, Path):
            return self._digest_of_file(value)
        if isinstance(value, Mapping):
            return {str(key): self._plain(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(entry) for entry in value]
        if isinstance(value, Enum):
            return value.name
        assert value is None or isinstance(value, str | int | float), f"{value!r} is a setting"
        return value

    def _digest_of_file(self, path: Path) -> str:
        if path not in self._digest_by_file:
            files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
            digest = hashlib.blake2b()
            for file in files:
                digest.update(str(file.relative_to(path)).encode())
                if file.is_file():  # one that is not there is a mistake that composing names
                    with file.open("rb") as content:
                        digest.update(hashlib.file_digest(content, "blake2b").digest())
            self._digest_by_file[path] = digest.hexdigest()
        return self._digest_by_file[path]


@cache
def _engine_digests() -> dict[str, str]:
    """Return a digest of the file of each compiled engine: a version stays the same while one works on an engine."""
    digests = {}
    for engine in ENGINES:
        assert engine.__file__, "compiled, it is a file"
        with Path(engine.__file__).open("rb") as content:
            digests[engine.__name__] = hashlib.file_digest(content, "blake2b").hexdigest()
    return digests


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()
