"""Expert parallelism: tokens exchanged between ranks with different experts, and their results exchanged back.

A rank fills the slots of all experts with its own samples' tokens, as a single process does, and sends each slot to the
rank of its expert, empty or not. The slots are cut into chunks: with the axis overlapped, the later ones are under way
while experts compute an earlier one. A tensor-parallel rank sends a part of each token's features, and gathers the
others behind the exchange; so a slot crosses from group to group once.

Gradients go the reverse way. autograd runs later operations first, so that the order of a backward pass's requests is
the forward one's, reversed, on all ranks.

Shapes: S sequence, P a rank's part of it, B batch, D width, E a rank's part of it, K choices of a token, X experts,
R ranks of the group, Y experts of a rank, N slots of an expert for one rank's tokens, M = R N for all of them, T
tensor-parallel ranks.

Source: Lepikhin et al., "GShard", ICLR 2021, section 3.2; Hwang et al., "Tutel: adaptive mixture-of-experts at scale",
MLSys 2023, section 3.3 (chunks).
Left out: chunks of the features' gathering over tensor-parallel ranks under way beside products.
"""

from itertools import pairwise
from typing import Any, Literal

import torch
from torch.autograd.function import Function

from fabrictune.trainer_probe.comm import Comm, Handle
from fabrictune.trainer_probe.model.autograd import apply
from fabrictune.trainer_probe.model.experts import Compute, Dispatched, ExpertOperators, Routing, combine, dispatch
from fabrictune.trainer_probe.model.weights import Capacity
from fabrictune.trainer_probe.parallel.overlapped_matmul import SequenceGroup
from fabrictune.trainer_probe.parallel.sequence import (
    features_to_sequence,
    gather_sequence,
    scatter_sequence,
    sequence_to_features,
)
from fabrictune.trainer_probe.policies import OverlapPolicy

Side = Literal["slots", "experts"]


def make_expert_operators(comm: Comm, policy: OverlapPolicy, group: SequenceGroup, num_chunks: int) -> ExpertOperators:
    """Return the way to this rank's experts; `group` is its tensor-parallel one."""
    if comm.layout.ep > 1:
        return ExpertParallel(ExpertGroup(comm, policy, group), num_chunks)
    return TensorParallelExperts(group) if group.size > 1 else ExpertOperators()


class TensorParallelExperts(ExpertOperators):
    """All experts on each rank of a tensor-parallel group, a share of the features of each."""

    def __init__(self, group: SequenceGroup) -> None:
        super().__init__()
        self.place = group.place
        self._group = group

    def run(
        self, x_PBD: torch.Tensor, routing: Routing, capacity: Capacity, compute: Compute, tag: str
    ) -> tuple[torch.Tensor, Dispatched]:
        """Return the sums of this part of the sequence; the whole of it is gathered and its results scattered."""
        x_SBD = gather_sequence(x_PBD, self._group, f"{tag}.dispatch")
        dispatched = dispatch(x_SBD, *_gather_routing(routing, self._group, tag), capacity)
        sum_SBD = combine(compute(dispatched.slots_XND), dispatched)
        return scatter_sequence(sum_SBD, self._group, f"{tag}.combine"), dispatched


class ExpertGroup:
    """The ranks that divide the experts, each with its tensor-parallel group."""

    def __init__(self, comm: Comm, policy: OverlapPolicy, tensor_group: SequenceGroup) -> None:
        self.size = len(comm.members("ep"))
        self.tensor_group = tensor_group
        self._comm, self._policy = comm, policy

    def start(self, x_RYNE: torch.Tensor, tag: str) -> tuple[torch.Tensor, Handle]:
        """Start to exchange; returns the parts of all ranks, R Y N E, complete after a wait on the handle."""
        received_RYNE = torch.empty_like(x_RYNE)
        handle = self._comm.all_to_all(received_RYNE, x_RYNE, axis="ep", tag=tag, policy=self._policy.name)
        if not self._policy.overlaps("ep"):
            handle.wait()
        return received_RYNE, handle

    def pack(self, x: torch.Tensor, side: Side, tag: str) -> torch.Tensor:
        """Return what this rank sends, R Y N E: of its tokens' slots, or of its experts, summed over their features."""
        if side == "slots":
            return x.reshape(self.size, -1, *x.shape[1:]).contiguous()
        num_ranks = self.tensor_group.size
        x_YRNTE = x.view(x.shape[0], self.size, -1, num_ranks, x.shape[2] // num_ranks)
        x_TRYNE = x_YRNTE.permute(3, 1, 0, 2, 4).contiguous()
        if num_ranks == 1:
            return x_TRYNE[0]
        return self.tensor_group.scatter(x_TRYNE, f"{tag}.sum")[0]

    def unpack(self, received_RYNE: torch.Tensor, side: Side, tag: str) -> torch.Tensor:
        """Return what this rank has received: its tokens' slots, X N E, or those of its experts, Y M D."""
        if side == "slots":
            return received_RYNE.flatten(0, 1)
        received_TRYNE = received_RYNE[None]
        if self.tensor_group.size > 1:
            received_TRYNE, handle = self.tensor_group.gather(received_TRYNE, f"{tag}.gather")
            handle.wait()
        return received_TRYNE.permute(2, 1, 3, 0, 4).flatten(3).flatten(1, 2)


class ExpertParallel(ExpertOperators):
    """A part of the experts on each rank of an expert-parallel group."""

    def __init__(self, group: ExpertGroup, num_chunks: int) -> None:
        super().__init__()
        self.place = group.tensor_group.place
        self._group, self._num_chunks = group, num_chunks

    def run(
        self, x_PBD: torch.Tensor, routing: Routing, capacity: Capacity, compute: Compute, tag: str
    ) -> tuple[torch.Tensor, Dispatched]:
        """Return the sums of this part of the sequence, whose experts are on several ranks."""
        dispatched = self._dispatch(x_PBD, routing, capacity, tag)
        there = [
            _Exchange(self._group, f"{tag}.dispatch.{number}", chunk_XNE, begins_at="slots")
            for number, chunk_XNE in enumerate(self._chunks(dispatched.slots_XND))
        ]
        back = [
            _Exchange(self._group, f"{tag}.combine.{number}", compute(sent.finish()), begins_at="experts")
            for number, sent in enumerate(there)
        ]
        sum_SBE = combine(torch.cat([sent.finish() for sent in back], 1), dispatched)
        return self._to_sequence(sum_SBE, tag), dispatched

    def _dispatch(self, x_PBD: torch.Tensor, routing: Routing, capacity: Capacity, tag: str) -> Dispatched:
        group = self._group.tensor_group
        if group.size == 1:
            return dispatch(x_PBD, routing.choice_PBK, routing.gate_PBK, capacity)
        x_SBE = sequence_to_features(x_PBD, group, f"{tag}.dispatch.features")
        return dispatch(x_SBE, *_gather_routing(routing, group, tag), capacity)

    def _to_sequence(self, x_SBE: torch.Tensor, tag: str) -> torch.Tensor:
        group = self._group.tensor_group
        return x_SBE if group.size == 1 else features_to_sequence(x_SBE, group, f"{tag}.combine.features")

    def _chunks(self, slots_XNE: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return about equal parts of every expert's slots."""
        num_slots = slots_XNE.shape[1]
        num_chunks = min(self._num_chunks, num_slots)
        ends = [number * num_slots // num_chunks for number in range(num_chunks + 1)]
        return torch.split(slots_XNE, [end - begin for begin, end in pairwise(ends)], 1)


class _Exchange:
    """One exchange in both passes: begun where it is made, finished where its result is taken."""

    def __init__(self, group: ExpertGroup, tag: str, x: torch.Tensor, *, begins_at: Side) -> None:
        self.group, self.tag = group, tag
        self.begins_at: Side = begins_at
        self.ends_at: Side = "experts" if begins_at == "slots" else "slots"
        self.handle: Handle | None = None
        self._under_way_RYNE = apply(_Begin, x, self)

    def finish(self) -> torch.Tensor:
        """Return the result when it has arrived."""
        return apply(_Finish, self._under_way_RYNE, self)

    def start(self, x: torch.Tensor, side: Side, direction: str) -> torch.Tensor:
        """Start a pass' request from a side."""
        tag = f"{self.tag}.{direction}"
        received_RYNE, self.handle = self.group.start(self.group.pack(x, side, tag), tag)
        return received_RYNE

    def take(self, received_RYNE: torch.Tensor, side: Side, direction: str) -> torch.Tensor:
        """Wait for a pass' request on the other side."""
        assert self.handle is not None, "taken once it is started"
        self.handle.wait()
        self.handle = None
        return self.group.unpack(received_RYNE, side, f"{self.tag}.{direction}")


class _Begin(Function):
    """Forward: start the exchange. Backward: wait for that of the gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, exchange: _Exchange) -> torch.Tensor:
        ctx.exchange = exchange
        return exchange.start(x, exchange.begins_at, "forward")

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return ctx.exchange.take(gradients[0], ctx.exchange.begins_at, "backward"), None


class _Finish(Function):
    """Forward: wait for the exchange. Backward: start that of the gradient."""

    @staticmethod
    def forward(ctx: Any, received_RYNE: torch.Tensor, exchange: _Exchange) -> torch.Tensor:
        ctx.exchange = exchange
        return exchange.take(received_RYNE, exchange.ends_at, "forward")

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return ctx.exchange.start(gradients[0], ctx.exchange.ends_at, "backward"), None


def _gather_routing(routing: Routing, group: SequenceGroup, tag: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the choices and gates of the whole sequence, S B K."""
    choice_SBK, handle = group.gather(routing.choice_PBK, f"{tag}.choices.forward")
    gate_SBK = gather_sequence(routing.gate_PBK, group, f"{tag}.gates")
    handle.wait()
    return choice_SBK, gate_SBK
