"""What a rank is told to do: the values that the driver gives all ranks of a generation, and those of one rank."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

Transport = Literal["gloo", "ordered"]


@dataclass(frozen=True, kw_only=True)
class SavePlan:
    """When checkpoints are saved, and where."""

    urls: tuple[str, ...] = ()  # of storage
    every: int = 0  # steps between two in storage; 0 for none
    memory_every: int = 0  # in node memory
    keep: int = 3


@dataclass(frozen=True, kw_only=True)
class JobTask:
    """The values of all ranks of one generation."""

    job: str
    generation: int
    recipe: str  # file or name
    settings: Mapping[str, Any] = field(default_factory=dict)  # changes of the recipe, by key path
    code: str = ""  # folder that is searched for modules first
    transport: Transport = "gloo"
    saves: SavePlan = SavePlan()
    before_step: int | None = None  # resume from a checkpoint before this step
    store: str = ""  # its address
    startup_timeout_s: float = 120.0

    def to_values(self) -> dict[str, Any]:
        """Return the task as JSON values."""
        return asdict(self)

    @classmethod
    def of_values(cls, values: Mapping[str, Any]) -> Self:
        """Return the task of `to_values`."""
        saves = SavePlan(**{**values["saves"], "urls": tuple(values["saves"]["urls"])})
        return cls(**{**values, "saves": saves})


@dataclass(frozen=True, kw_only=True)
class RankTask:
    """The task of one rank."""

    rank: int
    job: JobTask
    ranks_here: tuple[int, ...]  # all ranks of the node
    node: str
    nodes: tuple[str, ...]  # of the generation, in order of their ranks
    interface: str  # that ranks communicate over
    page: Path
    stacks: Path  # file for stack dumps
    data: Path  # the node's folder for token data
    memory: Path  # the node's folder for checkpoints in memory
    key: Path  # file of the job's key
    spans: Path  # the node's folder for spans of this generation
    holders: tuple[tuple[str, int], ...] = ()  # addresses of nodes that may have what this one lacks

    def to_values(self) -> dict[str, Any]:
        """Return the task as JSON values."""
        paths = {name: str(getattr(self, name)) for name in _PATHS}
        return {**asdict(self), **paths}

    @classmethod
    def of_values(cls, values: Mapping[str, Any]) -> Self:
        """Return the task of `to_values`."""
        paths = {name: Path(values[name]) for name in _PATHS}
        tuples = {"ranks_here": tuple(values["ranks_here"]), "nodes": tuple(values["nodes"])}
        tuples["holders"] = tuple((host, port) for host, port in values["holders"])
        return cls(**{**values, **paths, **tuples, "job": JobTask.of_values(values["job"])})


_PATHS = ("page", "stacks", "data", "memory", "key", "spans")
