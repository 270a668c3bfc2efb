"""Gradient groups: the ranks that have the same weight, sum its gradients, and divide its optimizer's state.

A group is named as in `Comm.members`. Weights of one stage with different groups have flat buffers of their own.
"""

from collections.abc import Iterable, Mapping

from fabrictune.foundation.layout import Axis, ParallelLayout
from fabrictune.trainer_probe.model.weights import WeightSpec


def gradient_group(weight: WeightSpec, layout: ParallelLayout) -> Axis:
    """Return the group over which the gradients of a weight are summed: all that have it, each with other tokens."""
    return layout.replica_axis


def by_gradient_group(weights: Iterable[WeightSpec], layout: ParallelLayout) -> Mapping[Axis, list[WeightSpec]]:
    """Return the weights of each group, in order, groups in order of their first weight."""
    weights_by_group: dict[Axis, list[WeightSpec]] = {}
    for weight in weights:
        weights_by_group.setdefault(gradient_group(weight, layout), []).append(weight)
    return weights_by_group
