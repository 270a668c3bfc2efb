"""Messages of gathers and scatters: from every rank to the root, or from the root to every rank.

PyTorch makes them so over NCCL. It does not write down the root, which is taken as the first rank of the group.

Source: PyTorch, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp and torch/csrc/cuda/nccl.cpp.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fabrictune.collectives.traces.builder import TraceRow
from fabrictune.collectives.traces.untraced_ranks import MeasuredRequest
from fabrictune.foundation.traces import Operation

_WHOLE = "gathers and scatters whose root the trace does not name, taken as their group's first rank"
_PARTIAL = "gathers and scatters of groups of which a rank has no file, left out"


def with_messages(
    of_rank: Mapping[int, Sequence[MeasuredRequest]], notes: list[str]
) -> dict[int, list[MeasuredRequest]]:
    """Return the requests with the messages of gathers and scatters, and note how many there are.

    Those of groups of which a rank has no file are left out, since nothing would meet their messages.
    """
    num_of = Counter[str]()
    result: dict[int, list[MeasuredRequest]] = {rank: [] for rank in of_rank}
    for rank, events in of_rank.items():
        for event in events:
            if not event.kind:
                result[rank].append(event)
            elif not of_rank.keys() >= set(event.request.group):
                num_of[_PARTIAL] += 1
            elif len(event.request.group) > 1:
                num_of[_WHOLE] += 1
                result[rank].append(replace(event, messages=_messages(event.kind, rank, event.request)))
    notes.extend(f"{note}: {number}" for note, number in sorted(num_of.items()))
    return result


def _messages(kind: str, rank: int, request: TraceRow) -> tuple[TraceRow, ...]:
    root = request.group[0]
    is_receiver = (rank == root) == (kind == "gather")
    others = [other for other in request.group if other != root] if rank == root else [root]
    operation = Operation.RECEIVE if is_receiver else Operation.SEND
    return tuple(replace(request, operation=operation, peer=other) for other in others)
