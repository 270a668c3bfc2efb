"""Matrix products overlapped with the collectives of tensor parallelism, chunk by chunk.

The rank's part of the sequence is cut; while a chunk's product is computed, the next one's tokens are in flight to all
ranks, or the last one's sums in flight back. Without overlap the chunks and their products are the same, and each
request is waited for where it is made.

Shapes: T ranks of the group, S = T * P sequence, P a rank's part, B batch, I and O features before and after a product.

Source: MegaScale (NSDI'24), section 3.2, "overlapping in tensor/sequence parallelism".
"""

from collections.abc import Callable

import torch

from fabrictune.trainer_probe.comm import Comm, Handle
from fabrictune.trainer_probe.policies import OverlapPolicy


class SequenceGroup:
    """A tensor-parallel group whose ranks hold parts of the sequence between products."""

    def __init__(self, comm: Comm, policy: OverlapPolicy, num_chunks: int = 1) -> None:
        members = comm.members("tp")
        self.size = len(members)
        self.place = members.index(comm.rank)
        self._comm = comm
        self._policy = policy
        self._num_chunks = num_chunks

    def gather(self, part: torch.Tensor, tag: str) -> tuple[torch.Tensor, Handle]:
        """Start to gather all ranks' parts; returns the whole, complete after a wait on the handle."""
        part = part.contiguous()
        whole = part.new_empty(self.size, *part.shape)
        handle = self._started(self._comm.all_gather(whole, part, axis="tp", tag=tag, policy=self._policy.name))
        return whole.flatten(0, 1), handle

    def scatter(self, whole: torch.Tensor, tag: str) -> torch.Tensor:
        """Return this rank's part of the sum over all ranks."""
        part = whole.new_empty(whole.shape[0] // self.size, *whole.shape[1:])
        self._comm.reduce_scatter(part, whole.contiguous(), axis="tp", tag=tag, policy=self._policy.name).wait()
        return part

    def to_features(self, x_PBI: torch.Tensor, tag: str) -> torch.Tensor:
        """Return this rank's part of the features of the whole sequence."""
        parts = x_PBI.view(*x_PBI.shape[:2], self.size, -1).movedim(2, 0)  # T, P B, a part of I
        return self._exchange(parts, tag).flatten(0, 1)

    def to_sequence(self, x_SBO: torch.Tensor, tag: str) -> torch.Tensor:
        """Return all features of this rank's part of the sequence, where each rank has a part of them."""
        parts = x_SBO.view(self.size, -1, *x_SBO.shape[1:])
        return self._exchange(parts, tag).movedim(0, 2).flatten(2)

    def _exchange(self, parts: torch.Tensor, tag: str) -> torch.Tensor:
        received = torch.empty_like(parts, memory_format=torch.contiguous_format)
        self._comm.all_to_all(received, parts.contiguous(), axis="tp", tag=tag, policy=self._policy.name).wait()
        return received

    def gather_and_multiply(
        self, x_PBI: torch.Tensor, matrix_IO: torch.Tensor, tag: str, whole_SBI: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the product of all ranks' tokens, S B O; writes the tokens to `whole_SBI`, where it is given.

        Each chunk is gathered into a tensor of its own, in which it is contiguous.
        """
        x_PBI = x_PBI.contiguous()
        chunks = self._chunks(x_PBI.shape[0])
        whole_TPBI = None if whole_SBI is None else whole_SBI.view(self.size, *x_PBI.shape)
        is_divided = len(chunks) > 1

        def start(number: int) -> tuple[torch.Tensor, Handle]:
            part_CBI = x_PBI[chunks[number]]
            chunk_TCBI = x_PBI.new_empty(self.size, *part_CBI.shape) if is_divided or whole_TPBI is None else whole_TPBI
            request = self._comm.all_gather(
                chunk_TCBI, part_CBI, axis="tp", tag=f"{tag}.{number}", policy=self._policy.name
            )
            return chunk_TCBI, self._started(request)

        product_TPBO = x_PBI.new_empty(self.size, *x_PBI.shape[:2], matrix_IO.shape[1]) if is_divided else None
        chunk_TCBI, handle = start(0)
        for number, places in enumerate(chunks):
            now_TCBI = chunk_TCBI
            handle.wait()
            if number + 1 < len(chunks):
                chunk_TCBI, handle = start(number + 1)
            if product_TPBO is None:
                return _multiply(now_TCBI, matrix_IO).flatten(0, 1)
            product_TPBO[:, places] = _multiply(now_TCBI, matrix_IO)
            if whole_TPBI is not None:
                whole_TPBI[:, places] = now_TCBI
        assert product_TPBO is not None, "a single chunk's product has been returned"
        return product_TPBO.flatten(0, 1)

    def multiply_and_scatter(
        self, x_SBI: torch.Tensor, matrix_IO: torch.Tensor, tag: str
    ) -> tuple[torch.Tensor, Callable[[], None]]:
        """Start the product summed over ranks; returns this rank's part, P B O, and a function that completes it."""
        x_TPBI = x_SBI.reshape(self.size, -1, *x_SBI.shape[1:])
        sum_PBO = x_SBI.new_empty(*x_TPBI.shape[1:3], matrix_IO.shape[1])
        handles = []
        for number, places in enumerate(self._chunks(x_TPBI.shape[1])):
            request = self._comm.reduce_scatter(
                sum_PBO[places],
                _multiply(x_TPBI[:, places], matrix_IO),
                axis="tp",
                tag=f"{tag}.{number}",
                policy=self._policy.name,
            )
            handles.append(self._started(request))

        def finish() -> None:
            for handle in handles:
                handle.wait()

        return sum_PBO, finish

    def _chunks(self, num_places: int) -> list[slice]:
        size = num_places // self._num_chunks
        return [slice(number * size, (number + 1) * size) for number in range(self._num_chunks)]

    def _started(self, handle: Handle) -> Handle:
        if not self._policy.overlaps("tp"):
            handle.wait()
        return handle


def _multiply(x_TPBI: torch.Tensor, matrix_IO: torch.Tensor) -> torch.Tensor:
    """Return T P B O by one flat product: torch's own takes four times as long where a chunk is not contiguous."""
    product_NO = x_TPBI.flatten(0, 2) @ matrix_IO  # N tokens
    return product_NO.view(*x_TPBI.shape[:3], -1)
