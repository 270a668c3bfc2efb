"""The data-parallel training step: each rank's share of a seeded batch, forward, backward, summed gradients, update.

The loss is a mean over the whole batch, so that the sum of the ranks' gradients is the gradient of one process that
sees it all. Data come from a named stream per step: every layout sees the same batch.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from foundation.errors import InputError, Mistake
from foundation.seeds import stream
from trainer_probe.buckets import GradientBuckets
from trainer_probe.comm import Comm
from trainer_probe.config import TrainingSpec
from trainer_probe.perceptron import make_perceptron


class DataParallelTrainer:
    """One rank's part of data-parallel training, in double precision."""

    def __init__(self, spec: TrainingSpec, comm: Comm) -> None:
        if spec.batch_size % comm.layout.dp:
            raise InputError(
                Mistake(where="batch_size", found=str(spec.batch_size), allowed=f"a multiple of dp, {comm.layout.dp}")
            )
        self._spec = spec
        self._comm = comm
        self.model = make_perceptron(spec.model)
        self._buckets = GradientBuckets(list(self.model.parameters()), comm, spec.bucket_bytes, spec.policy)

    def run_step(self, step: int) -> float:
        """Train on one batch; returns this rank's share of the loss. Gradients stay until the next step."""
        self._comm.step = step
        inputs, targets = self._share(step)
        self._buckets.start()
        loss = (self.model(inputs) - targets).square().sum() / (self._spec.batch_size * self._spec.model.width)
        loss.backward()
        self._buckets.finish()
        with torch.no_grad():
            for parameter in self.model.parameters():
                assert parameter.grad is not None, "a bucket holds every gradient"
                parameter.add_(parameter.grad, alpha=-self._spec.learning_rate)
        return float(loss.detach())

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Return the arrays `gradient.<name>` and `parameter.<name>` of every parameter."""
        found: dict[str, NDArray[np.float64]] = {}
        for name, parameter in self.model.named_parameters():
            assert parameter.grad is not None, "a bucket holds every gradient"
            found[f"gradient.{name}"] = parameter.grad.numpy()
            found[f"parameter.{name}"] = parameter.detach().numpy()
        return found

    def _share(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return this rank's rows of the step's inputs and targets."""
        shape = (2, self._spec.batch_size, self._spec.model.width)
        inputs, targets = torch.from_numpy(stream(self._spec.seed, "batch", step).standard_normal(shape))
        place = self._comm.members("dp").index(self._comm.rank)
        rows = self._spec.batch_size // self._comm.layout.dp
        return inputs[place * rows : (place + 1) * rows], targets[place * rows : (place + 1) * rows]
