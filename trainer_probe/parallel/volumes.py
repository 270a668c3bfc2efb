"""Communication volume of a rank in a step, in closed form.

Sizes are the ledger's: the full buffer of a collective on one rank. Of a gather or scatter over t ranks each rank sends
(t - 1) / t of it.

Tensor parallelism moves activations A = s b h: a pair of products gathers 3 A and scatters 2 A; its input is gathered
again in the backward pass. Pipeline borders carry A / t each way, a micro-batch. Data parallelism scatters gradients
and gathers values once a step.
"""

import math
from collections import Counter

from fabrictune.foundation.layout import Axis
from fabrictune.foundation.traces import Operation
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.model.weights import ChunkSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees

Volumes = Counter[tuple[Axis, Operation]]  # bytes of a rank in a step

SINGLE_BYTES = 4  # of a number in single precision


def step_volumes(model: ModelSpec, degrees: Degrees, *, place: int, element_bytes: int) -> Volumes:
    """Return the bytes of a rank at `place` of its pipeline, without its optimizer's requests."""
    elements: Volumes = Counter()
    chunks = stages_of(model, degrees, place)
    for chunk in chunks:
        elements += _tensor_elements(chunk, degrees)
        elements += _pipeline_elements(chunk, degrees)
        elements += _data_elements(chunk, degrees)
    volumes: Volumes = Counter({kind: number * element_bytes for kind, number in elements.items()})
    if chunks[-1].is_last:
        volumes += _loss_bytes(degrees, model, element_bytes)
    return volumes


def held_elements(chunk: ChunkSpec, degrees: Degrees) -> int:
    """Return the number of a stage's weights on a rank, padded to equal data-parallel shards."""
    held = sum(math.prod(weight.local_shape(degrees.layout.tp)) for weight in chunk.weights())
    return -(-held // degrees.layout.dp) * degrees.layout.dp


def stages_of(model: ModelSpec, degrees: Degrees, place: int) -> list[ChunkSpec]:
    """Return the stages of the ranks at a place of the pipeline."""
    shape = degrees.pipeline
    return [
        ChunkSpec(model=model, number=number, num_chunks=shape.num_stages)
        for number in range(place, shape.num_stages, shape.pp)
    ]


def _tensor_elements(chunk: ChunkSpec, degrees: Degrees) -> Volumes:
    tp, model = degrees.layout.tp, chunk.model
    if tp == 1:
        return Counter()
    tokens = model.sequence * degrees.batch_size
    num_pairs = len(chunk.layers) * (1 if model.block == "parallel" else 2)
    num_gathered = 3 * num_pairs + chunk.is_first + 2 * chunk.is_last
    num_scattered = 2 * num_pairs + chunk.is_first + chunk.is_last
    replicated = sum(math.prod(weight.shape) for weight in chunk.weights() if weight.split is None)
    return Counter(
        {
            ("tp", Operation.ALL_GATHER): degrees.num_batches * num_gathered * tokens * model.width,
            ("tp", Operation.REDUCE_SCATTER): degrees.num_batches * num_scattered * tokens * model.width,
            ("tp", Operation.ALL_REDUCE): replicated,
        }
    )


def _loss_bytes(degrees: Degrees, model: ModelSpec, element_bytes: int) -> Volumes:
    """Return three numbers per token and rank, in at least single precision."""
    tp, tokens = degrees.layout.tp, model.sequence * degrees.batch_size
    numbers = 3 * tp * tokens * degrees.num_batches if tp > 1 else 0
    return Counter({("tp", Operation.ALL_GATHER): numbers * max(element_bytes, SINGLE_BYTES)})


def _pipeline_elements(chunk: ChunkSpec, degrees: Degrees) -> Volumes:
    """Return activations and gradients, which cross each border of a stage once per micro-batch, one out and one in."""
    num_borders = (not chunk.is_first) + (not chunk.is_last)
    part = chunk.model.sequence * degrees.batch_size * chunk.model.width // degrees.layout.tp
    elements = num_borders * part * degrees.num_batches
    return Counter({("pp", operation): elements for operation in (Operation.SEND, Operation.RECEIVE) if elements})


def _data_elements(chunk: ChunkSpec, degrees: Degrees) -> Volumes:
    if degrees.layout.dp == 1:
        return Counter()
    held = held_elements(chunk, degrees)
    return Counter({("dp", operation): held for operation in (Operation.ALL_GATHER, Operation.REDUCE_SCATTER)})
