"""Training systems of MegaScale's tables: a recipe's keys and a profile for each, and the published steps.

What the paper does not say is assumed: micro-batches of one sample, float32 gradients, a window of 1,230 tokens, which
its MFU implies (1.065 of 1.077 Tflop a token), and four chunks of tensor-parallel products.

Source: MegaScale (NSDI'24), Tables 2 and 3, sections 3 and 6.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fabrictune.hardware.files import load_profile
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.trainer_probe.prediction.dry_run import write_program
from fabrictune.trainer_probe.prediction.predictor import Prediction, predict
from fabrictune.trainer_probe.prediction.program import StepProgram
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe

FOLDER = Path(__file__).parent
RANKS_OF_A_REPLICA = 64
WINDOW = 1230
TENSOR_CHUNKS = 4
Settings = Mapping[str, Any]

MEGATRON: Settings = {
    "overlap": "tp",
    "model.block": "serial",
    "degrees.tensor_chunks": 1,
    "optimizer.name": "adamw",
    "data_parallel.gradient_precision": "float32",
}
MEGASCALE: Settings = {
    "overlap": "all",
    "model.block": "parallel",
    "model.window": WINDOW,
    "degrees.tensor_chunks": TENSOR_CHUNKS,
    "compile": "layers",
    "data_parallel.gradient_precision": "float32",
}


@dataclass(frozen=True, kw_only=True)
class PublishedStep:
    """A row of Table 2."""

    system: str
    num_samples: int
    num_gpus: int
    step_s: float


TABLE_2 = tuple(
    PublishedStep(system=system, num_samples=num_samples, num_gpus=num_gpus, step_s=step_s)
    for num_samples, num_gpus, of_megatron, of_megascale in (
        (768, 256, 40.0, 32.0),
        (768, 512, 21.2, 16.5),
        (768, 768, 15.2, 11.5),
        (768, 1024, 11.9, 8.9),
        (6144, 3072, 29.02, 23.66),
        (6144, 6144, 14.78, 12.21),
        (6144, 8192, 12.24, 9.56),
        (6144, 12288, 8.57, 6.34),
    )
    for system, step_s in (("megatron", of_megatron), ("megascale", of_megascale))
)
SETTINGS: Mapping[str, Settings] = {"megatron": MEGATRON, "megascale": MEGASCALE}


@dataclass(frozen=True, kw_only=True)
class Rung:
    """A row of Table 3: what it adds to the one before."""

    name: str
    mfu: float  # percent
    adds: Settings
    system: str = "megatron"  # whose profile and fitted numbers it takes
    num_samples: int = 256


TABLE_3 = (
    Rung(name="Megatron-LM", mfu=47.7, adds={}),
    Rung(name="parallel block", mfu=52.3, adds={"model.block": "parallel"}),
    Rung(name="sliding window", mfu=53.3, adds={"model.window": WINDOW}),
    Rung(name="tensor overlap", mfu=55.5, adds={"degrees.tensor_chunks": TENSOR_CHUNKS}, system="fused"),
    Rung(name="pipeline overlap", mfu=58.0, adds={"overlap": "tp+pp"}, system="fused"),
    Rung(name="data overlap", mfu=59.5, adds={"overlap": "all"}, system="fused"),
    Rung(name="operators", mfu=61.2, adds={"compile": "layers"}, system="operators"),
    Rung(name="problematic code removed", mfu=62.3, adds={}, system="megascale"),
    Rung(name="LAMB", mfu=65.3, adds={"optimizer.name": "lamb"}, system="megascale", num_samples=768),
)
RUNG_GPUS = 256


@cache
def profile_of(system: str) -> HardwareProfile:
    """Return the profile of a system of Table 2."""
    return load_profile(FOLDER / f"{system}.yaml")


def recipe_of(settings: Settings, num_samples: int, num_gpus: int) -> Recipe:
    """Return the 175B recipe of a system on a number of GPUs."""
    dp = num_gpus // RANKS_OF_A_REPLICA
    changes = {**settings, "degrees.layout.dp": dp, "degrees.num_batches": num_samples // dp}
    return load_recipe(find_recipe("175b"), changes)


def predict_row(row: PublishedStep) -> Prediction:
    """Return the prediction of a row of Table 2 with nothing fitted."""
    recipe = recipe_of(SETTINGS[row.system], row.num_samples, row.num_gpus)
    return predict(recipe, program_of(recipe), profile_of(row.system))


def program_of(recipe: Recipe) -> StepProgram:
    """Return the program of a recipe's step."""
    return write_program(recipe)
