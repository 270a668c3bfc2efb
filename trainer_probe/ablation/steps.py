"""Ablation steps: a recipe without its techniques, then with one more each, in the order of the source's table.

Source: MegaScale (NSDI'24), Table 3. It adds the axes' overlaps to one another; here each is also measured alone, since
on a shared machine one hides behind the other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fabrictune.trainer_probe.model.spec import Technique
from fabrictune.trainer_probe.recipes.schema import Overlap, Recipe

BATCH_FACTOR = 4  # of the last step: LAMB's larger batch
WINDOW_SHARE = 4  # of a sequence, where the recipe has no window
WITHOUT = "no techniques"  # the first step of a model that has none of its own


@dataclass(frozen=True, kw_only=True)
class AblationStep:
    """One technique added to another step, and compared with it."""

    name: str
    base: str | None  # the step it adds to; None for the first
    add: Callable[[Recipe], Recipe]


def ablation_steps(recipe: Recipe) -> tuple[AblationStep, ...]:
    """Return the steps for a recipe, with its model's techniques, and with its own window if it has one."""
    techniques = recipe.model.techniques
    names = [techniques[0].plain_name if techniques else WITHOUT, *(technique.name for technique in techniques)]
    return (
        AblationStep(name=names[0], base=None, add=_strip),
        *(
            AblationStep(name=technique.name, base=base, add=_use(technique))
            for base, technique in zip(names, techniques, strict=False)
        ),
        AblationStep(name="sliding window", base=names[-1], add=_narrow(recipe.model.window)),
        AblationStep(name="overlap tp", base="sliding window", add=_overlap("tp")),
        *_context_steps(recipe),
        AblationStep(name="overlap pp", base="sliding window", add=_overlap("pp")),
        AblationStep(name="overlap dp", base="sliding window", add=_overlap("dp")),
        AblationStep(name="overlap all", base="sliding window", add=_overlap("all")),
        AblationStep(name="one loader", base="overlap all", add=lambda recipe: replace(recipe, loader="machine")),
        AblationStep(name=f"LAMB, {BATCH_FACTOR}x batch", base="one loader", add=_enlarge),
    )


def _context_steps(recipe: Recipe) -> tuple[AblationStep, ...]:
    is_divided = recipe.degrees.layout.cp > 1
    return (AblationStep(name="overlap cp", base="sliding window", add=_overlap("cp")),) if is_divided else ()


def ablate(recipe: Recipe) -> Mapping[str, Recipe]:
    """Return the recipe of each ablation step, by name."""
    recipes: dict[str, Recipe] = {}
    for step in ablation_steps(recipe):
        recipes[step.name] = step.add(recipe if step.base is None else recipes[step.base])
    return recipes


def _strip(recipe: Recipe) -> Recipe:
    stripped = replace(recipe, overlap="none", loader="worker")
    plain = {technique.key: technique.plain for technique in recipe.model.techniques}
    return _change(stripped, model={**plain, "window": None}, optimizer={"name": "adamw"})


def _use(technique: Technique) -> Callable[[Recipe], Recipe]:
    return lambda recipe: _change(recipe, model={technique.key: technique.used})


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
