"""Recipes of published large models: their sizes, and each axis' bytes by closed form beside the plan's ledger."""

from collections import Counter

import pytest

from fabrictune.foundation.traces import Operation
from fabrictune.trainer_probe.model.spec import num_parameters
from fabrictune.trainer_probe.model.table import PRESETS
from fabrictune.trainer_probe.parallel.volumes import step_volumes
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.operation_costs import RooflineCosts
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

pytest.importorskip("torch")

from fabrictune.trainer_probe.planning.dry_run import plan_rank


def test_llama_405b_has_its_published_size() -> None:
    """126 layers of width 16,384, 8 heads of keys and values, 128,256 ids: 405.9 billion weights; 14,336 GPUs."""
    recipe = load_recipe(find_recipe("405b"))
    assert num_parameters(recipe.model) == 405_853_388_800
    assert (recipe.degrees.layout.world_size, recipe.degrees.samples_per_step) == (14_336, 1_792)


def test_a_mixture_of_deepseeks_size_misses_by_what_the_table_cannot_say() -> None:
    """58 of 61 layers have experts there: three of 256 experts of 3 h 2048 weights too many, against dense ones, a
    shared expert and another attention: 702 billion weights for 671.
    """  # fmt: skip
    recipe = load_recipe(find_recipe("671b"))
    expert = 3 * 7168 * 2048
    assert num_parameters(PRESETS["moe-671b"]) == 702_234_588_160
    assert abs(702_234_588_160 - 3 * 256 * expert - 671e9) < 0.01 * 671e9
    assert (recipe.degrees.layout.world_size, recipe.degrees.samples_per_step) == (2_048, 15_360)


@pytest.mark.parametrize("name", ["405b", "671b"])
@pytest.mark.parametrize("place", [0, 7, -1])
def test_each_axis_moves_what_the_closed_form_says(name: str, place: int) -> None:
    """To the byte, by axis and operation, at the first place of the pipeline, in the middle, and at the last."""
    recipe = load_recipe(find_recipe(name))
    place %= recipe.degrees.layout.pp
    rank = recipe.degrees.layout.rank(tp=recipe.degrees.layout.tp - 1, dp=70, pp=place)
    trace = plan_rank(recipe, rank, RooflineCosts(HardwareSpec())).trace
    moved: Counter[tuple[str, Operation]] = Counter()
    for axis, operation, size in zip(trace.axis_N, trace.operation_N.tolist(), trace.bytes_N.tolist(), strict=True):
        moved[axis, Operation(operation)] += size
    expected = step_volumes(
        recipe.model,
        recipe.degrees,
        place=place,
        element_bytes=2,
        data_parallel=recipe.data_parallel,
        recompute=recipe.recompute,
    )
    assert +moved == expected


def test_experts_move_two_exchanges_each_way() -> None:
    """671b: 4 layers a place, 120 micro-batches, 4 exchanges of 8 choices of 4,096 tokens of 7,168 numbers in bf16."""
    recipe = load_recipe(find_recipe("671b"))
    volumes = step_volumes(recipe.model, recipe.degrees, place=7, element_bytes=2, recompute=recipe.recompute)
    assert volumes["ep", Operation.ALL_TO_ALL] == 4 * 120 * 4 * 8 * 4096 * 7168 * 2
