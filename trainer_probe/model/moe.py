"""Mixture of experts: Llama's layers, whose feed-forward part is several experts, of which each token takes a few.

A router gives each token its experts and their gates; the token's result is the sum of theirs. A loss of balance keeps
the router from choosing the same few. Every rank of a tensor-parallel group has a share of each expert's features; over
data parallelism experts are replicated. The route is `dispatch`, experts, `combine`; the first and the last are
operators, so that experts can be divided over ranks without a change here.

Shapes: P a rank's part of the sequence, B batch, D width, X experts, N slots of an expert, F this rank's features of an
expert.

Source: Jiang et al., "Mixtral of experts", 2024, Table 1 (preset) and section 2.1; Fedus et al., "Switch transformers",
2021, section 2.2; more in `model/experts.py`.
Left out: shared experts; noise of the router; a rank's gathering overlapped with its products.
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
    shares_sequences: ClassVar[bool] = False  # slots of experts are dealt over a whole sequence

    num_experts: int = field(
        default=8, metadata={"help": "experts of a layer, each with `feed_forward_width` features"}
    )
    num_choices: int = field(default=2, metadata={"help": "experts of a token (top-k)"})
    capacity_factor: float | None = field(
        default=1.25,
        metadata={"help": "slots of all experts over a sample's choices; further ones are dropped, without it none"},
    )
    balance_coefficient: float = field(default=0.01, metadata={"help": "of the balance loss beside cross entropy"})

    @property
    def capacity(self) -> Capacity:
        """Experts, and their slots for a sample."""
        most = self.sequence
        if self.capacity_factor is not None:
            most = math.ceil(self.capacity_factor * self.num_choices * self.sequence / self.num_experts)
        return Capacity(num_experts=self.num_experts, num_slots=min(self.sequence, most))

    def sublayers(self, layer: int) -> Mapping[str, Sublayer]:
        """Return attention and the experts; all layers are alike."""
        return {"attention": GroupedQueryAttention(self), "experts": Experts(self)}

    def mistakes(self) -> Iterator[Mistake]:
        """Return what is wrong with the keys."""
        yield from super().mistakes()
        yield from not_positive(self, ("num_experts", "num_choices"))
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
            f"{name}.input.weight", (spec.num_experts, spec.width, GATE_AND_UP, spec.feed_forward_width), split=3
        )
        yield normal_weight(
            f"{name}.output.weight",
            (spec.num_experts, spec.feed_forward_width, spec.width),
            split=1,
            deviation=spec.output_deviation,
        )

    def run(
        self, weights: Weights, operators: "Operators", x_PBD: "torch.Tensor", name: str, tag: str
    ) -> "torch.Tensor":
        """Return what is added to the activations, P B D."""
        from fabrictune.trainer_probe.model.experts import balance_loss, route
        from fabrictune.trainer_probe.model.functions import swiglu
        from fabrictune.trainer_probe.model.operators import at_least_single

        spec, weight_XD2F = self.spec, weights[f"{name}.input.weight"]
        normal_PBD = spec.norm.run(weights, f"{name}.norm", x_PBD)
        routing = route(at_least_single(normal_PBD @ weights[f"{name}.router.weight"]), spec.num_choices)
        dispatched = operators.dispatch(normal_PBD, routing, spec.capacity, tag)
        product_XNF = dispatched.slots_XND.bmm(weight_XD2F.flatten(2))
        gate_XNF, up_XNF = product_XNF.view(*product_XNF.shape[:2], GATE_AND_UP, -1).unbind(2)
        results_XND = swiglu(gate_XNF, up_XNF).bmm(weights[f"{name}.output.weight"])
        loss = spec.balance_coefficient * balance_loss(routing, dispatched.load_BX)
        return operators.add_loss(operators.combine(results_XND, dispatched, tag), loss)

    def flops(self) -> int:
        """Return 2 h x + 6 h f k: the router of x experts, and k experts of f features."""
        spec = self.spec
        return 2 * spec.width * spec.num_experts + spec.num_choices * self._expert_flops()

    def dispatched_flops(self) -> float:
        """Return the operations with all slots, of which some are empty."""
        spec, capacity = self.spec, self.spec.capacity
        slots = capacity.num_experts * capacity.num_slots
        return 2 * spec.width * spec.num_experts + slots * self._expert_flops() / spec.sequence

    def volumes(self, share: Share) -> Volumes:
        """Return the tokens gathered and their results scattered, both again for gradients; choices and gates.

        Full recomputation repeats the forward pass.
        """
        if share.tp == 1:
            return Counter()
        activation = share.tokens * self.spec.width * share.element_bytes
        num_gates = share.tokens * self.spec.num_choices
        num_forward = 2 if share.recompute == "full" else 1
        gathered = (num_forward + 1) * activation + num_forward * num_gates * (ID_BYTES + share.sum_bytes)
        scattered = (num_forward + 1) * activation + num_gates * share.sum_bytes
        return Counter({("tp", Operation.ALL_GATHER): gathered, ("tp", Operation.REDUCE_SCATTER): scattered})

    def kept_bytes(self, share: Share) -> int:
        """Return what the router, the experts on all their slots, and the sum over choices keep."""
        spec, number_bytes = self.spec, share.element_bytes
        choices = share.tokens * spec.num_choices
        of_token = spec.num_experts * share.sum_bytes + spec.num_choices * ID_BYTES  # probabilities, and the chosen
        of_token += (spec.num_choices + 1) * share.sum_bytes  # theirs, and the sum of these
        slots = spec.capacity.num_experts * spec.capacity.num_slots * share.batch_size
        hidden = (GATE_AND_UP + 2) * spec.feed_forward_width // share.tp  # with the gate's silu, and the product
        return (
            spec.norm.kept_bytes(share)
            + share.part * of_token
            + share.batch_size * spec.num_experts * share.sum_bytes  # loads
            + slots * (spec.width + hidden) * number_bytes
            + choices * (spec.width + 1) * number_bytes  # results and gates
            + (choices + slots + 1) * ID_BYTES  # the way there and back
        )

    def product_bytes(self, share: Share) -> int:
        """Return 0: products of experts are no operators, and make their weights' gradients in the backward pass."""
        return 0

    def product_flops(self) -> int:
        """Return 0, as above."""
        return 0

    def _expert_flops(self) -> int:
        return 2 * (GATE_AND_UP + 1) * self.spec.width * self.spec.feed_forward_width
