"""The study of a step's time: Table 2 of MegaScale, and lines that add up."""

import pytest

pytest.importorskip("torch")

from benchmarks.studies.step_time import TABLE_2, parts_of_step, plan_175b
from fabrictune.foundation.units import PS_PER_S
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.plan import make_plan
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

RATIOS = (  # of decision 0071, as the trainer is and with gradients added apart
    (1.160, 1.089),
    (1.184, 1.112),
    (1.226, 1.152),
    (1.253, 1.177),
    (1.282, 1.204),
    (1.304, 1.225),
    (1.347, 1.266),
    (1.315, 1.236),
)


@pytest.mark.slow
@pytest.mark.parametrize(("row", "ratios"), [*zip(TABLE_2, RATIOS, strict=True)])
def test_a_published_step_takes_longer_than_the_plan(row: tuple[int, int, float], ratios: tuple[float, float]) -> None:
    """By what the decision says: a faster trainer has a shorter plan, and both are to be stated anew."""
    num_samples, num_gpus, published_s = row
    for is_fused, ratio in zip((True, False), ratios, strict=True):
        plan = plan_175b(num_samples, num_gpus, HardwareSpec(), is_fused=is_fused)
        assert published_s / (plan.at_best.step_ps / PS_PER_S) == pytest.approx(ratio, abs=6e-4)


def test_the_lines_add_up_to_the_step() -> None:
    """To the step at best, of a plan whose stages are not equal."""
    plan = make_plan(load_recipe(find_recipe("tiny")), HardwareSpec())
    total_s = sum(duration_s for _, duration_s in parts_of_step(plan))
    assert total_s * PS_PER_S == pytest.approx(plan.at_best.step_ps, rel=1e-9)
