"""The schema of a recipe: each field is a key of the file (`foundation/settings/binding.py`).

A recipe is complete: two runs of one recipe have the same samples in the same order and the same initial weights.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.settings.binding import Choice, Chosen, SpecChoice
from fabrictune.foundation.settings.folder_names import FolderName
from fabrictune.trainer_probe.data.batches import BatchSpec
from fabrictune.trainer_probe.data_parallel.costs import check_strategy
from fabrictune.trainer_probe.data_parallel.spec import DataParallelSpec
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.model.table import DEFAULT_FAMILY, MODELS, PRESETS
from fabrictune.trainer_probe.optimizers.learning_rate import LearningRateSchedule
from fabrictune.trainer_probe.optimizers.spec import OptimizerSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees, check_degrees
from fabrictune.trainer_probe.policies import Compilation, Recompute

MAX_SEED = 2**63 - 1
MAX_PLACE = 2**60  # in the order of samples, which counts in 64 bits
MAX_STEP = 2**30

Overlap = Literal["none", "tp", "cp", "pp", "dp", "ep", "tp+pp", "tp+dp", "pp+dp", "all"]
Loading = Literal["machine", "worker"]
Precision = Literal["float64", "float32", "bfloat16", "float16"]
DeviceType = Literal["cpu", "cuda"]


@dataclass(frozen=True, kw_only=True)
class TokenSource:
    """A token file."""

    path: Path = field(metadata={"help": "token file"})


@dataclass(frozen=True, kw_only=True)
class TextSource:
    """Texts, tokenized at the start of a run."""

    paths: tuple[Path, ...] = field(metadata={"help": "text files"})
    tokenizer: Path | None = field(default=None, metadata={"help": "tokenizer.json; without it a byte is an id"})


@dataclass(frozen=True, kw_only=True)
class SyntheticSource:
    """Random ids of the model's vocabulary with a Zipf distribution."""

    num_tokens: int = field(default=2**20, metadata={"help": "ids of an epoch"})

    def __post_init__(self) -> None:
        if self.num_tokens < 1:
            raise InputError(Mistake(where="num_tokens", found=str(self.num_tokens), allowed="1 or more"))


SOURCES: dict[str, type] = {"tokens": TokenSource, "text": TextSource, "synthetic": SyntheticSource}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A training run. Raises InputError with all contradictions."""

    name: FolderName = field(metadata={"help": "of the run and of its record"})
    question: str = field(default="", metadata={"help": "question that the run answers, shown on the report"})
    model: Annotated[ModelSpec, SpecChoice("family", MODELS, default=DEFAULT_FAMILY, presets=PRESETS)] = field(
        default_factory=MODELS[DEFAULT_FAMILY],
        metadata={"help": f"model to train; `preset: NAME` fills in a known one's keys: {', '.join(PRESETS)}"},
    )
    degrees: Degrees = field(default_factory=Degrees, metadata={"help": "division of a step over ranks"})
    data_parallel: DataParallelSpec = field(
        default_factory=DataParallelSpec, metadata={"help": "what data-parallel ranks divide"}
    )
    overlap: Overlap = field(default="all", metadata={"help": "axes whose communication overlaps with work"})
    recompute: Recompute = field(
        default="none",
        metadata={"help": "activations computed again in backward passes: selective (attention) or full (layers)"},
    )
    compile: Compilation = field(
        default="none", metadata={"help": "what torch compiles: layers, which needs a compiler where a rank runs"}
    )
    optimizer: OptimizerSpec = field(default_factory=OptimizerSpec, metadata={"help": "optimizer and its settings"})
    schedule: LearningRateSchedule = field(
        default_factory=LearningRateSchedule, metadata={"help": "learning rate of each step"}
    )
    precision: Precision | None = field(
        default=None, metadata={"help": "of the model; by default bfloat16 on a GPU, float32 on a CPU"}
    )
    device: DeviceType = field(default="cpu", metadata={"help": "device of the model"})
    data: Annotated[Chosen, Choice("source", SOURCES)] = field(
        default=Chosen(name="synthetic", spec=SyntheticSource()), metadata={"help": "training data"}
    )
    weights: Path | None = field(
        default=None,
        metadata={"help": "folder of a Hugging Face checkpoint (safetensors) with the first weights; without it drawn"},
    )
    loader: Loading = field(default="machine", metadata={"help": "one loader per machine, or one per worker"})
    num_steps: Annotated[int, Field(ge=1)] = field(default=20, metadata={"help": "steps of this run"})
    first_step: Annotated[int, Field(ge=0, le=MAX_STEP)] = field(
        default=0, metadata={"help": "number of this run's first step, from which the learning rate follows"}
    )
    first_sample: Annotated[int, Field(ge=0, le=MAX_PLACE)] | None = field(
        default=None,
        metadata={"help": "first place in the order of samples; by default `first_step` times the samples of a step"},
    )
    collect_garbage_every: Annotated[int, Field(ge=0)] = field(
        default=100,
        metadata={"help": "steps between two garbage collections, on all ranks at once; 0 leaves them to Python"},
    )
    num_traced_steps: Annotated[int, Field(ge=1)] = field(
        default=2, metadata={"help": "last steps whose requests are recorded"}
    )
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = field(default=0, metadata={"help": "seed of the order of samples"})

    def __post_init__(self) -> None:
        mistakes = list(_mistakes_in_degrees(self)) or list(check_strategy(self.data_parallel, self.degrees))
        if mistakes:
            raise InputError(*mistakes)

    @property
    def precision_name(self) -> Precision:
        """The precision; by default that of the device."""
        return self.precision or ("bfloat16" if self.device == "cuda" else "float32")

    @property
    def end_step(self) -> int:
        """The number after the last step's."""
        return self.first_step + self.num_steps

    @property
    def first_place(self) -> int:
        """First place in the order of samples."""
        return self.first_step * self.degrees.samples_per_step if self.first_sample is None else self.first_sample

    def batches(self, path: Path) -> BatchSpec:
        """Return the batches of a token file."""
        return BatchSpec(
            path=str(path),
            sequence_length=self.model.sequence,
            batch_size=self.degrees.samples_per_step,
            vocabulary_size=self.model.vocabulary,
            num_replicas=self.degrees.layout.dp,
            seed=self.seed,
        )

    def settings(self) -> dict[str, Any]:
        """Return every setting by its dotted name, as JSON values; of a file only the name, without its folder."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=lambda path: path.name))
        plain["model"] = {"family": self.model.family, **plain["model"]}
        return dict(_flat(plain, ""))


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
            is_infinite = isinstance(value, float) and not math.isfinite(value)  # which JSON cannot express
            yield f"{prefix}{key}", str(value) if is_infinite else value
