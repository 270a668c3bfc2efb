"""Buckets of gradients, which are summed over ranks as soon as they are complete, in every backward pass.

The gradients of a block's weights are collected in a flat buffer. When the last of them is ready, the buffer is
scattered over the ranks, each keeps the sums of its shard, adds them to those of earlier micro-batches, and the buffer
is dropped. One bucket is under way while the next is filled; without overlap each is waited for when it is complete.

Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020, section
5.2.

Shapes: N elements of a flat buffer, E of a rank's shard of it; P a rank's part of the sequence, B samples of a
micro-batch, D width.
"""

from collections import deque
from collections.abc import Mapping
from functools import partial

import torch

from fabrictune.trainer_probe.comm import Handle
from fabrictune.trainer_probe.data_parallel.flat_layout import FlatLayout
from fabrictune.trainer_probe.data_parallel.stage import Setting
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.parallel.passes import Passes


class Bucket:
    """The gradients of a buffer's weights in one backward pass; adds their sums to `sums_E`."""

    def __init__(
        self, layout: FlatLayout, setting: Setting, weights: Mapping[str, torch.Tensor], sums_E: torch.Tensor
    ) -> None:
        self._layout = layout
        self._comm = setting.comm
        self._policy_name = setting.policy.name
        self._sums_E = sums_E
        self._places: dict[str, torch.Tensor] = {}
        self._flat_N: torch.Tensor | None = None
        self._missing: set[str] = set()
        self._pending: tuple[torch.Tensor, Handle | None] | None = None
        self.owner: BucketedPasses | None = None
        for name, weight in weights.items():
            weight.register_post_accumulate_grad_hook(partial(self._collect, name))  # type: ignore[no-untyped-call]

    @property
    def is_empty(self) -> bool:
        """Whether no gradient waits for others."""
        return self._flat_N is None

    def start(self, tag: str) -> None:
        """Start to sum the gradients; those of weights replicated over tp first over that group."""
        flat_N, self._flat_N = self._flat_N, None
        assert flat_N is not None, "started when full"
        assert not self._missing, "gradients of all weights"
        self._places.clear()
        tag = f"{tag}.{self._layout.part}"
        if self._layout.num_replicated:
            self._comm.all_reduce(
                flat_N[: self._layout.num_replicated],
                axis="tp",
                tag=f"{tag}.replicated-gradients",
                policy=self._policy_name,
            ).wait()
        if self._layout.num_ranks == 1:
            self._pending = flat_N, None
            return
        part_E = torch.empty_like(self._sums_E)
        handle = self._comm.reduce_scatter(
            part_E, flat_N, axis=self._layout.group, tag=f"{tag}.gradients", policy=self._policy_name
        )
        self._pending = part_E, handle

    def finish(self) -> None:
        """Wait for the sums and add them to those of earlier micro-batches."""
        if self._pending is not None:
            (part_E, handle), self._pending = self._pending, None
            if handle is not None:
                handle.wait()
            self._sums_E.add_(part_E)

    def _collect(self, name: str, weight: torch.Tensor) -> None:
        """Take over a weight's gradient."""
        if self._flat_N is None:
            self._flat_N = self._sums_E.new_empty(self._layout.padded_size)
            self._flat_N[self._layout.num_elements :].zero_()
            self._places = self._layout.views(self._flat_N)
            self._missing = set(self._places)
        assert weight.grad is not None, "called when there is one"
        self._places[name].copy_(weight.grad)
        weight.grad = None
        self._missing.remove(name)
        if not self._missing:
            assert self.owner is not None, "filled in a pass"
            self.owner.on_full(self)


class BucketedPasses:
    """The passes of a stage, with the sums of its buckets; backward passes must have the order of the forward ones."""

    def __init__(self, passes: Passes, buckets: list[Bucket], *, is_overlapped: bool) -> None:
        self._passes, self._buckets, self._is_overlapped = passes, buckets, is_overlapped
        self._tags = deque[str]()  # of micro-batches between their forward and backward pass
        self._pending: Bucket | None = None
        for bucket in buckets:
            bucket.owner = self

    def forward(self, batch: MicroBatch, x_PBD: torch.Tensor | None, tag: str) -> torch.Tensor:
        """Run the pass."""
        self._tags.append(tag)
        return self._passes.forward(batch, x_PBD, tag)

    def backward(
        self, x_PBD: torch.Tensor | None, output: torch.Tensor, gradient_PBD: torch.Tensor | None
    ) -> torch.Tensor | None:
        """Run the pass, and sum its gradients into the shards."""
        gradient = self._passes.backward(x_PBD, output, gradient_PBD)
        self._finish()
        assert all(bucket.is_empty for bucket in self._buckets), "a backward pass reaches all weights of a stage"
        self._tags.popleft()
        return gradient

    def weight_gradients(self) -> None:
        """Run the weights' pass."""
        self._passes.weight_gradients()

    def on_full(self, bucket: Bucket) -> None:
        """Start to sum a bucket, after the one before it."""
        self._finish()
        bucket.start(self._tags[0])
        self._pending = bucket
        if not self._is_overlapped:
            self._finish()

    def _finish(self) -> None:
        if self._pending is not None:
            self._pending.finish()
            self._pending = None
