"""Pipeline schedules compared for one recipe: bubble in closed form, and activations that a GPU keeps.

Times of passes are the operations of a layer's products; a backward pass takes twice a forward pass, of which the
gradients of weights are a part. Left out: the embedding and the head, which make the stages at the ends longer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fabrictune.trainer_probe.data_parallel.costs import check_strategy
from fabrictune.trainer_probe.model.attention_costs import attention_flops
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.parallel.schedule import PassTimes, ScheduleName
from fabrictune.trainer_probe.parallel.schedules.table import SCHEDULES, schedule_of
from fabrictune.trainer_probe.planning.memory import plan_memory
from fabrictune.trainer_probe.policies import Recompute
from fabrictune.trainer_probe.recipes.schema import Recipe


@dataclass(frozen=True, kw_only=True)
class ScheduleCosts:
    """What a schedule costs."""

    schedule: ScheduleName
    num_chunks: int  # of a rank
    bubble_fraction: float  # idle over busy time, by the closed form
    activations_bytes: int  # of the GPU that keeps most


def pass_times(model: ModelSpec, recompute: Recompute = "none") -> PassTimes:
    """Return the times of all layers' passes, in operations of a token."""
    sublayers = [sublayer for layer in range(model.depth) for sublayer in model.sublayers(layer).values()]
    forward = sum(sublayer.dispatched_flops() for sublayer in sublayers)
    weights = sum(sublayer.product_flops() for sublayer in sublayers)
    again = {"none": 0, "selective": attention_flops(model) * model.depth, "full": forward}[recompute]
    return PassTimes(forward=forward, backward=2 * forward + again - weights, weights=weights)


def bubble_fraction(recipe: Recipe) -> float:
    """Return the bubble of a recipe's schedule in closed form."""
    shape = recipe.degrees.pipeline
    return schedule_of(shape).bubble_fraction(shape, pass_times(recipe.model, recipe.recompute))


def compare_schedules(recipe: Recipe) -> Iterator[ScheduleCosts]:
    """Yield the costs of each schedule that degrees and strategy allow; only the interleaved one has several chunks."""
    for name in SCHEDULES:
        virtual = recipe.degrees.virtual if name == "interleaved" else 1
        degrees = replace(recipe.degrees, schedule=name, virtual=virtual)
        if any(SCHEDULES[name].mistakes(degrees.pipeline)) or any(check_strategy(recipe.data_parallel, degrees)):
            continue
        other = replace(recipe, degrees=degrees)
        yield ScheduleCosts(
            schedule=name,
            num_chunks=virtual,
            bubble_fraction=bubble_fraction(other),
            activations_bytes=max(plan_memory(other, place).activations_bytes for place in range(degrees.layout.pp)),
        )
