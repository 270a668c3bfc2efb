"""Operators of a layer: the matrix products that tensor parallelism divides.

Layers are written against `Operators`, so that the same code serves a single process and a group. Between layers a rank
has a part of the sequence (sequence parallelism); a column product takes the whole sequence and returns a rank's share
of the features, a row product reverses that. In a single process part and whole are the same: `SingleProcess` is plain
torch and autograd, the reference that every group must equal.

Shapes: S sequence, or a rank's tokens of one that a context-parallel group shares, P a rank's part of it, B batch, D
width, G heads of keys and values, H of queries, E features of a head, O a rank's share of a product's features, V a
rank's share of the vocabulary.

Source: Korthikanti et al., "Reducing activation recomputation in large transformer models", section 4.2.2.
"""

from typing import Protocol

import torch
from torch.nn import functional

from fabrictune.trainer_probe.model.attention import attend_by_heads
from fabrictune.trainer_probe.model.experts import ExpertOperators


class Context(Protocol):
    """This rank's tokens of each sequence, of which the ranks of a context-parallel group have equal shares."""

    size: int  # ranks of the group

    def take(self, whole: torch.Tensor, dim: int) -> torch.Tensor:
        """Return this rank's tokens of the whole sequence, which is dimension `dim`."""

    def attend(
        self,
        query: torch.Tensor,
        key_SBGE: torch.Tensor,
        value_SBGE: torch.Tensor,
        window: int | None,
        base: float | None,
        tag: str,
    ) -> torch.Tensor:
        """Return attention's result for this rank's tokens, S B H E, as `attend_by_heads` for the whole sequence."""


class WholeContext:
    """The context of a rank that has whole sequences."""

    size = 1

    def take(self, whole: torch.Tensor, dim: int) -> torch.Tensor:
        """Return the whole."""
        return whole

    def attend(
        self,
        query: torch.Tensor,
        key_SBGE: torch.Tensor,
        value_SBGE: torch.Tensor,
        window: int | None,
        base: float | None,
        tag: str,
    ) -> torch.Tensor:
        """Return attention's result without a request."""
        return attend_by_heads(query, key_SBGE, value_SBGE, window, base)


class Operators(Protocol):
    """The divided products. `tag` names the requests that an operation may make."""

    context: Context
    experts: ExpertOperators  # the way to a mixture's experts and back

    def positions(self, weight: torch.Tensor, tag: str) -> torch.Tensor:
        """Return the rows of a weight with a row for each place, divided by tp in order, for this part: P D."""

    def embed(self, tokens_BS: torch.Tensor, weight_VD: torch.Tensor, tag: str) -> torch.Tensor:
        """Return the rows of the tokens, P B D."""

    def column_linear(
        self, x_PBD: torch.Tensor, weight_DO: torch.Tensor, bias_O: torch.Tensor | None, tag: str
    ) -> torch.Tensor:
        """Return the whole sequence's product with this rank's columns, S B O."""

    def row_linear(
        self, x_SBO: torch.Tensor, weight_OD: torch.Tensor, bias_D: torch.Tensor | None, tag: str
    ) -> torch.Tensor:
        """Return this part of the sequence's product with the rows of all ranks, P B D."""

    def cross_entropy(self, logits_SBV: torch.Tensor, targets_BS: torch.Tensor, tag: str) -> torch.Tensor:
        """Return the sum over all tokens of minus the logarithm of the target's probability."""


def at_least_single(logits_SBV: torch.Tensor) -> torch.Tensor:
    """Return logits in at least single precision: sums over a vocabulary in half precision are inaccurate."""
    return logits_SBV.to(torch.promote_types(logits_SBV.dtype, torch.float32))


class SingleProcess:
    """The operators of a process that has the whole model, but for experts where others have them."""

    def __init__(self, context: Context | None = None, experts: ExpertOperators | None = None) -> None:
        self.context = context or WholeContext()
        self.experts = experts or ExpertOperators()

    def positions(self, weight: torch.Tensor, tag: str) -> torch.Tensor:
        """Return the rows of this rank's tokens, S D."""
        return self.context.take(weight, 0)

    def embed(self, tokens_BS: torch.Tensor, weight_VD: torch.Tensor, tag: str) -> torch.Tensor:
        """Return the rows of the tokens, S B D."""
        return functional.embedding(tokens_BS.t(), weight_VD)

    def column_linear(
        self, x_PBD: torch.Tensor, weight_DO: torch.Tensor, bias_O: torch.Tensor | None, tag: str
    ) -> torch.Tensor:
        """Return the product, S B O."""
        product = x_PBD @ weight_DO
        return product if bias_O is None else product + bias_O

    def row_linear(
        self, x_SBO: torch.Tensor, weight_OD: torch.Tensor, bias_D: torch.Tensor | None, tag: str
    ) -> torch.Tensor:
        """Return the product, S B D."""
        product = x_SBO @ weight_OD
        return product if bias_D is None else product + bias_D

    def cross_entropy(self, logits_SBV: torch.Tensor, targets_BS: torch.Tensor, tag: str) -> torch.Tensor:
        """Return the sum over all tokens."""
        logits_TV = at_least_single(logits_SBV).flatten(0, 1)  # T tokens
        return functional.cross_entropy(logits_TV, targets_BS.t().flatten(), reduction="sum")
