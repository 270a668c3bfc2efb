"""Gradient groups: the ranks that have the same weight, sum its gradients, and divide its optimizer's state.

A group is named as in `Comm.members`. Weights of one stage with different groups have flat buffers of their own. Those
of experts are summed over the ranks with the same experts, all others over all data-parallel ranks.
"""

from collections.abc import Iterable, Mapping

from fabrictune.foundation.layout import Axis, ParallelLayout
from fabrictune.trainer_probe.model.weights import WeightSpec


def gradient_group(weight: WeightSpec, layout: ParallelLayout) -> Axis:
    """Return the group over which the gradients of a weight are summed: all that have it, each with other tokens."""
    return layout.expert_replica_axis if weight.is_of_experts else layout.replica_axis


def by_gradient_group(
    weights: Iterable[WeightSpec], layout: ParallelLayout, expert_place: int = 0
) -> Mapping[Axis, list[WeightSpec]]:
    """Return the weights of each group, in order, groups in order of their first weight.

    Of experts those of the rank at `expert_place` of its expert-parallel group.
    """
    weights_by_group: dict[Axis, list[WeightSpec]] = {}
    for weight in weights:
        own = weight.of_experts(layout.ep, expert_place)
        weights_by_group.setdefault(gradient_group(weight, layout), []).append(own)
    return weights_by_group
