"""Sublayers: what a layer of a model is made of, each with its arithmetic and with what it costs, in one class.

A layer adds the result of each of its sublayers to the activations, one after another. A sublayer lists its weights,
runs over `Operators`, and says in closed form what a plan asks: operations, bytes on each axis, memory between the two
passes. Everything else sums over sublayers and knows no model.

torch is imported where a sublayer runs, so that counts and keys need none of it.

Source: Vaswani et al., "Attention is all you need", 2017, section 3.1, for the residual sublayers of a layer.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabrictune.foundation.layout import Axis
from fabrictune.foundation.traces import Operation
from fabrictune.trainer_probe.model.weights import Weights, WeightSpec
from fabrictune.trainer_probe.policies import Recompute

if TYPE_CHECKING:
    import torch

    from fabrictune.trainer_probe.model.operators import Operators

Volumes = Counter[tuple[Axis, Operation]]  # bytes

KEY_AND_VALUE = 2
SINGLE_BYTES = 4  # of a number in single precision


@dataclass(frozen=True, kw_only=True)
class Share:
    """What a rank has of a micro-batch, on which sizes depend."""

    batch_size: int
    sequence: int  # this rank's tokens of a sample
    tp: int
    ep: int
    element_bytes: int
    splits_backward: bool = False  # whether weights' gradients have passes of their own
    cp: int = 1
    recompute: Recompute = "none"

    @property
    def tokens(self) -> int:
        """Tokens of all samples that this rank's tensor-parallel group has."""
        return self.sequence * self.batch_size

    @property
    def part(self) -> int:
        """Tokens of this rank's part of the sequence."""
        return self.tokens // self.tp

    @property
    def sum_bytes(self) -> int:
        """Bytes of a number that is kept in at least single precision."""
        return max(self.element_bytes, SINGLE_BYTES)


class Sublayer(ABC):
    """A part of a layer whose result is added to the activations."""

    @abstractmethod
    def weights(self, name: str) -> Iterable[WeightSpec]:
        """Return the weights, whose names begin with `name`, in order of use."""

    @abstractmethod
    def run(
        self, weights: Weights, operators: "Operators", x_PBD: "torch.Tensor", name: str, tag: str
    ) -> "torch.Tensor":
        """Return what is added to the activations, P B D; requests' tags begin with `tag`."""

    @abstractmethod
    def flops(self) -> int:
        """Return the operations of a token's forward pass in matrix products, as the papers count them."""

    def dispatched_flops(self) -> float:
        """Return the operations of a token's forward pass that the products really take, padding included."""
        return self.flops()

    @abstractmethod
    def volumes(self, share: Share) -> Volumes:
        """Return the bytes of a micro-batch's requests in both passes, sizes as in the ledger."""

    @abstractmethod
    def kept_bytes(self, share: Share) -> int:
        """Return the bytes that autograd keeps of a micro-batch between its two passes, weights apart."""

    @abstractmethod
    def product_bytes(self, share: Share) -> int:
        """Return the bytes of the factors of weights' gradients, which wait for a pass of their own."""

    @abstractmethod
    def product_flops(self) -> int:
        """Return the operations of a token in products whose weights' gradients can have a pass of their own."""


def pair_volumes(share: Share, width: int) -> Volumes:
    """Return the bytes of a column product and the row product after it: 3 activations gathered, 2 scattered.

    The input is gathered again in the backward pass, beside the product that does not need it; where weights' gradients
    have a pass of their own, there, and so is the gradient of the row product. Full recomputation repeats the forward
    pass, with a gather and a scatter.
    """
    if share.tp == 1:
        return Counter()
    activation = share.tokens * width * share.element_bytes
    num_again = 1 if share.recompute == "full" else 0
    gathered = (3 + share.splits_backward + num_again) * activation
    scattered = (2 + num_again) * activation
    return Counter({("tp", Operation.ALL_GATHER): gathered, ("tp", Operation.REDUCE_SCATTER): scattered})


def ring_volumes(share: Share, key_value_width: int) -> Volumes:
    """Return the bytes of keys and values, of that width each, passed round a context-parallel ring.

    All but one of the group's blocks pass a rank forward, and backward, there with as many blocks of gradients.
    Recomputed, attention passes them forward twice.
    """
    num_blocks = (3 if share.recompute == "none" else 4) * (share.cp - 1)
    block = KEY_AND_VALUE * key_value_width // share.tp * share.tokens * share.element_bytes
    return Counter({("cp", way): num_blocks * block for way in (Operation.SEND, Operation.RECEIVE) if num_blocks})
