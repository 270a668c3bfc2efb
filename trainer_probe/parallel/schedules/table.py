"""The table of pipeline schedules."""

from collections.abc import Mapping

from fabrictune.trainer_probe.parallel.schedule import Pass, PipelineShape, Schedule, ScheduleName
from fabrictune.trainer_probe.parallel.schedules.interleaved import Interleaved
from fabrictune.trainer_probe.parallel.schedules.one_forward_one_backward import OneForwardOneBackward
from fabrictune.trainer_probe.parallel.schedules.zero_bubble_h1 import ZeroBubbleH1

SCHEDULES: Mapping[ScheduleName, Schedule] = {
    "1f1b": OneForwardOneBackward(),
    "interleaved": Interleaved(),
    "zb-h1": ZeroBubbleH1(),
}


def schedule_of(shape: PipelineShape) -> Schedule:
    """Return the schedule of a pipeline."""
    return SCHEDULES[shape.schedule_name]


def passes_of_rank(shape: PipelineShape, rank: int) -> tuple[Pass, ...]:
    """Return the passes of the pipeline's rank `rank` in its order."""
    return schedule_of(shape).passes_of_rank(shape, rank)
