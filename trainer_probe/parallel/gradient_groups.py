"""Gradient groups: the ranks that have the same weight, sum its gradients, and divide its optimizer's state.

A group is named as in `Comm.members`. Weights of one stage with different groups have flat buffers of their own.
"""

from collections.abc import Iterable, Mapping

from fabrictune.foundation.layout import Axis
from fabrictune.trainer_probe.model.weights import WeightSpec


def gradient_group(weight: WeightSpec) -> Axis:
    """Return the group over which the gradients of a weight are summed."""
    return "dp"


def by_gradient_group(weights: Iterable[WeightSpec]) -> Mapping[Axis, list[WeightSpec]]:
    """Return the weights of each group, in order, groups in order of their first weight."""
    weights_by_group: dict[Axis, list[WeightSpec]] = {}
    for weight in weights:
        weights_by_group.setdefault(gradient_group(weight), []).append(weight)
    return weights_by_group
