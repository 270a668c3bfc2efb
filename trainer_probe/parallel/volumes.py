"""Communication volume of a rank in a step, in closed form.

Sizes are the ledger's: the full buffer of a collective on one rank. Of a gather or scatter over t ranks each rank sends
(t - 1) / t of it.

Tensor parallelism moves activations A = s b h: a pair of products gathers 3 A and scatters 2 A, and a sublayer says
itself what else it moves; the loss gathers three numbers a token and rank. Pipeline borders carry A / t each way, a
micro-batch. Data parallelism scatters gradients and gathers values once a step.
"""

import math
from collections import Counter
from collections.abc import Mapping

from fabrictune.foundation.layout import Axis
from fabrictune.foundation.traces import Operation
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.model.sublayers import Share, Volumes
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.parallel.gradient_groups import by_gradient_group
from fabrictune.trainer_probe.parallel.schedules.table import schedule_of


def step_volumes(model: ModelSpec, degrees: Degrees, *, place: int, element_bytes: int) -> Volumes:
    """Return the bytes of a rank at `place` of its pipeline, without its optimizer's requests."""
    volumes: Volumes = Counter()
    for chunk in stages_of(model, degrees, place):
        volumes += _tensor_volumes(chunk, degrees, element_bytes)
        volumes += _in_bytes(_pipeline_elements(chunk, degrees), element_bytes)
        volumes += _in_bytes(_data_elements(chunk, degrees), element_bytes)
    return volumes


def share_of(model: ModelSpec, degrees: Degrees, element_bytes: int) -> Share:
    """Return what a rank has of a micro-batch."""
    return Share(
        batch_size=degrees.batch_size,
        sequence=model.sequence,
        tp=degrees.layout.tp,
        element_bytes=element_bytes,
        splits_backward=schedule_of(degrees.pipeline).splits_backward,
    )


def held_elements(chunk: ChunkSpec, degrees: Degrees) -> Mapping[Axis, int]:
    """Return the number of a stage's weights on a rank by gradient group, padded to equal shards of its ranks."""
    held: dict[Axis, int] = {}
    for group, weights in by_gradient_group(chunk.weights()).items():
        size, num_ranks = (
            sum(math.prod(weight.local_shape(degrees.layout.tp)) for weight in weights),
            degrees.layout.degree(group),
        )
        held[group] = -(-size // num_ranks) * num_ranks
    return held


def stages_of(model: ModelSpec, degrees: Degrees, place: int) -> list[ChunkSpec]:
    """Return the stages of the ranks at a place of the pipeline."""
    shape = degrees.pipeline
    return [
        ChunkSpec(model=model, number=number, num_chunks=shape.num_stages)
        for number in range(place, shape.num_stages, shape.pp)
    ]


def _tensor_volumes(chunk: ChunkSpec, degrees: Degrees, element_bytes: int) -> Volumes:
    """Return the bytes of sublayers, embedding, head and loss, and of the gradients of replicated weights."""
    model, share = chunk.model, share_of(chunk.model, degrees, element_bytes)
    of_batch: Volumes = Counter()
    for layer in chunk.layers:
        for sublayer in model.sublayers(layer).values():
            of_batch += sublayer.volumes(share)
    if share.tp == 1:
        return Counter({kind: degrees.num_batches * size for kind, size in of_batch.items()})
    activation = share.tokens * model.width * element_bytes
    numbers_of_loss = chunk.is_last * 3 * share.tp * share.tokens
    of_batch["tp", Operation.ALL_GATHER] += (chunk.is_first + 2 * chunk.is_last) * activation
    of_batch["tp", Operation.ALL_GATHER] += numbers_of_loss * share.sum_bytes
    of_batch["tp", Operation.REDUCE_SCATTER] += (chunk.is_first + chunk.is_last) * activation
    replicated = sum(math.prod(weight.shape) for weight in chunk.weights() if weight.split is None)
    of_step: Volumes = Counter({kind: degrees.num_batches * size for kind, size in of_batch.items()})
    of_step["tp", Operation.ALL_REDUCE] += replicated * element_bytes
    return of_step


def _pipeline_elements(chunk: ChunkSpec, degrees: Degrees) -> Volumes:
    """Return activations and gradients, which cross each border of a stage once per micro-batch, one out and one in."""
    num_borders = (not chunk.is_first) + (not chunk.is_last)
    part = chunk.model.sequence * degrees.batch_size * chunk.model.width // degrees.layout.tp
    elements = num_borders * part * degrees.num_batches
    return Counter({("pp", operation): elements for operation in (Operation.SEND, Operation.RECEIVE) if elements})


def _data_elements(chunk: ChunkSpec, degrees: Degrees) -> Volumes:
    """Return the values that are gathered once a step, and the gradients that are scattered."""
    return Counter(
        {
            (group, operation): held
            for group, held in held_elements(chunk, degrees).items()
            if degrees.layout.degree(group) > 1
            for operation in (Operation.ALL_GATHER, Operation.REDUCE_SCATTER)
        }
    )


def _in_bytes(elements: Volumes, element_bytes: int) -> Volumes:
    return Counter({kind: number * element_bytes for kind, number in elements.items()})
