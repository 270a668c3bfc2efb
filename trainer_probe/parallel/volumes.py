"""Communication volume of a rank in a step, in closed form.

Sizes are the ledger's: the full buffer of a collective on one rank. Of a gather or scatter over t ranks each rank sends
(t - 1) / t of it.

Tensor parallelism moves activations A = s b h: a pair of products gathers 3 A and scatters 2 A, and a sublayer says
itself what else it moves; the loss gathers three numbers a token and rank. Pipeline borders carry A / t each way, a
micro-batch. What data parallelism moves depends on its strategy (`data_parallel/costs.py`). Context parallelism passes
keys and values round its ring once forward, and backward once more with their gradients; with it learned positions are
gathered, and their gradients scattered, over tp.
"""

import math
from collections import Counter

from fabrictune.foundation.traces import Operation
from fabrictune.trainer_probe.data_parallel.costs import data_volumes
from fabrictune.trainer_probe.data_parallel.spec import DataParallelSpec
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.model.sublayers import Share, Volumes
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.parallel.schedules.table import schedule_of
from fabrictune.trainer_probe.policies import Recompute

_DEFAULT = DataParallelSpec()


def step_volumes(
    model: ModelSpec,
    degrees: Degrees,
    *,
    place: int,
    element_bytes: int,
    data_parallel: DataParallelSpec = _DEFAULT,
    recompute: Recompute = "none",
) -> Volumes:
    """Return the bytes of a rank at `place` of its pipeline, without its optimizer's requests."""
    volumes: Volumes = Counter()
    for chunk in stages_of(model, degrees, place):
        volumes += _tensor_volumes(chunk, degrees, share_of(model, degrees, element_bytes, recompute))
        volumes += _in_bytes(_pipeline_elements(chunk, degrees), element_bytes)
        volumes += data_volumes(chunk, degrees, data_parallel, element_bytes)
    return volumes


def share_of(model: ModelSpec, degrees: Degrees, element_bytes: int, recompute: Recompute = "none") -> Share:
    """Return what a rank has of a micro-batch."""
    return Share(
        batch_size=degrees.batch_size,
        sequence=model.sequence // degrees.layout.cp,
        tp=degrees.layout.tp,
        cp=degrees.layout.cp,
        ep=degrees.layout.ep,
        element_bytes=element_bytes,
        splits_backward=schedule_of(degrees.pipeline).splits_backward,
        recompute=recompute,
    )


def stages_of(model: ModelSpec, degrees: Degrees, place: int) -> list[ChunkSpec]:
    """Return the stages of the ranks at a place of the pipeline."""
    shape = degrees.pipeline
    return [
        ChunkSpec(model=model, number=number, num_chunks=shape.num_stages)
        for number in range(place, shape.num_stages, shape.pp)
    ]


def _tensor_volumes(chunk: ChunkSpec, degrees: Degrees, share: Share) -> Volumes:
    """Return the bytes of sublayers, embedding, head and loss."""
    model, element_bytes = chunk.model, share.element_bytes
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
    if share.cp > 1:
        positions = sum(math.prod(weight.shape) for weight in chunk.weights() if weight.name == "positions.weight")
        for operation in (Operation.ALL_GATHER, Operation.REDUCE_SCATTER):
            of_batch["tp", operation] += positions * element_bytes
    return Counter({kind: degrees.num_batches * size for kind, size in of_batch.items()})


def _pipeline_elements(chunk: ChunkSpec, degrees: Degrees) -> Volumes:
    """Return activations and gradients, which cross each border of a stage once per micro-batch, one out and one in."""
    num_borders = (not chunk.is_first) + (not chunk.is_last)
    part = chunk.model.sequence * degrees.batch_size * chunk.model.width // (degrees.layout.cp * degrees.layout.tp)
    elements = num_borders * part * degrees.num_batches
    return Counter({("pp", operation): elements for operation in (Operation.SEND, Operation.RECEIVE) if elements})


def _in_bytes(elements: Volumes, element_bytes: int) -> Volumes:
    return Counter({kind: number * element_bytes for kind, number in elements.items()})
