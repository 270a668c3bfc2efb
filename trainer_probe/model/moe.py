"""Mixture of experts: Llama's layers, whose feed-forward part is several experts, of which each token takes a few.

A router gives each token its experts and their gates; the token's result is the sum of theirs. A loss of balance keeps
the router from choosing the same few. A rank of an expert-parallel group has some of the experts, one of a
tensor-parallel group a share of their features. The way to them and back is an operator, which takes what they compute.

Shapes: P a rank's part of the sequence, B batch, D width, X experts, N slots of an expert, F this rank's features of an
expert.

Source: Jiang et al., "Mixtral of experts", 2024, Table 1 (preset) and section 2.1; DeepSeek-AI, "DeepSeek-V3 technical
report", 2024, section 4.2 (preset); Fedus et al., "Switch transformers",
2021, section 2.2; more in `model/experts.py`.
Left out: shared experts, layers without experts among others with them, multi-head latent attention; noise of the
router; a rank's gathering overlapped with its products.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fabrictune.foundation.errors import Mistake
from fabrictune.foundation.traces import Operation
from fabrictune.trainer_probe.model.llama import GATE_AND_UP, GroupedQueryAttention, LlamaSpec
from fabrictune.trainer_probe.model.spec import not_positive
from fabrictune.trainer_probe.model.sublayers import Share, Sublayer, Volumes
from fabrictune.trainer_probe.model.weights import Capacity, Weights, WeightSpec, normal_weight

if TYPE_CHECKING:
    import torch

    from fabrictune.trainer_probe.model.operators import Operators

ID_BYTES = 8  # of an expert's number


@dataclass(frozen=True, kw_only=True)
class MoeSpec(LlamaSpec):
    """Mixture of experts: Llama's attention, and a few of several experts for each token."""

    family: ClassVar[str] = "moe"

    num_experts: int = field(
        default=8, metadata={"help": "experts of a layer, each with `feed_forward_width` features"}
    )
    num_choices: int = field(default=2, metadata={"help": "experts of a token (top-k)"})
    capacity_factor: float | None = field(
        default=1.25,
        metadata={"help": "slots of all experts over a group's choices; further ones are dropped, without it none"},
    )
    token_groups: int = field(
        default=1, metadata={"help": "groups of consecutive tokens of a sample, each with slots of its own"}
    )
    balance_coefficient: float = field(default=0.01, metadata={"help": "of the balance loss beside cross entropy"})

    @property
    def num_divided_experts(self) -> int:
        """Experts of a layer."""
        return self.num_experts

    @property
    def num_token_groups(self) -> int:
        """Groups of a sample's tokens, over each of which slots are dealt."""
        return self.token_groups

    @property
    def capacity(self) -> Capacity:
        """Experts, and their slots for a group of tokens."""
        num_tokens = self.sequence // self.token_groups
        most = num_tokens
        if self.capacity_factor is not None:
            most = math.ceil(self.capacity_factor * self.num_choices * num_tokens / self.num_experts)
        return Capacity(num_experts=self.num_experts, num_slots=min(num_tokens, most), num_tokens=num_tokens)

    def sublayers(self, layer: int) -> Mapping[str, Sublayer]:
        """Return attention and the experts; all layers are alike."""
        return {"attention": GroupedQueryAttention(self), "experts": Experts(self)}

    def mistakes(self) -> Iterator[Mistake]:
        """Return what is wrong with the keys."""
        yield from super().mistakes()
        yield from not_positive(self, ("num_experts", "num_choices", "token_groups"))
        if self.token_groups > 1 and self.sequence % self.token_groups:
            yield Mistake(
                where="model.token_groups",
                found=str(self.token_groups),
                allowed=f"a divisor of sequence {self.sequence}",
            )
        if self.num_choices > self.num_experts >= 1:
            yield Mistake(
                where="model.num_choices",
                found=str(self.num_choices),
                allowed=f"at most the {self.num_experts} experts",
            )
        if self.capacity_factor is not None and not 0 < self.capacity_factor < math.inf:
            yield Mistake(
                where="model.capacity_factor",
                found=f"{self.capacity_factor:g}",
                allowed="a number above 0",
                next_step="leave it empty to drop no tokens",
            )
        if not 0 <= self.balance_coefficient < math.inf:
            yield Mistake(where="model.balance_coefficient", found=f"{self.balance_coefficient:g}", allowed="0 or more")


PRESETS: dict[str, MoeSpec] = {
    "moe-tiny": MoeSpec(
        width=64,
        depth=4,
        num_heads=4,
        num_key_value_heads=2,
        feed_forward_width=96,
        vocabulary=256,
        sequence=64,
        num_experts=4,
    ),
    "mixtral-8x7b": MoeSpec(
        width=4096,
        depth=32,
        num_heads=32,
        num_key_value_heads=8,
        feed_forward_width=14_336,
        vocabulary=32_000,
        sequence=4096,
        rotary_base=1_000_000.0,
    ),
    "moe-671b": MoeSpec(  # DeepSeek-V3's layers without its shared expert, all with experts, heads of Llama's kind
        width=7168,
        depth=61,
        num_heads=128,
        num_key_value_heads=128,
        feed_forward_width=2048,
        vocabulary=129_280,
        sequence=4096,
        num_experts=256,
        num_choices=8,
        capacity_factor=1.0,
    ),
}


@dataclass(frozen=True)
class Experts(Sublayer):
    """The feed-forward part: route, dispatch, experts of SwiGLU, combine."""

    spec: MoeSpec

    def weights(self, name: str) -> Iterator[WeightSpec]:
        """Return the norm's and the router's weights, which every rank has, and the matrices of the experts."""
        spec = self.spec
        yield from spec.norm.weights(f"{name}.norm")
        yield normal_weight(f"{name}.router.weight", (spec.width, spec.num_experts), split=None)
        yield normal_weight(
            f"{name}.input.weight",
            (spec.num_experts, spec.width, GATE_AND_UP, spec.feed_forward_width),
            split=3,
            is_of_experts=True,
        )
        yield normal_weight(
            f"{name}.output.weight",
            (spec.num_experts, spec.feed_forward_width, spec.width),
            split=1,
            deviation=spec.output_deviation,
            is_of_experts=True,
        )

    def run(
        self, weights: Weights, operators: "Operators", x_PBD: "torch.Tensor", name: str, tag: str
    ) -> "torch.Tensor":
        """Return what is added to the activations, P B D."""
        from fabrictune.trainer_probe.model.experts import route
        from fabrictune.trainer_probe.model.functions import swiglu
        from fabrictune.trainer_probe.model.operators import at_least_single

        spec, weight_XD2F = self.spec, weights[f"{name}.input.weight"]

        def compute(slots_XND: "torch.Tensor") -> "torch.Tensor":
            product_XNF = slots_XND.bmm(weight_XD2F.flatten(2))
            gate_XNF, up_XNF = product_XNF.view(*product_XNF.shape[:2], GATE_AND_UP, -1).unbind(2)
            return swiglu(gate_XNF, up_XNF).bmm(weights[f"{name}.output.weight"])

        normal_PBD = spec.norm.run(weights, f"{name}.norm", x_PBD)
        routing = route(at_least_single(normal_PBD @ weights[f"{name}.router.weight"]), spec.num_choices)
        sum_PBD, dispatched = operators.experts.run(normal_PBD, routing, spec.capacity, compute, tag)
        return operators.experts.add_balance_loss(sum_PBD, routing, dispatched, spec.balance_coefficient)

    def flops(self) -> int:
        """Return 2 h x + 6 h f k: the router of x experts, and k experts of f features."""
        spec = self.spec
        return 2 * spec.width * spec.num_experts + spec.num_choices * self._expert_flops()

    def dispatched_flops(self) -> float:
        """Return the operations with all slots, of which some are empty."""
        spec, capacity = self.spec, self.spec.capacity
        slots = capacity.num_experts * capacity.num_slots
        return 2 * spec.width * spec.num_experts + slots * self._expert_flops() / capacity.num_tokens

    def volumes(self, share: Share) -> Volumes:
        """Return the tokens' way to the experts and back, both again for gradients; choices and gates.

        Alone or on tensor ranks, the whole sequence is gathered and its results scattered. On expert ranks all slots
        are exchanged, of which a tensor rank has a part of the features, and gathers and scatters the others. Full
        recomputation repeats the forward pass.
        """
        width_bytes, (choices, slots) = self.spec.width * share.element_bytes, self._rows(share)
        num_forward = 2 if share.recompute == "full" else 1
        volumes: Volumes = Counter()
        if share.ep > 1:
            volumes["ep", Operation.ALL_TO_ALL] = 2 * (num_forward + 1) * slots * width_bytes // share.tp
        if share.tp > 1:
            if share.ep > 1:
                volumes["tp", Operation.ALL_TO_ALL] = 2 * (num_forward + 1) * share.part * width_bytes
            moved = (num_forward + 1) * (slots if share.ep > 1 else share.tokens) * width_bytes
            routing = num_forward * choices * (ID_BYTES + share.sum_bytes)
            volumes["tp", Operation.ALL_GATHER] = moved + routing
            volumes["tp", Operation.REDUCE_SCATTER] = moved + choices * share.sum_bytes
        return volumes

    def kept_bytes(self, share: Share) -> int:
        """Return what the router, the experts on all their slots, and the sum over choices keep."""
        spec, number_bytes = self.spec, share.element_bytes
        choices, slots = self._rows(share)
        width = spec.width // share.tp if share.ep > 1 else spec.width  # of the results that are summed
        of_token = spec.num_experts * share.sum_bytes + spec.num_choices * ID_BYTES  # probabilities, and the chosen
        of_token += (spec.num_choices + 1) * share.sum_bytes  # theirs, and the sum of these
        hidden = (GATE_AND_UP + 2) * spec.feed_forward_width // share.tp  # with the gate's silu, and the product
        return (
            spec.norm.kept_bytes(share)
            + share.part * of_token
            + self._num_loads(share) * spec.num_experts * share.sum_bytes
            + slots * (spec.width + hidden) * number_bytes
            + choices * (width + 1) * number_bytes  # results and gates
            + (choices + slots + 1) * ID_BYTES  # the way there and back
        )

    def product_bytes(self, share: Share) -> int:
        """Return 0: products of experts are no operators, and make their weights' gradients in the backward pass."""
        return 0

    def product_flops(self) -> int:
        """Return 0, as above."""
        return 0

    def _rows(self, share: Share) -> tuple[int, int]:
        """Return the choices of a micro-batch's tokens, and the slots of its groups, which are as many as a rank's."""
        capacity = self.spec.capacity
        slots = capacity.num_experts * capacity.num_slots
        return share.tokens * self.spec.num_choices, slots * (share.tokens // capacity.num_tokens)

    def _num_loads(self, share: Share) -> int:
        """Return the spans of tokens, of one group each, for which a rank keeps the experts' loads."""
        part = share.sequence // share.tp
        return share.batch_size * part // math.gcd(part, self.spec.capacity.num_tokens)

    def _expert_flops(self) -> int:
        return 2 * (GATE_AND_UP + 1) * self.spec.width * self.spec.feed_forward_width
