"""The stages of a rank in order of first use: when each is gathered, and when its gradients are summed.

Where data parallelism overlaps, each stage is gathered when the stage before it begins, the first at the beginning of
the step, and summed after its last backward pass. Otherwise all are gathered one after another at the beginning of the
step and summed at its end.
"""

from collections.abc import Mapping
from itertools import pairwise

from fabrictune.trainer_probe.data_parallel.stage import StageWeights
from fabrictune.trainer_probe.policies import OverlapPolicy


class GatheringOrder:
    """When a rank's stages make their requests in a step."""

    def __init__(self, stages: Mapping[int, StageWeights], policy: OverlapPolicy) -> None:
        self._stages = stages
        self._after = dict(pairwise(stages))
        self._is_overlapped = policy.overlaps("dp")

    def start_step(self) -> None:
        """Reset the gradients, and start to gather the first stage's values; gather all where nothing overlaps."""
        for stage in self._stages.values():
            stage.start_step()
        first, *others = self._stages.values()
        for stage in (first,) if self._is_overlapped else (first, *others):
            stage.start_gather()

    def before_first_forward(self, number: int) -> None:
        """Wait for a stage's values; those of the next stage are then in flight."""
        self._stages[number].finish()
        if self._is_overlapped and number in self._after:
            self._stages[self._after[number]].start_gather()

    def after_last_backward(self, number: int) -> None:
        """Start to sum a stage's gradients, where that overlaps with other stages."""
        if self._is_overlapped:
            self._stages[number].start_reduce()

    def finish_step(self) -> None:
        """Wait for all sums, after making them where nothing overlaps."""
        for stage in self._stages.values():
            if not self._is_overlapped:
                stage.start_reduce()
            stage.finish_reduce()
