"""Tensor parallelism with sequence parallelism: the operators of a layer, divided among the ranks of a group.

A column product gathers the sequence and scatters its gradient; a row product scatters its sum and gathers the
gradient. The gathered sequence is not kept for the backward pass but gathered again, beside the product that does not
need it: one more request for less memory. Replicated weights are applied to a part of the sequence on each rank, so
their gradients are summed over the group after the backward pass.

Shapes: S sequence, P a rank's part of it, B batch, D width, O this rank's share of a product's features, V its share of
the vocabulary, T ranks of the group.

Source: Korthikanti et al., "Reducing activation recomputation in large transformer models", section 4.2.2; Shoeybi et
al., Megatron-LM, 2019, section 3 (vocabulary-parallel embedding and cross entropy).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import Function
from torch.nn import functional

from fabrictune.trainer_probe.comm import Comm, Handle
from fabrictune.trainer_probe.model.autograd import apply
from fabrictune.trainer_probe.model.experts import ExpertOperators
from fabrictune.trainer_probe.model.operators import Context, Operators, WholeContext, at_least_single
from fabrictune.trainer_probe.parallel.experts import make_expert_operators
from fabrictune.trainer_probe.parallel.gradient_places import weight_gradient
from fabrictune.trainer_probe.parallel.overlapped_matmul import SequenceGroup
from fabrictune.trainer_probe.parallel.ring_attention import RingContext
from fabrictune.trainer_probe.parallel.sequence import gather_sequence, scatter_sequence
from fabrictune.trainer_probe.parallel.weight_products import (
    Factors,
    KeptProducts,
    RankAlone,
    WeightProduct,
)
from fabrictune.trainer_probe.policies import OverlapPolicy


def make_operators(
    comm: Comm,
    policy: OverlapPolicy,
    num_chunks: int,
    kept: KeptProducts | None = None,
    *,
    num_expert_chunks: int = 1,
) -> Operators:
    """Return the operators of this rank's tensor-, context- and expert-parallel groups.

    A group of one rank makes no requests. Given a place for them, backward passes keep the products for the gradients
    of weights there.
    """
    context = RingContext(comm, policy) if comm.layout.cp > 1 else WholeContext()
    group = SequenceGroup(comm, policy, num_chunks)
    experts = make_expert_operators(comm, policy, group, num_expert_chunks)
    return TensorParallel(group, context, experts, kept) if group.size > 1 else RankAlone(kept, context, experts)


class TensorParallel:
    """The operators over a group of ranks. Requests are named by the tag, the pass, and the number of the chunk."""

    def __init__(
        self, group: SequenceGroup, context: Context, experts: ExpertOperators, kept: KeptProducts | None = None
    ) -> None:
        self.context = context
        self.experts = experts
        self._group = group
        self._kept = kept

    def positions(self, weight: torch.Tensor, tag: str) -> torch.Tensor:
        """Return the rows of this part, P D: those it holds, or of a shared sequence those it takes from the whole."""
        if self.context.size == 1:
            return weight
        own_SD = self.context.take(gather_sequence(weight, self._group, tag), 0)
        return own_SD.chunk(self._group.size)[self._group.place]

    def embed(self, tokens_BS: torch.Tensor, weight_VD: torch.Tensor, tag: str) -> torch.Tensor:
        """Return the rows of this part of the tokens, P B D; each rank looks up those of its share of the ids."""
        ids_SB, is_here_SB = self._local_ids(tokens_BS, weight_VD.shape[0])
        rows_SBD = functional.embedding(ids_SB, weight_VD) * is_here_SB[..., None]
        return scatter_sequence(rows_SBD, self._group, tag)

    def column_linear(
        self, x_PBD: torch.Tensor, weight_DO: torch.Tensor, bias_O: torch.Tensor | None, tag: str
    ) -> torch.Tensor:
        """Return the whole sequence's product with this rank's columns, S B O."""
        product_SBO = apply(_ColumnProduct, x_PBD, weight_DO, self._group, self._kept, tag)
        return product_SBO if bias_O is None else product_SBO + bias_O

    def row_linear(
        self, x_SBO: torch.Tensor, weight_OD: torch.Tensor, bias_D: torch.Tensor | None, tag: str
    ) -> torch.Tensor:
        """Return this part of the sequence's product with the rows of all ranks, P B D."""
        sum_PBD = apply(_RowProduct, x_SBO, weight_OD, self._group, self._kept, tag)
        return sum_PBD if bias_D is None else sum_PBD + bias_D

    def cross_entropy(self, logits_SBV: torch.Tensor, targets_BS: torch.Tensor, tag: str) -> torch.Tensor:
        """Return the sum over all tokens, on every rank."""
        ids_SB, is_here_SB = self._local_ids(targets_BS, logits_SBV.shape[-1])
        return apply(_CrossEntropy, at_least_single(logits_SBV), ids_SB, is_here_SB, self._group, tag)

    def _local_ids(self, tokens_BS: torch.Tensor, share: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the ids counted from this rank's first, 0 where they are another's, and whether they are its own."""
        ids_SB = tokens_BS.t() - self._group.place * share
        is_here_SB = (ids_SB >= 0) & (ids_SB < share)
        return ids_SB.masked_fill(~is_here_SB, 0), is_here_SB


class _ColumnProduct(Function):
    """Forward: gather, then multiply. Backward: multiply and scatter, beside gathering again for the weight.

    Kept for later, the weight's product gathers when it is made.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x_PBD: torch.Tensor,
        weight_DO: torch.Tensor,
        group: SequenceGroup,
        kept: KeptProducts | None,
        tag: str,
    ) -> torch.Tensor:
        ctx.save_for_backward(x_PBD, weight_DO)
        ctx.group, ctx.kept, ctx.tag = group, kept, tag
        return group.gather_and_multiply(x_PBD, weight_DO, f"{tag}.forward")

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (x_PBD, weight_DO), gradient_SBO = ctx.saved_tensors, gradients[0]
        group, tag = ctx.group, ctx.tag

        def start() -> Callable[[], Factors]:
            x_SBD, again = group.gather(x_PBD, f"{tag}.again")
            return lambda: (_awaited(x_SBD, again), gradient_SBO)

        wait = start() if ctx.kept is None else None
        gradient_PBD, finish = group.multiply_and_scatter(gradient_SBO, weight_DO.t(), f"{tag}.backward")
        gradient_DO = None if wait is None else weight_gradient(weight_DO, *wait())
        if ctx.kept is not None:
            ctx.kept.keep(WeightProduct(weight_IO=weight_DO, start=start))
        finish()
        return gradient_PBD, gradient_DO, None, None, None


class _RowProduct(Function):
    """Forward: multiply, then scatter the sum. Backward: gather, then multiply.

    Kept for later, the weight's product gathers the gradient again, of which every rank keeps its part only.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x_SBO: torch.Tensor,
        weight_OD: torch.Tensor,
        group: SequenceGroup,
        kept: KeptProducts | None,
        tag: str,
    ) -> torch.Tensor:
        ctx.save_for_backward(x_SBO, weight_OD)
        ctx.group, ctx.kept, ctx.tag = group, kept, tag
        sum_PBD, finish = group.multiply_and_scatter(x_SBO, weight_OD, f"{tag}.forward")
        finish()
        return sum_PBD

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (x_SBO, weight_OD), gradient_PBD = ctx.saved_tensors, gradients[0]
        group, tag = ctx.group, ctx.tag
        part, *rest = gradient_PBD.shape
        gradient_SBD = gradient_PBD.new_empty(group.size * part, *rest) if ctx.kept is None else None
        gradient_SBO = group.gather_and_multiply(gradient_PBD, weight_OD.t(), f"{tag}.backward", gradient_SBD)
        if gradient_SBD is not None:
            return gradient_SBO, weight_gradient(weight_OD, x_SBO, gradient_SBD), None, None, None

        def start() -> Callable[[], Factors]:
            again_SBD, again = group.gather(gradient_PBD, f"{tag}.again")
            return lambda: (x_SBO, _awaited(again_SBD, again))

        ctx.kept.keep(WeightProduct(weight_IO=weight_OD, start=start))
        return gradient_SBO, None, None, None, None


class _CrossEntropy(Function):
    """One request: of each rank the largest logit, the sum of exponentials below it, and the target's logit."""

    @staticmethod
    def forward(
        ctx: Any,
        logits_SBV: torch.Tensor,
        ids_SB: torch.Tensor,
        is_here_SB: torch.Tensor,
        group: SequenceGroup,
        tag: str,
    ) -> torch.Tensor:
        largest_SB = logits_SBV.amax(-1)
        exponential_SBV = (logits_SBV - largest_SB[..., None]).exp()
        target_SB = logits_SBV.gather(-1, ids_SB[..., None])[..., 0] * is_here_SB
        own_13SB = torch.stack([largest_SB, exponential_SBV.sum(-1), target_SB])[None]
        all_T3SB, handle = group.gather(own_13SB, f"{tag}.forward")
        handle.wait()
        largest_TSB, sum_TSB, target_TSB = all_T3SB.unbind(1)
        overall_SB = largest_TSB.amax(0)
        total_SB = (sum_TSB * (largest_TSB - overall_SB).exp()).sum(0)
        share_SB = (largest_SB - overall_SB).exp() / total_SB
        ctx.save_for_backward(exponential_SBV * share_SB[..., None], ids_SB, is_here_SB)
        return (total_SB.log() + overall_SB - target_TSB.sum(0)).sum()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        probability_SBV, ids_SB, is_here_SB = ctx.saved_tensors
        is_target_SB1 = is_here_SB[..., None].to(probability_SBV.dtype)
        difference_SBV = probability_SBV.scatter_add(-1, ids_SB[..., None], -is_target_SB1)
        return difference_SBV * gradients[0], None, None, None, None


def _awaited(tensor: torch.Tensor, handle: Handle) -> torch.Tensor:
    handle.wait()
    return tensor
