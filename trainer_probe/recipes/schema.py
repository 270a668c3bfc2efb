"""What a recipe may say: each field here is a key there (`foundation/settings/binding.py`), defined in its own room.

A recipe is complete: two runs of one recipe see the same samples in the same order and begin with the same weights.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.settings.binding import Choice, Chosen
from fabrictune.trainer_probe.data.batches import BatchSpec
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.optimizers.schedule import Schedule
from fabrictune.trainer_probe.optimizers.spec import OptimizerSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees, check_degrees

MAX_SEED = 2**63 - 1
MAX_PLACE = 2**60  # in the order of samples, which counts in 64 bits
FOLDER_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$"  # a record's folder is called by it

Overlap = Literal["none", "tp", "pp", "dp", "all"]
Loading = Literal["machine", "worker"]
Precision = Literal["float64", "float32", "bfloat16", "float16"]
DeviceName = Literal["cpu", "cuda"]
PresetName = Literal["tiny", "small", "175B", "530B"]


@dataclass(frozen=True, kw_only=True)
class TokenSource:
    """A token file."""

    path: Path = field(metadata={"help": "token file"})


@dataclass(frozen=True, kw_only=True)
class TextSource:
    """Texts, tokenized when a run begins."""

    paths: tuple[Path, ...] = field(metadata={"help": "text files"})
    tokenizer: Path | None = field(default=None, metadata={"help": "tokenizer.json; without it a byte is an id"})


@dataclass(frozen=True, kw_only=True)
class SyntheticSource:
    """Seeded ids in Zipf's proportions, over the model's vocabulary."""

    num_tokens: int = field(default=2**20, metadata={"help": "ids before samples come again"})

    def __post_init__(self) -> None:
        if self.num_tokens < 1:
            raise InputError(Mistake(where="num_tokens", found=str(self.num_tokens), allowed="1 or more"))


SOURCES: dict[str, type] = {"tokens": TokenSource, "text": TextSource, "synthetic": SyntheticSource}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A training run. Raises InputError with all that doesn't fit together."""

    name: Annotated[str, Field(pattern=FOLDER_NAME)] = field(metadata={"help": "of the run, and of its record"})
    question: str = field(default="", metadata={"help": "what the run is to answer; stands on the report"})
    model: ModelSpec = field(default_factory=ModelSpec, metadata={"help": "what is trained"})
    degrees: Degrees = field(default_factory=Degrees, metadata={"help": "how a step is divided over ranks"})
    overlap: Overlap = field(default="all", metadata={"help": "axes whose communication runs beside work"})
    optimizer: OptimizerSpec = field(default_factory=OptimizerSpec, metadata={"help": "gradients to changes"})
    schedule: Schedule = field(default_factory=Schedule, metadata={"help": "learning rate of each step"})
    precision: Precision | None = field(
        default=None, metadata={"help": "of the model; without it bfloat16 on a GPU, float32 on a CPU"}
    )
    device: DeviceName = field(default="cpu", metadata={"help": "where the model computes"})
    data: Annotated[Chosen, Choice("source", SOURCES)] = field(
        default=Chosen(name="synthetic", spec=SyntheticSource()), metadata={"help": "what is learned"}
    )
    loader: Loading = field(default="machine", metadata={"help": "one loader for all workers of a machine, or each"})
    num_steps: Annotated[int, Field(ge=1)] = field(default=20, metadata={"help": "steps of this run"})
    first_sample: Annotated[int, Field(ge=0, le=MAX_PLACE)] = field(
        default=0, metadata={"help": "place in the order of samples to begin at, as an earlier run's record says"}
    )
    num_traced_steps: Annotated[int, Field(ge=1)] = field(
        default=2, metadata={"help": "last steps whose communication is recorded, request by request"}
    )
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = field(default=0, metadata={"help": "of the samples' order"})

    def __post_init__(self) -> None:
        mistakes = list(_mistakes_in_degrees(self))
        if mistakes:
            raise InputError(*mistakes)

    @property
    def precision_name(self) -> Precision:
        """The precision, chosen by the device where the recipe leaves it open."""
        return self.precision or ("bfloat16" if self.device == "cuda" else "float32")

    def batches(self, path: Path) -> BatchSpec:
        """Return what is read from a token file, and in which portions."""
        return BatchSpec(
            path=str(path),
            sequence_length=self.model.sequence,
            batch_size=self.degrees.samples_per_step,
            vocabulary_size=self.model.vocabulary,
            num_replicas=self.degrees.layout.dp,
            seed=self.seed,
        )

    def settings(self) -> dict[str, Any]:
        """Return every setting by its dotted name, as JSON values; of files the names alone, wherever they lie."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=lambda path: path.name))
        return dict(_flat(plain, ""))


@dataclass(frozen=True, kw_only=True)
class ModelKeys(ModelSpec):
    """A model as a file has it: reading puts a preset's values where the file has none."""

    preset: PresetName | None = field(default=None, metadata={"help": "model whose values stand for keys left out"})


@dataclass(frozen=True, kw_only=True)
class RecipeKeys(Recipe):
    """A recipe as a file has it."""

    model: ModelKeys = field(default_factory=ModelKeys, metadata={"help": "a preset, and what differs from it"})


def _mistakes_in_degrees(recipe: Recipe) -> Iterable[Mistake]:
    try:
        check_degrees(recipe.model, recipe.degrees)
    except InputError as error:
        for mistake in error.mistakes:
            is_models = mistake.where.startswith("model.")
            yield mistake if is_models else replace(mistake, where=f"degrees.{mistake.where}")


def _flat(tree: dict[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            is_endless = isinstance(value, float) and not math.isfinite(value)  # which JSON has no number for
            yield f"{prefix}{key}", str(value) if is_endless else value
