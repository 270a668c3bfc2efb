"""A small multilayer perceptron: the least model whose gradients are worth reducing.

Weights come from a named random stream, so that every layout starts from the same numbers.
"""

import torch

from foundation.seeds import stream
from trainer_probe.config import PerceptronSpec


def make_perceptron(spec: PerceptronSpec, dtype: torch.dtype = torch.float64) -> torch.nn.Sequential:
    """Return the model: a linear layer and tanh, `depth` times."""
    layers: list[torch.nn.Module] = []
    for layer in range(spec.depth):
        linear = torch.nn.Linear(spec.width, spec.width, dtype=dtype)
        random = stream(spec.seed, "weights", layer)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(random.standard_normal((spec.width, spec.width)) / spec.width**0.5))
            linear.bias.copy_(torch.from_numpy(random.standard_normal(spec.width) * 0.1))
        layers += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers)
