"""A plan of one rank a pipeline place, against plans of every rank; what carries it in `test_trainer`, real ranks."""

import pytest

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.parallel.volumes import step_volumes
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.operation_costs import RooflineCosts
from fabrictune.trainer_probe.planning.plan import make_plan
from fabrictune.trainer_probe.recipes.schema import Recipe

pytest.importorskip("torch")

from fabrictune.trainer_probe.planning.dry_run import plan_rank

RECIPE = Recipe(
    name="twelve",
    model=GptSpec(width=16, depth=4, num_heads=4, vocabulary=12, sequence=8, window=3),
    degrees=Degrees(layout=ParallelLayout(tp=2, pp=2, dp=3), virtual=2, num_batches=4, tensor_chunks=2),
    precision="bfloat16",
)
HARDWARE = HardwareSpec(achieved_flops_per_s=1e9, memory_bytes_per_s=1e9)


def test_instances_are_the_plans_of_their_ranks() -> None:
    """All twelve ranks, row by row: groups' members, peers, bytes, work before, names and waits.

    The update comes last: shards of other data-parallel ranks are cut at other weights.
    """
    job = make_plan(RECIPE, HARDWARE).trace
    for rank in range(12):
        found, expected = job.of_rank(rank), plan_rank(RECIPE, rank, RooflineCosts(HARDWARE)).trace
        assert [found.groups[group] for group in found.group_N] == [expected.groups[one] for one in expected.group_N]
        for name in ("rank_N", "operation_N", "peer_N", "bytes_N", "axis_N", "tag_N"):
            assert list(getattr(found, name)) == list(getattr(expected, name)), (rank, name)
        *work_ps, update_ps = expected.compute_before_ps_N.tolist()
        assert found.compute_before_ps_N[:-1].tolist() == work_ps
        assert found.compute_before_ps_N[-1] == pytest.approx(update_ps, rel=0.01)
        assert found.dependencies.row_D.tolist() == expected.dependencies.row_D.tolist()


@pytest.mark.parametrize("place", [0, 1])
def test_bytes_are_those_of_the_closed_form(place: int) -> None:
    """Of a place's rank, over all axes and operations."""
    rows = make_plan(RECIPE, HARDWARE).trace.of_rank(RECIPE.degrees.layout.rank(tp=1, dp=2, pp=place))
    expected = step_volumes(RECIPE.model, RECIPE.degrees, place=place, element_bytes=2)
    assert rows.bytes_N.sum() == sum(expected.values())
