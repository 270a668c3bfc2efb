"""Places in a stack: what a process does, by the innermost of its main thread's calls that is known.

A process in a communication or a synchronisation waits for others, whoever called it; one in a loader, a checkpoint, a
garbage collection or a compilation keeps others waiting.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum


class Place(StrEnum):
    """What a process does."""

    WAITS = "waits for others"
    LOADER = "in the data loader"
    CHECKPOINT = "in a checkpoint"
    COLLECTION = "in a garbage collection"
    COMPILATION = "in a compilation"


# Searched in `function (file:line)` in this order, frame by frame from the innermost.
_PLACES: Mapping[Place, re.Pattern[str]] = {
    Place.COLLECTION: re.compile(r"^collect \(gc\b|^<gc>|^gc_collect|^_collect_garbage|\bgc\.collect"),
    Place.LOADER: re.compile(
        r"(?i)data_?loader|dataset|/data/|\bdata[/.]|webdataset|feeding|input_pipeline|_next_data|_try_get_data|sampler"
    ),
    Place.CHECKPOINT: re.compile(
        r"(?i)checkpoint(?!_sequential|_wrapper|/?\w*activation)|torch/serialization|serialization\.py|safetensors|"
        r"save_state|^save \(|fsspec|boto|s3fs"
    ),
    Place.COMPILATION: re.compile(r"torch/_(?:inductor|dynamo)|triton/(?:compiler|runtime)|_inductor|_dynamo"),
    Place.WAITS: re.compile(
        r"(?i)distributed_c10d|c10d_logger|torch/distributed/(?!checkpoint)|nccl|gloo|"
        r"^(?:all_reduce|all_gather|reduce_scatter|broadcast|barrier|all_to_all|isend|irecv)\w* \(|"
        r"^synchronize \(|cuda/(?:streams|__init__)\.py|^item \(|comm\.py|p2p_communication"
    ),
}


def place_of(frames: Sequence[str]) -> Place | None:
    """Return what a main thread does, its innermost call first; None where no call is known."""
    for frame in frames:
        for place, pattern in _PLACES.items():
            if pattern.search(frame):
                return place
    return None
