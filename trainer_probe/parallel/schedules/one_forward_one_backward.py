"""1F1B: forward passes until a rank's first gradient arrives, then one forward and one backward pass in turn.

The last rank answers each forward pass at once; a rank i places before it is i micro-batches ahead, so no rank keeps
more than p.

Source: Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP 2019, section 3.2;
Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021, section
2.2.1, for the bubble.
"""

from typing import ClassVar

from fabrictune.trainer_probe.parallel.schedule import Pass, PassTimes, PipelineShape, Schedule


class OneForwardOneBackward(Schedule):
    """One chunk a rank."""

    bubble_formula: ClassVar[str] = "(p - 1) / m"

    def passes_of_rank(self, shape: PipelineShape, rank: int) -> tuple[Pass, ...]:
        """Return p - 1 - r forward passes, then pairs, then the remaining backward passes."""
        forward = [Pass(kind="forward", stage=rank, batch=batch) for batch in range(shape.num_batches)]
        backward = [Pass(kind="backward", stage=rank, batch=batch) for batch in range(shape.num_batches)]
        return one_in_turn(forward, backward, num_ahead=shape.pp - 1 - rank)

    def bubble_fraction(self, shape: PipelineShape, times: PassTimes) -> float:
        """Return (p - 1) / m."""
        return (shape.pp - 1) / shape.num_batches


def one_in_turn(forward: list[Pass], backward: list[Pass], *, num_ahead: int) -> tuple[Pass, ...]:
    """Return `num_ahead` forward passes, one of both in turn, and the remaining backward passes."""
    num_ahead = min(num_ahead, len(forward))
    order = forward[:num_ahead]
    for ahead, behind in zip(forward[num_ahead:], backward, strict=False):
        order += [ahead, behind]
    return tuple(order + backward[len(forward) - num_ahead :])
