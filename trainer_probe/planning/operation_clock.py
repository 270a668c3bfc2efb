"""The clock of a dry run: it advances by the time that a GPU takes for each operation torch dispatches.

By the roofline: the larger of an operation's floating-point operations over the rate of products, and of its bytes over
the rate of memory. Operations on one stream run one after another. Attention is one operation; of its products every
place of a token's span counts, and twice as many backward, as in the papers' count.

Source: torch.utils.flop_counter for the operations of each product, a multiplication and an addition as two; Williams
et al., "Roofline: an insightful visual performance model for multicore architectures", CACM 2009.
Left out: launches of kernels; products that reach less than the best one.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from fabrictune.foundation.units import PS_PER_NS, PS_PER_S
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.memory_traffic import traffic_bytes

Part = Literal["forward", "backward", "weights", "optimizer", "rest"]
Bound = Literal["products", "memory"]
Key = tuple[Part, str, Bound]  # part of the step, name of the operation, and what bounds its time

_FLOPS_A_PLACE = 4  # of a query and feature: the score, and the weighted sum of values
_ATTENTION_FORWARDS = {"_flash_attention_forward": 1, "_flash_attention_backward": 2}  # products, in forward passes


class OperationClock(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """A clock that advances with operations, executed while it is entered or replayed."""

    def __init__(self, hardware: HardwareSpec) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self.elapsed_ps = 0
        self.calls = Counter[Key]()
        self.flops = Counter[Key]()
        self.bytes = Counter[Key]()
        self.duration_ps = Counter[Key]()
        self._hardware = hardware
        self._part: Part = "rest"

    def now_ns(self) -> int:
        """Return the time so far, in ns."""
        return round(self.elapsed_ps / PS_PER_NS)

    @contextmanager
    def in_part(self, part: Part) -> Iterator[None]:
        """Count the operations of the block to a part of the step."""
        before, self._part = self._part, part
        try:
            yield
        finally:
            self._part = before

    def totals(self) -> tuple[Counter[Key], ...]:
        """Return copies of all counts."""
        return tuple(Counter(counts) for counts in self._counts)

    def add(self, totals: Sequence[Counter[Key]]) -> None:
        """Count operations again; the time does not advance."""
        for counts, more in zip(self._counts, totals, strict=True):
            counts.update(more)

    def __torch_dispatch__(
        self, operator: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operator and advance by its time."""
        keywords = kwargs or {}
        result = operator(*args, **keywords)
        flops = _count_flops(operator, args, keywords, result)
        num_bytes = traffic_bytes(operator, args, keywords, result)
        if flops or num_bytes:
            self._advance(str(operator.overloadpacket).removeprefix("aten."), flops, num_bytes)
        return result

    @property
    def _counts(self) -> tuple[Counter[Key], ...]:
        return self.calls, self.flops, self.bytes, self.duration_ps

    def _advance(self, name: str, flops: int, num_bytes: int) -> None:
        products_ps = round(flops / self._hardware.achieved_flops_per_s * PS_PER_S)
        memory_ps = round(num_bytes / self._hardware.memory_bytes_per_s * PS_PER_S)
        key: Key = (self._part, name, "products" if flops and products_ps >= memory_ps else "memory")
        self.calls[key] += 1
        self.flops[key] += flops
        self.bytes[key] += num_bytes
        self.duration_ps[key] += max(products_ps, memory_ps)
        self.elapsed_ps += max(products_ps, memory_ps)


def _count_flops(operator: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> int:
    num_forwards = _ATTENTION_FORWARDS.get(operator.overloadpacket.__name__)
    if num_forwards is not None:
        query_BSHE, key_BSHE = arguments[num_forwards - 1 : num_forwards + 1]  # backward the gradient comes first
        return num_forwards * _attention_flops(query_BSHE, key_BSHE, keywords.get("window_size_left"))
    count: Callable[..., int] | None = flop_registry.get(operator.overloadpacket)
    operands = [argument for argument in arguments if not isinstance(argument, torch.dtype)]  # of the result
    return 0 if count is None else count(*operands, **keywords, out_val=result)


def _attention_flops(query_BSHE: torch.Tensor, key_BSHE: torch.Tensor, num_before: int | None) -> int:
    """Return the operations of a forward pass; `num_before` tokens before a token are in its window."""
    span = key_BSHE.shape[1] if num_before is None else min(num_before + 1, key_BSHE.shape[1])
    return _FLOPS_A_PLACE * query_BSHE.numel() * span
