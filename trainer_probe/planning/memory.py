"""Memory of a GPU in a step, in closed form: the state of the model, and activations kept by the schedule.

State: each stage's weights and gradients, the optimizer's two moments, and for a model in half precision a master copy
of its values, each whole or divided by the strategy of data parallelism (`data_parallel/costs.py`).

Activations: tensors that autograd keeps of a micro-batch from its forward to its backward pass through a stage, which
each sublayer of a model says for itself.

Source: Korthikanti et al., "Reducing activation recomputation in large transformer models", section 4, for the method;
the sums are those of the models as written, which a test compares with the tensors that autograd keeps. Left out:
tensors that live within one pass; single precision where no kernel for half precision attends; buffers of libraries;
the allocator's gaps.
"""

from dataclasses import dataclass
from itertools import accumulate

from fabrictune.trainer_probe.data_parallel.costs import state_bytes
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.model.sublayers import Share
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.parallel.schedule import PassKind
from fabrictune.trainer_probe.parallel.schedules.table import passes_of_rank, schedule_of
from fabrictune.trainer_probe.parallel.volumes import share_of, stages_of
from fabrictune.trainer_probe.policies import POLICIES, Recompute
from fabrictune.trainer_probe.recipes.schema import Precision, Recipe

ELEMENT_BYTES: dict[Precision, int] = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
_ID_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """Bytes of one GPU."""

    weights_bytes: int  # with those that a pass gathers for a while
    gradients_bytes: int  # with those that a pass collects until they are summed
    optimizer_bytes: int  # moments, and a master copy of the values
    activations_bytes: int  # at most

    @property
    def total_bytes(self) -> int:
        """Sum of all parts."""
        return self.weights_bytes + self.gradients_bytes + self.optimizer_bytes + self.activations_bytes


def plan_memory(recipe: Recipe, place: int) -> MemoryPlan:
    """Return the memory of the ranks at a place of the pipeline."""
    degrees, element_bytes = recipe.degrees, ELEMENT_BYTES[recipe.precision_name]
    is_overlapped = POLICIES[recipe.overlap].overlaps("dp")
    states = [
        state_bytes(stage, degrees, recipe.data_parallel, element_bytes, is_overlapped=is_overlapped)
        for stage in stages_of(recipe.model, degrees, place)
    ]
    return MemoryPlan(
        weights_bytes=sum(state.weights for state in states) + max(state.gathered for state in states),
        gradients_bytes=sum(state.gradients for state in states) + max(state.collected for state in states),
        optimizer_bytes=sum(state.optimizer for state in states),
        activations_bytes=_most_activations(recipe, place, element_bytes),
    )


def stage_activation_bytes(
    stage: ChunkSpec, degrees: Degrees, element_bytes: int, recompute: Recompute = "none"
) -> int:
    """Return the memory of one micro-batch between its two passes through a stage, with the stage's output."""
    model, share = stage.model, share_of(stage.model, degrees, element_bytes, recompute)
    kept = sum(_layer_bytes(model, layer, share) for layer in stage.layers)
    ids = share.tokens * (_ID_BYTES + (1 if share.tp > 1 else 0))  # and which of them are this rank's
    if stage.is_first:
        kept += ids
    if stage.is_last:
        logits = share.part * model.vocabulary * share.sum_bytes
        return kept + ids + model.norm.kept_bytes(share) + logits
    return kept + share.part * model.width * element_bytes


def recomputed_bytes(stage: ChunkSpec, degrees: Degrees, element_bytes: int, recompute: Recompute) -> int:
    """Return the memory of a backward pass for what it computes again, of a layer at a time."""
    model = stage.model
    whole, kept = share_of(model, degrees, element_bytes), share_of(model, degrees, element_bytes, recompute)
    return max(_layer_bytes(model, layer, whole) - _layer_bytes(model, layer, kept) for layer in stage.layers)


def stage_product_bytes(stage: ChunkSpec, degrees: Degrees, element_bytes: int) -> int:
    """Return the memory of one micro-batch between its backward pass and that of the weights, which a schedule splits.

    The factors of each product, and of the head's: its inputs, and the gradient of the logits.
    """
    model, share = stage.model, share_of(stage.model, degrees, element_bytes)
    kept = sum(sublayer.product_bytes(share) for layer in stage.layers for sublayer in model.sublayers(layer).values())
    return kept + (share.part * (model.width + model.vocabulary) * element_bytes if stage.is_last else 0)


def _most_activations(recipe: Recipe, place: int, element_bytes: int) -> int:
    """Return the most activations, and factors of weights' gradients, that the schedule keeps at once."""
    degrees = recipe.degrees
    is_split = schedule_of(degrees.pipeline).splits_backward
    stages, changes = stages_of(recipe.model, degrees, place), dict[tuple[PassKind, int], int]()
    for stage in stages:
        activations = stage_activation_bytes(stage, degrees, element_bytes, recipe.recompute)
        products = stage_product_bytes(stage, degrees, element_bytes) if is_split else 0
        changes["forward", stage.number] = activations
        changes["backward", stage.number] = products - activations
        changes["weights", stage.number] = -products
    kept = accumulate(changes[step.kind, step.stage] for step in passes_of_rank(degrees.pipeline, place))
    again = (recomputed_bytes(stage, degrees, element_bytes, recipe.recompute) for stage in stages)
    return max(kept) + max(again)


def _layer_bytes(model: ModelSpec, layer: int, share: Share) -> int:
    """Return the bytes of a micro-batch that a layer keeps; full recomputation keeps its input."""
    if share.recompute == "full":
        return share.part * model.width * share.element_bytes
    return sum(sublayer.kept_bytes(share) for sublayer in model.sublayers(layer).values())
