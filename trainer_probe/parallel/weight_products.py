"""Products for the gradients of weights: made at once, or kept by a backward pass until a pass of their own.

A backward pass needs two products for each matrix: the gradient of the inputs, which the stage before waits for, and
that of the weight, for which the step's end is soon enough. Kept, the second one holds its two factors, divided as the
ranks of a tensor-parallel group have them, and gathers them again when it is made.

Shapes: S sequence, B batch, I and O features before and after a product.

Source: Qi et al., "Zero bubble pipeline parallelism", ICLR 2024, section 2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.function import Function

from fabrictune.trainer_probe.model.autograd import apply
from fabrictune.trainer_probe.model.experts import ExpertOperators
from fabrictune.trainer_probe.model.operators import Context, SingleProcess
from fabrictune.trainer_probe.parallel.gradient_places import weight_gradient

Factors = tuple[torch.Tensor, torch.Tensor]  # inputs, S B I, and the gradient of the outputs, S B O


@dataclass(frozen=True, kw_only=True)
class WeightProduct:
    """A weight, and a function that starts to gather the factors of its gradient and returns one that waits."""

    weight_IO: torch.Tensor
    start: Callable[[], Callable[[], Factors]]


class KeptProducts:
    """The products that the backward passes of a stage keep, in their order."""

    def __init__(self) -> None:
        self._products: list[WeightProduct] = []

    def keep(self, product: WeightProduct) -> None:
        """Keep a product for later."""
        self._products.append(product)

    def take(self) -> Sequence[WeightProduct]:
        """Return the products kept since the last call."""
        products, self._products = self._products, []
        return products


def add_gradients(products: Sequence[WeightProduct]) -> None:
    """Add the products to the gradients of their weights, each while the factors of the next are gathered."""
    starts = [product.start for product in products]
    wait = starts[0]() if starts else None
    for product, start_next in zip(products, [*starts[1:], None], strict=True):
        assert wait is not None, "started with the product before"
        x_SBI, gradient_SBO = wait()
        wait = start_next() if start_next else None
        gradient_IO = weight_gradient(product.weight_IO, x_SBI, gradient_SBO)
        if gradient_IO is not None:
            torch.autograd.backward(product.weight_IO, gradient_IO)


class RankAlone(SingleProcess):
    """The operators of a rank alone in its group, whose backward passes add products to weights' gradients in place.

    Given a place for them, they keep the products instead. What is compiled leaves them to autograd.
    """

    def __init__(
        self,
        kept: KeptProducts | None = None,
        context: Context | None = None,
        experts: ExpertOperators | None = None,
    ) -> None:
        super().__init__(context, experts)
        self.is_plain = kept is None
        self._kept = kept

    def column_linear(
        self, x_PBD: torch.Tensor, weight_DO: torch.Tensor, bias_O: torch.Tensor | None, tag: str
    ) -> torch.Tensor:
        """Return the product, S B O."""
        if self._kept is None and torch.compiler.is_compiling():
            return super().column_linear(x_PBD, weight_DO, bias_O, tag)
        product = apply(_Product, x_PBD, weight_DO, self._kept)
        return product if bias_O is None else product + bias_O

    def row_linear(
        self, x_SBO: torch.Tensor, weight_OD: torch.Tensor, bias_D: torch.Tensor | None, tag: str
    ) -> torch.Tensor:
        """Return the product, S B D."""
        return self.column_linear(x_SBO, weight_OD, bias_D, tag)


class _Product(Function):
    """Forward: multiply. Backward: multiply for the inputs, and for the weight, or keep what its gradient needs."""

    @staticmethod
    def forward(ctx: Any, x_SBI: torch.Tensor, weight_IO: torch.Tensor, kept: KeptProducts | None) -> torch.Tensor:
        ctx.save_for_backward(x_SBI, weight_IO)
        ctx.kept = kept
        return x_SBI @ weight_IO

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (x_SBI, weight_IO), gradient_SBO = ctx.saved_tensors, gradients[0]
        gradient_SBI = gradient_SBO @ weight_IO.t()
        if ctx.kept is None:
            return gradient_SBI, weight_gradient(weight_IO, x_SBI, gradient_SBO), None
        ctx.kept.keep(WeightProduct(weight_IO=weight_IO, start=lambda: lambda: (x_SBI, gradient_SBO)))
        return gradient_SBI, None, None
