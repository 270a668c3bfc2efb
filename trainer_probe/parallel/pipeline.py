"""Executor of a pipeline rank's program: its chunks on micro-batches, activations and gradients by send and receive.

It does not depend on schedules: it executes the program's steps one after another. A stage's weights are gathered and
reduced by two callbacks, before its first forward pass and after the last pass that adds to their gradients.

Shapes: P a rank's part of the sequence, B samples of a micro-batch, D width.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from fabrictune.trainer_probe.comm import Comm, Handle
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.model.operators import at_least_single
from fabrictune.trainer_probe.parallel.passes import Passes
from fabrictune.trainer_probe.parallel.program import Message, Program, output_of
from fabrictune.trainer_probe.parallel.schedule import Pass, PassKind, PipelineShape
from fabrictune.trainer_probe.parallel.schedules.table import schedule_of
from fabrictune.trainer_probe.policies import OverlapPolicy


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One of a rank's stages: its passes, and callbacks around them."""

    passes: Passes
    is_last: bool
    before_first_forward: Callable[[], None]
    after_last_backward: Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class PipelineRank:
    """One rank of a pipeline: its program, stages and communication."""

    shape: PipelineShape
    program: Program
    stages: Mapping[int, Stage]  # by number among all stages
    comm: Comm
    policy: OverlapPolicy
    activation_PBD: torch.Tensor  # with the shape, type and device of messages between stages


def run_pipeline(rank: PipelineRank, batches: Sequence[MicroBatch], scale: float) -> torch.Tensor:
    """Run a step, adding to the weights' gradients; returns `scale` times the loss summed over the batches' tokens.

    Zero on ranks without the last stage. Sends, receives and callbacks are complete when the function returns.
    """
    run = _Run(rank, batches, scale)
    for step in rank.program:
        run.execute[step.kind](step.subject)
    return run.loss


class _Run:
    """The state of one step: received inputs, kept activations, messages in flight."""

    def __init__(self, rank: PipelineRank, batches: Sequence[MicroBatch], scale: float) -> None:
        self.execute: Mapping[str, Callable[..., None]] = {
            "run": self._run,
            "post": self._post,
            "await_receive": self._await_receive,
            "send": self._send,
            "await_send": self._await_send,
        }
        self._run_pass: Mapping[PassKind, Callable[[Pass, Stage], None]] = {
            "forward": self._run_forward,
            "backward": self._run_backward,
            "weights": self._run_weights,
        }
        self.loss = at_least_single(rank.activation_PBD.new_zeros(()))
        self._rank = rank
        self._batches = batches
        self._scale = scale
        self._members = rank.comm.members("pp")
        self._num_passes = Counter[tuple[PassKind, int]]()
        self._last_kind: PassKind = "weights" if schedule_of(rank.shape).splits_backward else "backward"
        self._received: dict[Pass, tuple[torch.Tensor, Handle]] = {}
        self._kept: dict[tuple[int, int], tuple[torch.Tensor | None, torch.Tensor]] = {}  # input and output of forward
        self._to_send: dict[Message, torch.Tensor] = {}
        self._sent: dict[Message, tuple[torch.Tensor, Handle]] = {}  # keeps the tensor alive until it is sent

    def _run(self, now: Pass) -> None:
        stage = self._rank.stages[now.stage]
        self._num_passes[now.kind, now.stage] += 1
        count = self._num_passes[now.kind, now.stage]
        if now.kind == "forward" and count == 1:
            stage.before_first_forward()
        self._run_pass[now.kind](now, stage)
        if now.kind == self._last_kind and count == self._rank.shape.num_batches:
            stage.after_last_backward()

    def _run_forward(self, now: Pass, stage: Stage) -> None:
        x_PBD = self._take_input(now)
        if x_PBD is not None:
            x_PBD.requires_grad_()
        tag = f"stage{now.stage}.batch{now.batch}"
        output = stage.passes.forward(self._batches[now.batch], x_PBD, tag)
        if stage.is_last:
            output = output * self._scale
            self.loss += output.detach()
        self._kept[now.stage, now.batch] = x_PBD, output
        self._offer(now, output.detach())

    def _run_backward(self, now: Pass, stage: Stage) -> None:
        x_PBD, output = self._kept.pop((now.stage, now.batch))
        gradient_PBD = stage.passes.backward(x_PBD, output, self._take_input(now))
        if gradient_PBD is not None:
            self._offer(now, gradient_PBD)

    def _run_weights(self, now: Pass, stage: Stage) -> None:
        stage.passes.weight_gradients()

    def _take_input(self, now: Pass) -> torch.Tensor | None:
        received = self._received.pop(now, None)
        return received[0] if received else None

    def _offer(self, now: Pass, tensor: torch.Tensor) -> None:
        message = output_of(self._rank.shape, now)
        if message:
            self._to_send[message] = tensor.contiguous()

    def _post(self, message: Message) -> None:
        tensor = torch.empty_like(self._rank.activation_PBD)
        handle = self._rank.comm.receive(
            tensor,
            peer=self._members[message.sender],
            axis="pp",
            tag=str(message.taken_by),
            policy=self._rank.policy.name,
        )
        self._received[message.taken_by] = tensor, handle

    def _await_receive(self, message: Message) -> None:
        self._received[message.taken_by][1].wait()

    def _send(self, message: Message) -> None:
        tensor = self._to_send.pop(message)
        handle = self._rank.comm.send(
            tensor,
            peer=self._members[message.receiver],
            axis="pp",
            tag=str(message.taken_by),
            policy=self._rank.policy.name,
        )
        self._sent[message] = tensor, handle

    def _await_send(self, message: Message) -> None:
        self._sent.pop(message)[1].wait()
