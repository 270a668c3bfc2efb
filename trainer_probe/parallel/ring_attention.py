"""Context parallelism: each rank has two chunks of every sequence, and keys and values go round the ranks in a ring.

Of 2 C equal chunks, rank c of C has number c from the front and number c from the back, so that under a causal mask all
ranks multiply as much. A rank attends to one rank's keys and values while the next one's are on their way, and merges
the results. In the backward pass the blocks go round once more, each followed by its gradients, to which every rank
adds its part; the owner adds its own last. Without overlap each message is waited for where it is sent; the sums are
the same.

Every rank sends as many messages in the same order, each to the next rank on a communicator of their one way, with one
under way: none can wait for a rank that waits for it.

Source: Liu et al., "Ring attention with blockwise transformers for near-infinite context", 2023; Megatron Core's
context parallelism and Brandon et al., "Striped attention: faster ring attention for causal transformers", 2023, for
the balance.
Left out: blocks out of a window's reach go round too.

Shapes: S this rank's tokens of a sequence, B batch, H heads of this rank, G those of keys and values, E features of a
head, N tensors of a message.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.autograd.function import Function

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.model.attention import rotate
from fabrictune.trainer_probe.model.attention_tiles import MergedAttention, MergedGradients, Tile
from fabrictune.trainer_probe.model.autograd import apply
from fabrictune.trainer_probe.model.operators import at_least_single
from fabrictune.trainer_probe.policies import OverlapPolicy

Arrival = Callable[[], torch.Tensor]  # waits for a message and returns it


class RingContext:
    """This rank's tokens of each sequence, and attention to those of all ranks of its group."""

    def __init__(self, comm: Comm, policy: OverlapPolicy) -> None:
        members = comm.members("cp")
        self.size = len(members)
        self.place = members.index(comm.rank)
        self._before, self._after = members[self.place - 1], members[(self.place + 1) % self.size]
        self._comm = comm
        self._policy = policy

    def take(self, whole: torch.Tensor, dim: int) -> torch.Tensor:
        """Return this rank's tokens of the whole sequence, which is dimension `dim`."""
        chunks = whole.chunk(2 * self.size, dim)
        return torch.cat([chunks[number] for number in chunks_of(self.place, self.size)], dim)

    def attend(
        self,
        query: torch.Tensor,
        key_SBGE: torch.Tensor,
        value_SBGE: torch.Tensor,
        window: int | None,
        base: float | None,
        tag: str,
    ) -> torch.Tensor:
        """Return attention's result for this rank's tokens, S B H E."""
        if base is not None:
            place_S = self._places(key_SBGE.shape[0], key_SBGE.device)
            query, key_SBGE = rotate(query, base, place_S), rotate(key_SBGE, base, place_S)
        query_SBHE = query if query.dim() == key_SBGE.dim() else query.flatten(2, 3)
        return apply(_RingAttention, query_SBHE, key_SBGE, value_SBGE, self, window, f"{tag}.ring")

    def start_exchange(self, message: torch.Tensor, tag: str) -> Arrival:
        """Start to send a message to the next rank, and to receive one of its shape from the rank before."""
        received = torch.empty_like(message)
        where: dict[str, Any] = {"axis": "cp", "tag": tag, "policy": self._policy.name}
        handles = (
            self._comm.receive(received, peer=self._before, **where),
            self._comm.send(message, peer=self._after, **where),
        )

        def wait() -> torch.Tensor:
            for handle in handles:
                handle.wait()
            return received

        if not self._policy.overlaps("cp"):
            wait()
        return wait

    def tiles(self, source: int, num_tokens: int, window: int | None, device: torch.device) -> Iterator[Tile]:
        """Yield the parts of attention to the keys of the rank at place `source` in which any pair of tokens meets."""
        chunk = num_tokens // 2
        first, second, both = slice(0, chunk), slice(chunk, num_tokens), slice(0, num_tokens)
        if window is None or window >= num_tokens * self.size:
            if device.type == "meta":  # a plan counts causal attention whole, as for one rank
                yield Tile(queries=both, keys=both)
            elif source == self.place:
                yield Tile(queries=both, keys=both, is_causal=True)
            elif source < self.place:  # its first chunk is before both of this rank's, its second after both
                yield Tile(queries=both, keys=first)
            else:
                yield Tile(queries=second, keys=both)
            return
        for own, queries in zip(chunks_of(self.place, self.size), (first, second), strict=True):
            for other, keys in zip(chunks_of(source, self.size), (first, second), strict=True):
                ahead = (own - other) * chunk
                if ahead >= 0 and ahead - chunk + 1 < window:
                    yield Tile(queries=queries, keys=keys, hidden_QK=_hidden(chunk, ahead, window, device))

    def _places(self, num_tokens: int, device: torch.device) -> torch.Tensor:
        """Return the places of this rank's tokens in the sequence, S, in double precision."""
        whole = torch.arange(num_tokens * self.size, device=device, dtype=torch.float64)
        return self.take(whole, 0)


def chunks_of(place: int, size: int) -> tuple[int, int]:
    """Return the numbers of the chunks, of `2 * size`, that the rank at a place has."""
    return place, 2 * size - 1 - place


def ring_pairs(size: int) -> set[tuple[int, int]]:
    """Return the places of each message's sender and receiver."""
    return {(place, (place + 1) % size) for place in range(size) if size > 1}


class _RingAttention(Function):
    """Keeps queries, keys and values of this rank, the result, and the logarithms of the sums."""

    @staticmethod
    def forward(
        ctx: Any,
        query_SBHE: torch.Tensor,
        key_SBGE: torch.Tensor,
        value_SBGE: torch.Tensor,
        ring: RingContext,
        window: int | None,
        tag: str,
    ) -> torch.Tensor:
        block_2BGSE = _block_of(key_SBGE, value_SBGE)
        merged = MergedAttention(query_SBHE.permute(1, 2, 0, 3))
        for step in range(ring.size):
            is_last = step == ring.size - 1
            arrival = None if is_last else ring.start_exchange(block_2BGSE, f"{tag}.forward.{step}")
            for tile in ring.tiles((ring.place - step) % ring.size, len(query_SBHE), window, query_SBHE.device):
                merged.add(tile, block_2BGSE[0], block_2BGSE[1])
            block_2BGSE = block_2BGSE if arrival is None else arrival()
        result_SBHE = merged.result_BHQE.permute(2, 0, 1, 3).to(query_SBHE.dtype).contiguous()
        ctx.save_for_backward(query_SBHE, key_SBGE, value_SBGE, result_SBHE, merged.log_sum_BHQ)
        ctx.ring, ctx.window, ctx.tag = ring, window, tag
        return result_SBHE

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        query_SBHE, key_SBGE, value_SBGE, result_SBHE, log_sum_BHS = ctx.saved_tensors
        ring: RingContext = ctx.ring
        gradient_BHSE, query_BHSE, result_BHSE = (
            tensor.permute(1, 2, 0, 3) for tensor in (gradients[0], query_SBHE, result_SBHE)
        )
        merged = MergedGradients(gradient_BHSE, query_BHSE, result_BHSE, log_sum_BHS)
        block_2BGSE = _block_of(key_SBGE, value_SBGE)
        passed: list[torch.Tensor] = []  # the gradients of the block before, to go on to the next rank
        own_2BGSE = torch.zeros_like(at_least_single(block_2BGSE))
        for step in range(ring.size):
            message = [*([block_2BGSE] if step < ring.size - 1 else []), *passed]
            arrival = ring.start_exchange(torch.stack(message), f"{ctx.tag}.backward.{step}") if message else None
            sums_2BGSE = torch.zeros_like(own_2BGSE) if step else own_2BGSE
            for tile in ring.tiles((ring.place - step) % ring.size, len(query_SBHE), ctx.window, query_SBHE.device):
                merged.add(tile, block_2BGSE, sums_2BGSE)
            arrived = list(arrival()) if arrival else []
            if passed:
                sums_2BGSE += arrived.pop()
            passed = [sums_2BGSE.to(key_SBGE.dtype)] if step else []
            block_2BGSE = arrived.pop() if arrived else block_2BGSE
        own_2BGSE += ring.start_exchange(passed[0], f"{ctx.tag}.backward.{ring.size}")()
        key_gradient_SBGE, value_gradient_SBGE = own_2BGSE.to(key_SBGE.dtype).permute(0, 3, 1, 2, 4)
        query_gradient_SBHE = merged.query_BHQE.permute(2, 0, 1, 3).to(query_SBHE.dtype)
        return query_gradient_SBHE, key_gradient_SBGE, value_gradient_SBGE, None, None, None


def _block_of(key_SBGE: torch.Tensor, value_SBGE: torch.Tensor) -> torch.Tensor:
    """Return keys and values as one message, 2 B G S E."""
    return torch.stack([key_SBGE, value_SBGE]).permute(0, 2, 3, 1, 4).contiguous()


def _hidden(chunk: int, ahead: int, window: int, device: torch.device) -> torch.Tensor | None:
    """Return which pairs of two chunks do not meet, Q K, the queries' chunk `ahead` places behind the keys'."""
    if ahead >= chunk and ahead + chunk <= window:
        return None
    place = torch.arange(chunk, device=device)
    distance_QK = ahead + place[:, None] - place
    return (distance_QK < 0) | (distance_QK >= window)
