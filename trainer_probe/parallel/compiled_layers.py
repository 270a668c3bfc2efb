"""Layers compiled by torch: operations that would each read and write memory become a few kernels.

All layers of a kind are one graph, which takes a layer's weights by names that do not number it. A compiler traces
arithmetic and no requests. So of a rank that shares products, a sequence or experts with others it compiles what lies
between the operators (norms, attention, activation functions, sums), and leaves these as they are; likewise where a
backward pass keeps products or computes attention again. A rank alone has one graph for the whole layer.

Results differ from those of a layer as written by the rounding of joined operations, so compilation is a policy that a
recipe chooses.

Source: Ansel et al., "PyTorch 2: faster machine learning through dynamic Python bytecode transformation and graph
compilation", ASPLOS 2024.

Shapes: P a rank's part of the sequence, S the whole, B samples of a micro-batch, D width, O features of a product, V a
share of the vocabulary.
"""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from fabrictune.trainer_probe.model.experts import Compute, Dispatched, ExpertOperators, Routing
from fabrictune.trainer_probe.model.forward import run_layer
from fabrictune.trainer_probe.model.operators import Context, Operators, WholeContext
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.model.weights import Capacity, Weights
from fabrictune.trainer_probe.parallel.weight_products import RankAlone

Backend = str | Callable[..., Any]

_NOT_A_LEAF = "The .grad attribute of a Tensor that is not a leaf"  # which torch reads as it traces, and leaves

Method = TypeVar("Method", bound=Callable[..., Any])


def _leave(method: Method) -> Method:
    """Return a method that a compiler does not trace."""
    left: Method = torch.compiler.disable(method)  # type: ignore[no-untyped-call]  # by torch
    return left


class CompiledLayers:
    """The layers of a rank, compiled by one of torch's backends; a first layer of a kind waits for the compiler."""

    def __init__(self, model: ModelSpec, operators: Operators, backend: Backend = "inductor") -> None:
        self._model = model
        self._operators = operators if _is_traced(operators) else UntracedOperators(operators)
        self._run = torch.compile(run_layer, backend=backend, dynamic=False)

    def __call__(self, weights: Weights, layer: int, x_PBD: torch.Tensor, tag: str) -> torch.Tensor:
        """Return the activations after a layer, as `run_layer` with these weights."""
        first = self._first_of_kind(layer)
        own = {
            weight.name.replace(f"layers.{layer}.", f"layers.{first}.", 1): weights[weight.name]
            for weight in self._model.layer_weights(layer)
        }
        if isinstance(self._operators, UntracedOperators):
            self._operators.prefix = f"{tag}.layer{layer}"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", _NOT_A_LEAF, UserWarning)
            result: torch.Tensor = self._run(self._model, own, self._operators, first, x_PBD, "")
        return result

    def _first_of_kind(self, layer: int) -> int:
        """Return the first layer with the same sublayers, for which a graph stands."""
        sublayers = dict(self._model.sublayers(layer))
        return next(other for other in range(layer + 1) if dict(self._model.sublayers(other)) == sublayers)


class UntracedOperators:
    """Operators that a compiler leaves alone.

    Tags would be constants of a graph, so a graph has none: `prefix` takes the place of the layer's own.
    """

    def __init__(self, operators: Operators) -> None:
        self.prefix = ""
        self._operators = operators
        context = operators.context
        self.context: Context = context if isinstance(context, WholeContext) else _UntracedContext(self, context)
        self.experts: ExpertOperators = _UntracedExperts(self, operators.experts)

    def tag(self, traced: str) -> str:
        """Return a tag with the layer that is now run, in place of the one whose graph it is."""
        _, _, part = traced.lstrip(".").partition(".")
        return f"{self.prefix}.{part}" if part else self.prefix

    @_leave
    def positions(self, weight: torch.Tensor, tag: str) -> torch.Tensor:
        """Return the rows of places of this part, P D."""
        return self._operators.positions(weight, self.tag(tag))

    @_leave
    def embed(self, tokens_BS: torch.Tensor, weight_VD: torch.Tensor, tag: str) -> torch.Tensor:
        """Return the rows of the tokens, P B D."""
        return self._operators.embed(tokens_BS, weight_VD, self.tag(tag))

    @_leave
    def column_linear(
        self, x_PBD: torch.Tensor, weight_DO: torch.Tensor, bias_O: torch.Tensor | None, tag: str
    ) -> torch.Tensor:
        """Return the whole sequence's product, S B O."""
        return self._operators.column_linear(x_PBD, weight_DO, bias_O, self.tag(tag))

    @_leave
    def row_linear(
        self, x_SBO: torch.Tensor, weight_OD: torch.Tensor, bias_D: torch.Tensor | None, tag: str
    ) -> torch.Tensor:
        """Return this part of the sequence's product, P B D."""
        return self._operators.row_linear(x_SBO, weight_OD, bias_D, self.tag(tag))

    @_leave
    def cross_entropy(self, logits_SBV: torch.Tensor, targets_BS: torch.Tensor, tag: str) -> torch.Tensor:
        """Return the sum over all tokens."""
        return self._operators.cross_entropy(logits_SBV, targets_BS, self.tag(tag))


class _UntracedContext:
    """A context that a compiler leaves alone."""

    def __init__(self, operators: UntracedOperators, context: Context) -> None:
        self.size = context.size
        self._operators, self._context = operators, context

    def take(self, whole: torch.Tensor, dim: int) -> torch.Tensor:
        """Return this rank's tokens of the whole sequence, which is dimension `dim`."""
        return self._context.take(whole, dim)

    @_leave
    def attend(
        self,
        query: torch.Tensor,
        key_SBGE: torch.Tensor,
        value_SBGE: torch.Tensor,
        window: int | None,
        base: float | None,
        tag: str,
    ) -> torch.Tensor:
        """Return attention's result, S B H E."""
        return self._context.attend(query, key_SBGE, value_SBGE, window, base, self._operators.tag(tag))


class _UntracedExperts(ExpertOperators):
    """A way to experts that a compiler leaves alone."""

    def __init__(self, operators: UntracedOperators, experts: ExpertOperators) -> None:
        self._operators, self._experts = operators, experts

    @_leave
    def run(
        self, x_PBD: torch.Tensor, routing: Routing, capacity: Capacity, compute: Compute, tag: str
    ) -> tuple[torch.Tensor, Dispatched]:
        """Return the sums of the results of each token's experts, P B D, and where tokens were."""
        return self._experts.run(x_PBD, routing, capacity, compute, self._operators.tag(tag))

    @_leave
    def add_balance_loss(
        self, x_PBD: torch.Tensor, routing: Routing, dispatched: Dispatched, coefficient: float
    ) -> torch.Tensor:
        """Return the activations, with the gradient of the balance loss in the backward pass."""
        return self._experts.add_balance_loss(x_PBD, routing, dispatched, coefficient)


def _is_traced(operators: Operators) -> bool:
    """Return whether operators are tensor arithmetic alone, forward and backward."""
    has_all = isinstance(operators.context, WholeContext) and type(operators.experts) is ExpertOperators
    return isinstance(operators, RankAlone) and operators.is_plain and has_all
