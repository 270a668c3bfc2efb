"""ZB-H1: 1F1B whose backward passes leave the weights' gradients for later, so that gradients of inputs arrive sooner.

Rank r runs the weights' pass of r micro-batches before. All ranks then hold p micro-batches, as the first one of 1F1B
does, and the weights' passes of the last ranks run while the first ones still wait for gradients.

Source: Qi et al., "Zero bubble pipeline parallelism", ICLR 2024, section 2.1 and Table 1: a bubble of
(p - 1) (F + B - W), which holds for m >= p and where W takes no longer than F and B; the general form agrees with the
executed schedule for all p <= 8, m <= 12, F <= 6, B <= 8, W <= 9.
"""

from typing import ClassVar

from fabrictune.trainer_probe.parallel.schedule import Pass, PassTimes, PipelineShape, Schedule
from fabrictune.trainer_probe.parallel.schedules.one_forward_one_backward import OneForwardOneBackward


class ZeroBubbleH1(Schedule):
    """One chunk a rank, memory of 1F1B, a third of its bubble where all passes take as long."""

    splits_backward: ClassVar[bool] = True
    bubble_formula: ClassVar[str] = "((p - 1) (F + B) - (min(m, p) - 1) min(F, B, W)) / (m (F + B + W))"

    def passes_of_rank(self, shape: PipelineShape, rank: int) -> tuple[Pass, ...]:
        """Return 1F1B's passes, with the weights' pass of micro-batch i behind the backward pass of i + r."""
        passes: list[Pass] = []
        for step in OneForwardOneBackward().passes_of_rank(shape, rank):
            passes.append(step)
            if step.kind == "backward" and step.batch >= rank:
                passes.append(Pass(kind="weights", stage=rank, batch=step.batch - rank))
        rest = range(max(0, shape.num_batches - rank), shape.num_batches)
        return (*passes, *(Pass(kind="weights", stage=rank, batch=batch) for batch in rest))

    def bubble_fraction(self, shape: PipelineShape, times: PassTimes) -> float:
        """Return ((p - 1) (F + B) - (min(m, p) - 1) min(F, B, W)) / (m (F + B + W))."""
        filled = (min(shape.num_batches, shape.pp) - 1) * min(times.forward, times.backward, times.weights)
        idle = (shape.pp - 1) * (times.forward + times.backward) - filled
        return idle / (shape.num_batches * times.total)
