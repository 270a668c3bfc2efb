"""The study of a step's time: Table 2 of MegaScale, and lines that add up."""

import pytest

pytest.importorskip("torch")

from benchmarks.studies.step_time import TABLE_2, parts_of_step, plan_175b
from fabrictune.foundation.units import PS_PER_S
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.plan import make_plan
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe


@pytest.mark.slow
@pytest.mark.parametrize(("num_samples", "num_gpus", "published_s"), TABLE_2)
def test_a_published_step_takes_at_most_a_quarter_longer_than_the_plan(
    num_samples: int, num_gpus: int, published_s: float
) -> None:
    """With gradients added apart, for which it was expected; and not less than any plan, which is a lower bound."""
    apart, fused = (
        plan_175b(num_samples, num_gpus, HardwareSpec(), is_fused=is_fused).at_best.step_ps / PS_PER_S
        for is_fused in (False, True)
    )
    assert 1.0 <= published_s / apart <= 1.25
    assert fused < apart


def test_the_lines_add_up_to_the_step() -> None:
    """To the step at best, of a plan whose stages are not equal."""
    plan = make_plan(load_recipe(find_recipe("tiny")), HardwareSpec())
    total_s = sum(duration_s for _, duration_s in parts_of_step(plan))
    assert total_s * PS_PER_S == pytest.approx(plan.at_best.step_ps, rel=1e-9)
