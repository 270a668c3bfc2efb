"""What to change first: each value of the profile a tenth better, and each overlap that the recipe does not have."""

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from typing import get_args

from fabrictune.trainer_probe.policies import POLICIES
from fabrictune.trainer_probe.prediction.dry_run import write_program
from fabrictune.trainer_probe.prediction.elasticities import STEP
from fabrictune.trainer_probe.prediction.intervals import share_interval
from fabrictune.trainer_probe.prediction.predictor import ADDED_BY, Part, Prediction, predict
from fabrictune.trainer_probe.recipes.schema import Overlap, Recipe

_OVERLAPPED = ("tp", "pp", "dp")  # axes that policies join


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of the recipe or the hardware, and the step with it."""

    what: str
    step_s: float
    gain_fraction: float  # of the step that it saves; negative where the step gets longer
    gain_interval: tuple[float, float]  # of 90 %


def changes(prediction: Prediction) -> list[Change]:
    """Return changes, the most useful first; those of the recipe take a dry run each."""
    found = [*_of_values(prediction), *_of_recipe(prediction)]
    return sorted(found, key=lambda change: -change.gain_fraction)


def _of_values(prediction: Prediction) -> Iterator[Change]:
    for number, value in enumerate(prediction.elasticities):
        sign = "+" if value.is_better_larger else "-"
        most = max(prediction.parts, key=lambda part: abs(part.slope_V[number]))
        yield _change(prediction, f"{value.key} {sign}{STEP:.0%}", value.gain_fraction, most)


def _of_recipe(prediction: Prediction) -> Iterator[Change]:
    for what, other, part_name in _other_recipes(prediction.recipe):
        changed_s = predict(other, write_program(other), prediction.profile).step_s
        part = next((part for part in prediction.parts if part.name == part_name), None)
        yield _change(prediction, what, 1 - changed_s / prediction.step_s, part)


def _change(prediction: Prediction, what: str, gain_fraction: float, part: Part | None) -> Change:
    """Return a change whose gain is as uncertain as the share of the part of the step that it is made of."""
    low, high = (1.0, 1.0) if part is None or not part.seconds else share_interval(prediction, part)
    ends = sorted((gain_fraction * low, gain_fraction * high))
    return Change(
        what=what,
        step_s=prediction.step_s * (1 - gain_fraction),
        gain_fraction=gain_fraction,
        gain_interval=(ends[0], ends[1]),
    )


def _other_recipes(recipe: Recipe) -> Iterator[tuple[str, Recipe, str]]:
    """Yield recipes with one more overlap, or with compiled layers, and the part of a step that it takes from."""
    layout = recipe.degrees.layout
    used = {axis for axis in layout.axes if layout.degree(axis) > 1}
    own = POLICIES[recipe.overlap].axes & used
    for axis in _OVERLAPPED:
        name = _policy_of(own | {axis}, used)
        if axis in used - own and name is not None:
            yield f"overlap {axis}: overlap={name}", replace(recipe, overlap=name), f"{ADDED_BY} {axis}"
    if recipe.compile == "none":
        yield "compile=layers", replace(recipe, compile="layers"), "memory"


def _policy_of(axes: Set[str], used: Set[str]) -> Overlap | None:
    """Return the first policy that overlaps these of the axes that are used, and no other."""
    names: tuple[Overlap, ...] = get_args(Overlap)
    return next((name for name in names if POLICIES[name].axes & used == axes), None)
