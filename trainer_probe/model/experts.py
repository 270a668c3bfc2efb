"""Routing of tokens to experts: choice, slots of a fixed number, and the way there and back.

Each sample is one group of consecutive tokens, or several. An expert has as many slots for a group as its capacity; a
choice takes the next free slot of its expert, in the order of tokens, and is dropped where there is none. Counted by
groups and in that order, what is dropped depends neither on the layout nor on later tokens. Shapes are fixed, so
nothing waits for a device to know them, and rows are taken by index in both passes, so that no sum depends on an order.

Shapes: P a rank's part of the sequence, S the whole (of a rank of cp, its tokens), B batch, D width, X experts, K
choices of a token, G groups of a sequence, L choices of a group, C slots of an expert for a group, N = G B C, M = X N
all slots, U spans of tokens, R rows, J rows that one row is taken to.

Source: Shazeer et al., "Outrageously large neural networks: the sparsely-gated mixture-of-experts layer", 2017; Fedus
et al., "Switch transformers", 2021, section 2.2 (capacity, balance loss); Lepikhin et al., "GShard", 2021, section 2.2
(groups of tokens); Jiang et al., "Mixtral of experts", 2024, section 2.1 (gates over the chosen); DeepSeek-AI,
"DeepSeek-V3 technical report", 2024, equations 17 to 20 (loss by samples).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.function import Function

from fabrictune.trainer_probe.model.autograd import apply
from fabrictune.trainer_probe.model.weights import Capacity

Compute = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Routing:
    """Each token's experts, the best first, their shares of its result, and the probability of all experts."""

    choice_PBK: torch.Tensor
    gate_PBK: torch.Tensor
    probability_PBX: torch.Tensor


@dataclass(frozen=True, kw_only=True)
class Dispatched:
    """Tokens in the slots of all experts, and the way back to the whole sequence."""

    slots_XND: torch.Tensor
    slot_SBK: torch.Tensor  # of each choice; M where it was dropped
    choice_M: torch.Tensor  # in each slot, S B K flat; S * B * K where it is empty
    gate_SBK: torch.Tensor
    load_GBX: torch.Tensor  # each expert's share of a group's choices, dropped ones included


class RoutingSums:
    """What a rank has routed since the last reset: sums over tokens and layers, which stay on their device.

    A layer that is computed again in the backward pass counts again, in all of them.
    """

    def __init__(self) -> None:
        self._sums: torch.Tensor | None = None  # balance losses, tokens, dropped choices, choices

    def add(self, balance: torch.Tensor, routing: Routing, dispatched: Dispatched) -> None:
        """Count the tokens of a layer, whose balance losses sum to `balance`."""
        is_dropped_SBK = dispatched.slot_SBK == len(dispatched.choice_M)
        if self._sums is None:
            self._sums = is_dropped_SBK.new_zeros(4, dtype=torch.float64)
        self._sums[0] += balance.detach()
        self._sums[1] += routing.choice_PBK.shape[:2].numel()
        self._sums[2] += is_dropped_SBK.sum()
        self._sums[3] += is_dropped_SBK.numel()

    def reset(self) -> None:
        """Begin anew."""
        if self._sums is not None:
            self._sums.zero_()

    def numbers(self) -> tuple[float, float, float, float]:
        """Return the balance losses, their tokens, the dropped choices, and all choices; zero without experts."""
        balance, num_tokens, num_dropped, num_choices = [0.0] * 4 if self._sums is None else self._sums.tolist()
        return balance, num_tokens, num_dropped, num_choices


class ExpertOperators:
    """The way of tokens to experts and back: here on a process that has all tokens and all experts.

    An operator of a group divides `run`. `tag` begins the names of the requests that it may make.
    """

    def __init__(self) -> None:
        self.loss_weight = 1.0  # of a balance loss, as of the cross entropy of a token
        self.place = 0  # of this rank's part in the sequence that is dispatched
        self.sums = RoutingSums()

    def run(
        self, x_PBD: torch.Tensor, routing: Routing, capacity: Capacity, compute: Compute, tag: str
    ) -> tuple[torch.Tensor, Dispatched]:
        """Return the sums of the results of each token's experts by their gates, P B D, and where tokens were.

        `compute` returns the results of this rank's experts on all of their slots, X N D both.
        """
        dispatched = dispatch(x_PBD, routing.choice_PBK, routing.gate_PBK, capacity)
        return combine(compute(dispatched.slots_XND), dispatched), dispatched

    def add_balance_loss(
        self, x_PBD: torch.Tensor, routing: Routing, dispatched: Dispatched, coefficient: float
    ) -> torch.Tensor:
        """Return the activations; the backward pass adds the gradient of the balance loss of this rank's tokens."""
        loss = balance_loss(routing, dispatched, self.place)
        self.sums.add(loss, routing, dispatched)
        return add_loss(x_PBD, coefficient * loss, self.loss_weight)


def route(logits_PBX: torch.Tensor, num_choices: int) -> Routing:
    """Return the `num_choices` most probable experts of each token, whose gates sum to 1."""
    probability_PBX = logits_PBX.softmax(-1)
    largest_PBK, choice_PBK = probability_PBX.topk(num_choices, dim=-1)
    gate_PBK = largest_PBK / largest_PBK.sum(-1, keepdim=True)
    return Routing(choice_PBK=choice_PBK, gate_PBK=gate_PBK, probability_PBX=probability_PBX)


def dispatch(x_SBD: torch.Tensor, choice_SBK: torch.Tensor, gate_SBK: torch.Tensor, capacity: Capacity) -> Dispatched:
    """Return the tokens in the slots of all experts."""
    num_tokens, num_choices = x_SBD.shape[:2].numel(), choice_SBK.numel()
    choice_GBL = _by_group(choice_SBK, capacity)
    is_chosen_GBLX = choice_GBL[..., None] == torch.arange(capacity.num_experts, device=x_SBD.device)
    slot_SBK = _in_sequence(_slots(choice_GBL, is_chosen_GBLX, capacity), choice_SBK.shape[2])
    num_slots = capacity.num_experts * choice_GBL.shape[:2].numel() * capacity.num_slots
    choice_M1 = choice_SBK.new_full((num_slots + 1,), num_choices)  # the last slot takes what is dropped
    choice_M1.scatter_(0, slot_SBK.flatten(), torch.arange(num_choices, device=x_SBD.device))
    choice_M = choice_M1[:-1]
    token_M = choice_M // choice_SBK.shape[2]
    slots_MD = _take(x_SBD.flatten(0, 1), token_M, slot_SBK.view(num_tokens, -1))
    return Dispatched(
        slots_XND=slots_MD.view(capacity.num_experts, -1, x_SBD.shape[2]),
        slot_SBK=slot_SBK,
        choice_M=choice_M,
        gate_SBK=gate_SBK,
        load_GBX=is_chosen_GBLX.sum(2, dtype=gate_SBK.dtype) / is_chosen_GBLX.shape[2],
    )


def combine(results_XND: torch.Tensor, dispatched: Dispatched) -> torch.Tensor:
    """Return each token's sum of its experts' results by their gates, S B D; a dropped choice adds nothing."""
    slot_SBK = dispatched.slot_SBK
    rows_RD = _take(results_XND.flatten(0, 1), slot_SBK.flatten(), dispatched.choice_M[:, None])
    gate_SBK = dispatched.gate_SBK.to(rows_RD.dtype)
    return (rows_RD.view(*slot_SBK.shape, -1) * gate_SBK[..., None]).sum(2)


def balance_loss(routing: Routing, dispatched: Dispatched, place: int = 0) -> torch.Tensor:
    """Return X times the sum over experts of load and probability, for a rank's tokens: 1 a token if all are equal.

    The tokens are the part at `place` of the sequence that was dispatched; each counts with the load of its group.
    """
    probability_PBX, load_GBX = routing.probability_PBX, dispatched.load_GBX
    num_tokens, group_size = len(probability_PBX), len(dispatched.slot_SBK) // len(load_GBX)
    span = math.gcd(num_tokens, group_size)  # of tokens that are of one group
    probability_UBX = probability_PBX.view(-1, span, *probability_PBX.shape[1:]).sum(1)
    first_U = place * num_tokens + span * torch.arange(len(probability_UBX), device=load_GBX.device)
    return load_GBX.shape[2] * (load_GBX[first_U // group_size] * probability_UBX).sum()


def add_loss(x: torch.Tensor, loss: torch.Tensor, weight: float) -> torch.Tensor:
    """Return `x`; the backward pass adds the gradient of `weight` times a loss."""
    return apply(_AddLoss, x, loss, weight)


def _by_group(choice_SBK: torch.Tensor, capacity: Capacity) -> torch.Tensor:
    """Return the choices of each group in order of tokens, G B L."""
    return choice_SBK.view(-1, capacity.num_tokens, *choice_SBK.shape[1:]).transpose(1, 2).flatten(2)


def _in_sequence(number_GBL: torch.Tensor, num_choices: int) -> torch.Tensor:
    """Return a number of each choice in the order of the sequence, S B K."""
    return number_GBL.view(*number_GBL.shape[:2], -1, num_choices).transpose(1, 2).flatten(0, 1).contiguous()


def _slots(choice_GBL: torch.Tensor, is_chosen_GBLX: torch.Tensor, capacity: Capacity) -> torch.Tensor:
    """Return each choice's slot, G B L, or the number of all slots where its expert has no free one."""
    num_groups = choice_GBL.shape[:2].numel()
    number_GBL = (is_chosen_GBLX.cumsum(2) * is_chosen_GBLX).sum(-1) - 1
    group_GB1 = torch.arange(num_groups, device=choice_GBL.device).view(*choice_GBL.shape[:2], 1)
    slot_GBL = (choice_GBL * num_groups + group_GB1) * capacity.num_slots + number_GBL
    all_slots = capacity.num_experts * num_groups * capacity.num_slots
    return slot_GBL.masked_fill(number_GBL >= capacity.num_slots, all_slots)


def _take(x_RD: torch.Tensor, row_M: torch.Tensor, taken_to_RJ: torch.Tensor) -> torch.Tensor:
    """Return rows by number, M D, zero where there is none of that number; `taken_to_RJ` is the inverse."""
    return apply(_TakeRows, x_RD, row_M, taken_to_RJ)


def _rows(x_RD: torch.Tensor, row_M: torch.Tensor) -> torch.Tensor:
    is_one_M = row_M < x_RD.shape[0]
    return x_RD[row_M.clamp(max=x_RD.shape[0] - 1)] * is_one_M[:, None]


class _TakeRows(Function):
    """A row goes to several places; its gradient is the sum of theirs, in their order."""

    @staticmethod
    def forward(ctx: Any, x_RD: torch.Tensor, row_M: torch.Tensor, taken_to_RJ: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(taken_to_RJ)
        return _rows(x_RD, row_M)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (taken_to_RJ,) = ctx.saved_tensors
        gradient_RJD = _rows(gradients[0], taken_to_RJ.flatten()).view(*taken_to_RJ.shape, -1)
        return gradient_RJD.sum(1), None, None


class _AddLoss(Function):
    """The activations, with a second path for gradients."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, loss: torch.Tensor, weight: float) -> torch.Tensor:
        ctx.weight, ctx.kind = weight, loss.dtype
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return gradients[0], gradients[0].new_full((), ctx.weight, dtype=ctx.kind), None
