"""A clock that passes with the operations of matrix products, and with nothing else.

Tensors on the meta device have shapes and no values, so a product costs the machine nothing, and the clock what a GPU
would take for it at a stated rate.

Source: torch.utils.flop_counter for the operations of each product; a multiplication and an addition are two.
Left out: all that is bound by memory and not by products: norms, activations, the optimizer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from fabrictune.foundation.units import NS_PER_S


class ProductClock(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """Nanoseconds of products executed while it is entered, and of those it is told of."""

    def __init__(self, flops_per_s: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # likewise
        self.flops = 0
        self._flops_per_s = flops_per_s

    def now_ns(self) -> int:
        """Return the time so far."""
        return round(self.flops / self._flops_per_s * NS_PER_S)

    def __torch_dispatch__(
        self, operator: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operator, and count it where it is a product."""
        found = operator(*args, **(kwargs or {}))
        count = flop_registry.get(operator.overloadpacket)
        if count is not None:
            self.flops += count(*args, **(kwargs or {}), out_val=found)
        return found
