"""What sources call an operation, as the operation: `AllReduce`, `all_reduce`, `_reduce_scatter_base`, `BROADCAST`."""

from collections.abc import Mapping

from fabrictune.foundation.traces import Operation

_NAMES: Mapping[str, Operation] = {
    "allreduce": Operation.ALL_REDUCE,
    "reducescatter": Operation.REDUCE_SCATTER,
    "allgather": Operation.ALL_GATHER,
    "alltoall": Operation.ALL_TO_ALL,
    "broadcast": Operation.BROADCAST,
    "send": Operation.SEND,
    "recv": Operation.RECEIVE,
    "receive": Operation.RECEIVE,
}
_ENDINGS = ("base", "coalesced", "intotensor", "tensor", "single", "v")


def operation_of(kind: str) -> Operation | None:
    """Return the operation of a name, None for one that is not known."""
    name = "".join(letter for letter in kind.lower() if letter.isalnum())
    for ending in ("", *_ENDINGS):
        if (found := _NAMES.get(name.removesuffix(ending))) is not None:
            return found
    return None
