"""Gradient buckets: the parameters' gradients in a few flat buffers, each reduced in one request.

Gradients are views of the buffers, so nothing is copied. Buckets fill in the order in which the backward pass reaches
the parameters, from the last to the first. Under the policy `overlap` a bucket is sent when its last gradient is there;
under `none` all are sent after the backward pass, one after another.

Source: Li et al., "PyTorch Distributed: experiences on accelerating data parallel training", VLDB 2020, section 3.2.
"""

from collections.abc import Sequence

import torch

from trainer_probe.comm import Comm, Handle
from trainer_probe.config import Policy


class GradientBuckets:
    """The gradients of a model's parameters, summed over the data-parallel group."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter], comm: Comm, bucket_bytes: int, policy: Policy) -> None:
        self._comm = comm
        self._policy = policy
        self._handles: list[Handle] = []
        self._buffers: list[torch.Tensor] = []
        self._num_missing: list[int] = []
        self._sizes: list[int] = []
        for members in _partition(list(reversed(parameters)), bucket_bytes):
            self._add_bucket(members)

    @property
    def num_buckets(self) -> int:
        """How many requests a step makes."""
        return len(self._buffers)

    def start(self) -> None:
        """Empty the gradients for a new backward pass."""
        for buffer in self._buffers:
            buffer.zero_()
        self._num_missing = list(self._sizes)

    def finish(self) -> None:
        """After the backward pass: send what is not sent, and return when every gradient is summed."""
        if self._policy == "none":
            for bucket in range(self.num_buckets):
                self._send(bucket).wait()
        for handle in self._handles:
            handle.wait()
        self._handles.clear()

    def _add_bucket(self, members: Sequence[torch.nn.Parameter]) -> None:
        bucket = self.num_buckets
        buffer = torch.zeros(sum(parameter.numel() for parameter in members), dtype=members[0].dtype)
        first = 0
        for parameter in members:
            parameter.grad = buffer[first : first + parameter.numel()].view_as(parameter)
            first += parameter.numel()
            parameter.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]  # torch leaves it untyped
                lambda _: self._on_gradient(bucket)
            )
        self._buffers.append(buffer)
        self._sizes.append(len(members))

    def _on_gradient(self, bucket: int) -> None:
        self._num_missing[bucket] -= 1
        if self._policy == "overlap" and self._num_missing[bucket] == 0:
            self._handles.append(self._send(bucket))

    def _send(self, bucket: int) -> Handle:
        return self._comm.all_reduce(self._buffers[bucket], axis="dp", tag=f"gradients.{bucket}", policy=self._policy)


def _partition(parameters: Sequence[torch.nn.Parameter], bucket_bytes: int) -> list[list[torch.nn.Parameter]]:
    """Return the parameters in runs, each begun anew when it would pass `bucket_bytes`."""
    buckets: list[list[torch.nn.Parameter]] = []
    room = -1
    for parameter in parameters:
        size = parameter.numel() * parameter.element_size()
        if size > room:
            buckets.append([])
            room = bucket_bytes
        buckets[-1].append(parameter)
        room -= size
    return buckets
