"""Initial weights: each element is a function of the seed, its weight's name, and its place in the whole weight.

So every layout starts from the same values, and a rank draws only the elements that it is asked for, in threads: the
drawing and the rounding hold no interpreter lock.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray

from fabrictune.foundation.seeds import stream_key
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.normals import random_bits, to_normals
from fabrictune.trainer_probe.model.weights import WeightSpec

_CHUNK = 2**14  # elements at a time, whose temporaries stay in a processor's cache
_MAX_THREADS = 8  # a host's ranks draw at the same time
_MIN_PARALLEL = 2**20  # elements; fewer are drawn before threads have started


def make_weights(chunk: ChunkSpec, *, tp: int = 1, place: int = 0) -> dict[str, torch.Tensor]:
    """Return the initial weights of a chunk on rank `place` of `tp`, in double precision."""
    return {weight.name: make_weight(weight, chunk.model.seed, tp=tp, place=place) for weight in chunk.weights()}


def make_weight(weight: WeightSpec, seed: int, *, tp: int = 1, place: int = 0) -> torch.Tensor:
    """Return a rank's part of an initial weight, in double precision."""
    values = torch.empty(weight.local_shape(tp), dtype=torch.float64)
    write_initial_values(values.view(-1), weight, seed, tp=tp, place=place)
    return values


def write_initial_values(
    values_E: torch.Tensor, weight: WeightSpec, seed: int, *, tp: int = 1, place: int = 0, first: int = 0
) -> None:
    """Write a range of the elements of a rank's part of an initial weight, from element `first` on.

    Drawn in single precision, and rounded to that of `values_E` on its device.
    """
    if weight.start != "normal":
        values_E.fill_(1.0 if weight.start == "ones" else 0.0)
        return
    key, scale = stream_key(seed, "weights", weight.name), np.float32(weight.scale)

    def write(begin: int) -> None:
        chunk_E = values_E[begin : begin + _CHUNK]
        runs = part_runs(weight, tp, place, first + begin, len(chunk_E))
        drawn_E: NDArray[np.float32] = to_normals(random_bits(key, runs))
        drawn_E *= scale
        chunk_E.copy_(torch.from_numpy(drawn_E))

    begins = range(0, len(values_E), _CHUNK)
    if len(values_E) < _MIN_PARALLEL:
        for begin in begins:
            write(begin)
        return
    with ThreadPoolExecutor(min(_MAX_THREADS, len(os.sched_getaffinity(0))), "initial-values") as threads:
        list(threads.map(write, begins))  # raises what a thread has raised


def part_runs(weight: WeightSpec, tp: int, place: int, first: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the whole weight, by first element and length, that a range of a rank's part consists of."""
    if weight.split is None or tp == 1:
        yield weight.first_element + first, count
        return
    length = weight.run_length(tp)
    while count:
        row, column = divmod(first, length)
        taken = min(length - column, count)
        yield weight.first_element + (row * tp + place) * length + column, taken
        first, count = first + taken, count - taken
