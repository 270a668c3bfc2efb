"""The rungs: a recipe without its techniques, then with one more each, in the order in which they are usually told.

Source: MegaScale (NSDI'24), Table 3. It adds the axes' overlaps to one another; here each is also tried alone, since
on a shared machine one hides behind the other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fabrictune.trainer_probe.recipes.schema import Overlap, Recipe

BATCH_FACTOR = 4  # of the last rung: LAMB's larger batch
WINDOW_SHARE = 4  # of a sequence, where the recipe has no window


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One more technique than another rung has, and what it is compared with."""

    name: str
    base: str | None  # the rung it adds to; None for the first
    add: Callable[[Recipe], Recipe]


def ladder(recipe: Recipe) -> tuple[Rung, ...]:
    """Return the rungs for a recipe, whose own window, if it has one, is the one that is tried."""
    return (
        Rung(name="serial block", base=None, add=_strip),
        Rung(
            name="parallel block", base="serial block", add=lambda recipe: _change(recipe, model={"block": "parallel"})
        ),
        Rung(name="sliding window", base="parallel block", add=_narrow(recipe.model.window)),
        Rung(name="overlap tp", base="sliding window", add=_overlap("tp")),
        Rung(name="overlap pp", base="sliding window", add=_overlap("pp")),
        Rung(name="overlap dp", base="sliding window", add=_overlap("dp")),
        Rung(name="overlap all", base="sliding window", add=_overlap("all")),
        Rung(name="one loader", base="overlap all", add=lambda recipe: replace(recipe, loader="machine")),
        Rung(name=f"LAMB, {BATCH_FACTOR}x batch", base="one loader", add=_enlarge),
    )


def climb(recipe: Recipe) -> Mapping[str, Recipe]:
    """Return the recipe of each rung, by name."""
    recipes: dict[str, Recipe] = {}
    for rung in ladder(recipe):
        recipes[rung.name] = rung.add(recipe if rung.base is None else recipes[rung.base])
    return recipes


def _strip(recipe: Recipe) -> Recipe:
    stripped = replace(recipe, overlap="none", loader="worker")
    return _change(stripped, model={"block": "serial", "window": None}, optimizer={"name": "adamw"})


def _narrow(window: int | None) -> Callable[[Recipe], Recipe]:
    return lambda recipe: _change(recipe, model={"window": window or max(1, recipe.model.sequence // WINDOW_SHARE)})


def _overlap(policy: Overlap) -> Callable[[Recipe], Recipe]:
    return lambda recipe: replace(recipe, overlap=policy)


def _enlarge(recipe: Recipe) -> Recipe:
    num_batches = BATCH_FACTOR * recipe.degrees.num_batches
    return _change(recipe, degrees={"num_batches": num_batches}, optimizer={"name": "lamb"})


def _change(recipe: Recipe, **sections: dict[str, Any]) -> Recipe:
    """Return the recipe with some fields of some sections changed."""
    return replace(recipe, **{name: replace(getattr(recipe, name), **fields) for name, fields in sections.items()})
