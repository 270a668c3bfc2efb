"""Bytes that an operation of torch reads from and writes to a GPU's memory, by its schema and its tensors.

Each operand is read once and each result written once, as by a kernel that keeps nothing for the next. Views and
allocations move nothing. What is changed in place is read and written, unless the operation overwrites it; a lookup
reads the entries it returns. A stretched dimension (stride 0) counts as one entry.

Source: ProcessGroupNCCL of torch for collectives into and from a list of tensors, which pass through one flat buffer.
Left out: caches, partial sectors of strided reads, and what NCCL itself moves.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

ALLOCATIONS = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"})
FILLS = frozenset(
    {"full_like", "new_full", "new_ones", "new_zeros", "ones_like", "rand_like", "randn_like", "zeros_like"}
)
OVERWRITES = frozenset({"copy_", "fill_", "zero_", "normal_", "uniform_"})
LOOKUPS = frozenset({"embedding", "gather", "index", "index_select", "nll_loss_forward"})
FLAT_COPIES = {"allgather_": 0, "reduce_scatter_": 1}  # the number of the argument that is copied
_TRANSFERS = 2  # a copy reads and writes


def traffic_bytes(
    operator: torch._ops.OpOverload, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any
) -> int:
    """Return the bytes that an operation reads and writes."""
    name = operator.overloadpacket.__name__
    if operator.namespace == "c10d":
        return _TRANSFERS * tensor_bytes(arguments[FLAT_COPIES[name]]) if name in FLAT_COPIES else 0
    if name in ALLOCATIONS:
        return 0
    read, written = operands_of(operator, arguments, keywords)
    known = {storage_number(tensor) for tensor in (*read, *written)}
    results = [tensor for tensor in tensors_in(result) if storage_number(tensor) not in known]
    if not results and not written:
        return 0  # a view, or a number for the host
    if name in FILLS:
        return tensor_bytes(results)
    if name in LOOKUPS:
        table, *others = read
        num_entries = max(tensor.numel() for tensor in (*others, *results))
        return num_entries * table.element_size() + tensor_bytes([*others, *results])
    return tensor_bytes([*read, *written, *results])


def operands_of(
    operator: torch._ops.OpOverload, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return the tensors that an operation reads, and those among its arguments that it writes."""
    read: list[torch.Tensor] = []
    written: list[torch.Tensor] = []
    is_overwrite = operator.overloadpacket.__name__ in OVERWRITES
    for number, argument in enumerate(operator._schema.arguments):
        value = arguments[number] if number < len(arguments) else keywords.get(argument.name)
        tensors = list(tensors_in(value))
        is_written = argument.alias_info is not None and argument.alias_info.is_write
        written += tensors if is_written else []
        read += [] if is_written and (argument.is_out or is_overwrite) else tensors
    return read, written


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a value or a list of values."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from tensors_in(entry)


def storage_number(tensor: torch.Tensor) -> int:
    """Return a number of the tensor's storage, which no other has while it lives."""
    number: int = tensor.untyped_storage()._cdata
    return number


def tensor_bytes(value: Any) -> int:
    """Return the bytes of a value's tensors."""
    return sum(_num_entries(tensor) * tensor.element_size() for tensor in tensors_in(value))


def _num_entries(tensor: torch.Tensor) -> int:
    return math.prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride != 0)
