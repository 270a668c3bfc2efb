"""Operations on entries that a compiler makes one kernel: what it reads and writes.

It reads what was there before it once, and writes what is kept after it: a result whose storage is gone by the end of
the kernel never reaches memory. A result that a variable of the trainer still holds counts as kept, so the bytes are an
upper bound.

Source: Ansel et al., "PyTorch 2", ASPLOS 2024, section 4.3 (fusion of pointwise operations and reductions).
Left out: what a compiler computes again in the backward pass in place of keeping it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from fabrictune.trainer_probe.planning.memory_traffic import operands_of, storage_number, tensor_bytes, tensors_in

_REDUCTIONS_AND_CASTS = frozenset({"_to_copy", "amax", "mean", "native_layer_norm", "sum"})


def is_fusible(operator: torch._ops.OpOverload) -> bool:
    """Return whether a compiler fuses an operation with those before and after it."""
    return torch.Tag.pointwise in operator.tags or operator.overloadpacket.__name__ in _REDUCTIONS_AND_CASTS


class FusedKernel:
    """A kernel of operations on entries."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._read_bytes: dict[int, int] = {}  # by storage
        self._written_bytes: dict[int, int] = {}
        self._made: dict[int, tuple[Any, int]] = {}  # storages, held weakly, and bytes of results

    @property
    def name(self) -> str:
        """The operation's name, or the number of those it fuses."""
        return self._names[0] if len(self._names) == 1 else "fused"

    def append(
        self,
        name: str,
        operator: torch._ops.OpOverload,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
        result: Any,
    ) -> None:
        """Fuse one more operation."""
        self._names.append(name)
        read, written = operands_of(operator, arguments, keywords)
        known = {storage_number(tensor) for tensor in (*read, *written)}
        for tensor in read:
            self._keep_most(self._read_bytes, tensor)
        for tensor in written:
            self._keep_most(self._written_bytes, tensor)
        for tensor in tensors_in(result):
            number = storage_number(tensor)
            if number not in known:
                storage: Any = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]  # by torch
                self._made[number] = storage, tensor_bytes(tensor)

    def traffic_bytes(self) -> int:
        """Return the bytes that the kernel reads and writes, as of now."""
        kept = sum(size for storage, size in self._made.values() if not storage.expired())
        written = sum(size for number, size in self._written_bytes.items() if number not in self._made)
        return sum(self._read_bytes.values()) + written + kept

    def _keep_most(self, sizes: dict[int, int], tensor: torch.Tensor) -> None:
        number = storage_number(tensor)
        if number not in self._made:
            sizes[number] = max(sizes.get(number, 0), tensor_bytes(tensor))
