"""Memory of a GPU in a step, in closed form: the state of the model, and activations kept by the schedule.

State: each stage's weights and gradients in the model's precision, and of its share of them the optimizer's two
moments; a model in half precision has for its share also a master copy and gradients in single precision, and with
several data-parallel ranks the summed gradients of the share.

Activations: tensors that autograd keeps of a micro-batch from its forward to its backward pass through a stage, in
units of s b h / t numbers. A parallel layer keeps its input, that normalised, queries, keys, values and feed-forward
inputs (7), attention's result, and what the row product reads (5); a serial layer norms twice. Attention to everything
keeps a logarithm a query instead of the scores; the banded window keeps its blocks and scores.

Source: Korthikanti et al., "Reducing activation recomputation in large transformer models", section 4, for the method;
the sums are those of `model.forward` as written, which a test compares with the tensors that autograd keeps. Left out:
tensors that live within one pass; single precision where no kernel for half precision attends; buffers of libraries;
the allocator's gaps.
"""

from dataclasses import dataclass

from fabrictune.trainer_probe.model.spec import FEED_FORWARD, ModelSpec
from fabrictune.trainer_probe.model.weights import ChunkSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.parallel.schedule import passes_of_rank
from fabrictune.trainer_probe.parallel.volumes import held_elements, stages_of
from fabrictune.trainer_probe.recipes.schema import Precision, Recipe

ELEMENT_BYTES: dict[Precision, int] = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
_SINGLE_BYTES = 4
_ID_BYTES = 8
_MOMENTS = 2


@dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """Bytes of one GPU."""

    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int  # of its share: moments, and what the update needs besides
    activations_bytes: int  # at most

    @property
    def total_bytes(self) -> int:
        """Sum of all parts."""
        return self.weights_bytes + self.gradients_bytes + self.optimizer_bytes + self.activations_bytes


def plan_memory(recipe: Recipe, place: int) -> MemoryPlan:
    """Return the memory of the ranks at a place of the pipeline."""
    degrees, element_bytes = recipe.degrees, ELEMENT_BYTES[recipe.precision_name]
    num_held = sum(held_elements(stage, degrees) for stage in stages_of(recipe.model, degrees, place))
    master_bytes = max(element_bytes, _SINGLE_BYTES)
    of_share = _MOMENTS * master_bytes
    of_share += 2 * master_bytes if master_bytes > element_bytes else 0  # values and gradients
    of_share += element_bytes if degrees.layout.dp > 1 else 0  # summed gradients
    return MemoryPlan(
        weights_bytes=num_held * element_bytes,
        gradients_bytes=num_held * element_bytes,
        optimizer_bytes=num_held // degrees.layout.dp * of_share,
        activations_bytes=_most_activations(recipe, place, element_bytes),
    )


def stage_activation_bytes(stage: ChunkSpec, degrees: Degrees, element_bytes: int) -> int:
    """Return the memory of one micro-batch between its two passes through a stage, with the stage's output."""
    model, tp = stage.model, degrees.layout.tp
    tokens = model.sequence * degrees.batch_size
    kept = len(stage.layers) * _layer_bytes(model, degrees, element_bytes)
    ids = tokens * (_ID_BYTES + (1 if tp > 1 else 0))  # and which of them are this rank's
    if stage.is_first:
        kept += ids
    if stage.is_last:
        norm = tokens // tp * (2 * model.width + 2) * element_bytes
        return kept + ids + norm + tokens * model.vocabulary // tp * max(element_bytes, _SINGLE_BYTES)
    return kept + tokens * model.width // tp * element_bytes


def _layer_bytes(model: ModelSpec, degrees: Degrees, element_bytes: int) -> int:
    tokens, tp = model.sequence * degrees.batch_size, degrees.layout.tp
    is_banded, num_norms = model.attention_span < model.sequence, 1 if model.block == "parallel" else 2
    if model.block == "parallel":
        units = 2 + (3 + FEED_FORWARD) + (1 + FEED_FORWARD) + (0 if is_banded else 1)
    else:
        units = 4 + 2 * FEED_FORWARD + 1 + (0 if is_banded else 3)  # the band copies what it needs of queries and keys
    elements = units * tokens * model.width // tp + num_norms * 2 * tokens // tp
    if model.positions == "rotary":
        elements += 2 * model.sequence * model.head_width  # cosines and sines, for queries and for keys
        elements += 0 if is_banded else 2 * tokens * model.width // tp  # what has been turned
    heads = model.num_heads // tp * degrees.batch_size
    attention = _band_elements(model) * element_bytes if is_banded else model.sequence * _SINGLE_BYTES
    return elements * element_bytes + heads * attention


def _band_elements(model: ModelSpec) -> int:
    """Return the elements kept by a head of the banded window: queries, twice the keys and values, and scores."""
    padded = -(-model.sequence // model.attention_span) * model.attention_span
    return padded * (5 * model.head_width + 2 * model.attention_span)


def _most_activations(recipe: Recipe, place: int, element_bytes: int) -> int:
    """Return the most activations that the schedule keeps at once."""
    degrees = recipe.degrees
    stages = {
        stage.number: stage_activation_bytes(stage, degrees, element_bytes)
        for stage in stages_of(recipe.model, degrees, place)
    }
    now = most = 0
    for step in passes_of_rank(degrees.pipeline, place):
        now += stages[step.stage] if step.direction == "forward" else -stages[step.stage]
        most = max(most, now)
    return most
