"""Ablation steps, as recipes."""

from fabrictune.trainer_probe.ablation.steps import ablate, ablation_steps
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe

TINY = load_recipe(find_recipe("tiny"))


def settings_that_differ(one: Recipe, other: Recipe) -> dict[str, object]:
    before, after = one.settings(), other.settings()
    return {name: value for name, value in after.items() if value != before[name]}


def test_each_step_adds_one_technique_to_another() -> None:
    """What differs between a step and its base, in the order of the paper's table."""
    recipes = ablate(TINY)
    added = {
        step.name: settings_that_differ(recipes[step.base or step.name], recipes[step.name])
        for step in ablation_steps(TINY)
    }
    assert added == {
        "serial block": {},
        "parallel block": {"model.block": "parallel"},
        "sliding window": {"model.window": 16},
        "overlap tp": {"overlap": "tp"},
        "overlap pp": {"overlap": "pp"},
        "overlap dp": {"overlap": "dp"},
        "overlap all": {"overlap": "all"},
        "one loader": {"loader": "machine"},
        "LAMB, 4x batch": {"degrees.num_batches": 16, "optimizer.name": "lamb"},
    }


def test_the_first_step_has_none_of_them() -> None:
    """Whatever the recipe has."""
    first = ablate(TINY)["serial block"]
    assert isinstance(first.model, GptSpec)
    assert (first.model.block, first.model.window, first.overlap, first.loader) == ("serial", None, "none", "worker")


def test_a_recipe_without_a_window_tries_a_quarter_of_its_sequence() -> None:
    """64 tokens: the latest 16."""
    recipe = load_recipe(find_recipe("tiny"), {"model.window": None})
    assert ablate(recipe)["sliding window"].model.window == 16


def test_a_ring_has_a_step_of_its_own() -> None:
    """Where sequences are divided, what its overlap gains is measured like that of the other axes."""
    ring = load_recipe(find_recipe("tiny"), {"degrees": {"layout": {"cp": 2}}})
    names, with_ring = ([step.name for step in ablation_steps(recipe)] for recipe in (TINY, ring))
    assert "overlap cp" not in names
    assert [name for name in with_ring if name != "overlap cp"] == names
