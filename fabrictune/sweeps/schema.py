"""Schema of a sweep file: a scenario, the keys to vary, the search, and the objectives.

A sweep is data, as a scenario is. Every key is checked as the scenario's own file would be, with the same messages.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError

from fabrictune.foundation.documents import Document, Key, key_path, load_yaml
from fabrictune.foundation.errors import InputError, Mistake, ScenarioError
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.metrics.measures import measure_keys
from fabrictune.foundation.settings.binding import NOT_A_KEY, Choice, Chosen, bind
from fabrictune.foundation.settings.folder_names import FolderName
from fabrictune.foundation.settings.mistakes import to_mistakes
from fabrictune.scenario.expectations import Measure
from fabrictune.scenario.schema import MAX_SEED
from fabrictune.sweeps.axes import SweepAxis

MAX_SWEEP_BYTES = 2**20
MAX_POINTS = 100_000
MAX_SEEDS = 1000


@dataclass(frozen=True, kw_only=True)
class Objective(Measure):
    """A measure of a run, and which way it is better."""

    FROM_TEXT: ClassVar = staticmethod(measure_keys)

    goal: Literal["minimise", "maximise"] | None = field(default=None, metadata={"help": "by default the usual one"})

    @property
    def is_maximised(self) -> bool:
        """Whether more is better."""
        return self.goal == "maximise" if self.goal else METRICS[self.metric].is_better_more

    def cost(self, value: float) -> float:
        """Return the value so that less is better."""
        return -value if self.is_maximised else value


@dataclass(frozen=True, kw_only=True)
class GridSearch:
    """Every combination of the axes' values."""


@dataclass(frozen=True, kw_only=True)
class RandomSearch:
    """Points drawn independently of one another."""

    points: Annotated[int, Field(ge=1, le=MAX_POINTS)] = field(metadata={"help": "how many to draw"})


@dataclass(frozen=True, kw_only=True)
class TpeSearch:
    """Points where those before them promise most: Optuna's tree-structured Parzen estimator."""

    points: Annotated[int, Field(ge=1, le=MAX_POINTS)] = field(metadata={"help": "how many to try"})
    batch: Annotated[int, Field(ge=1, le=1000)] = field(
        default=4, metadata={"help": "points proposed at once, whatever the number of workers"}
    )
    startup: Annotated[int, Field(ge=1, le=MAX_POINTS)] = field(
        default=10, metadata={"help": "points drawn at random before the first that is not"}
    )


SEARCH_CHOICE = Choice(
    "method", {"grid": GridSearch, "random": RandomSearch, "tpe": TpeSearch}, lambda text: {"method": text}
)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A scenario, and the settings it is to be tried under."""

    name: FolderName = field(metadata={"help": "of the sweep, and of its folder"})
    question: str = field(default="", metadata={"help": "question that the sweep answers; the report shows it"})
    scenario: Path = field(metadata={"help": "file of the scenario, from the sweep's own folder"})
    change: dict[str, Any] = field(default_factory=dict, metadata={"help": "key paths and values, for all points"})
    vary: tuple[SweepAxis, ...] = field(metadata={"help": "the keys, and what each is varied over"})
    search: Annotated[Chosen, SEARCH_CHOICE] = field(
        default=Chosen(name="grid", spec=GridSearch()), metadata={"help": "which points are tried"}
    )
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = field(default=0, metadata={"help": "of the search"})
    seeds: Annotated[int, Field(ge=1, le=MAX_SEEDS)] = field(
        default=3, metadata={"help": "runs of each point, with the scenario's seed and those after it"}
    )
    objectives: tuple[Objective, ...] = field(metadata={"help": "what is good; more than one give a Pareto front"})
    probe: bool = field(default=True, metadata={"help": "first make sure that every key changes something"})
    keep_tables: bool = field(default=False, metadata={"help": "keep every table of every run, not its metrics alone"})
    document: Document | None = field(default=None, repr=False, compare=False, metadata=NOT_A_KEY)

    def __post_init__(self) -> None:
        for name, entries in (("vary", [axis.key for axis in self.vary]), ("objectives", self.measures)):
            repeated = sorted({entry for entry in entries if entries.count(entry) > 1})
            if not entries or repeated:
                found = f"{repeated[0]!r} twice" if repeated else "none"
                raise InputError(Mistake(where=name, found=found, allowed="one or more, each once"))
        overlapping = sorted({axis.key for axis in self.vary} & set(self.change))
        if overlapping:
            raise InputError(
                Mistake(where="change", found=f"{overlapping[0]!r}, which is varied", allowed="other keys")
            )
        if "seed" in {*self.change, *(axis.key for axis in self.vary)}:
            raise InputError(Mistake(where="vary", found="'seed'", next_step="say how many with the key 'seeds'"))

    @property
    def measures(self) -> list[str]:
        """The names of the objectives."""
        return [objective.name for objective in self.objectives]

    def where(self, *keys: Key) -> str:
        """Return the place of a key for a Mistake: with file and line where the sweep came from a file."""
        return self.document.where(*keys) if self.document else key_path(keys)


def load_sweep(path: Path) -> Sweep:
    """Return the sweep in a YAML file; raises InputError, or ScenarioError with every mistake found."""
    document = load_yaml(path, max_bytes=MAX_SWEEP_BYTES)
    try:
        sweep = bind(Sweep, document.tree, folder=path.parent)
    except ValidationError as error:
        raise ScenarioError(*to_mistakes(error, document)) from None
    return replace(sweep, document=document)
