"""Settings of an optimizer that cannot be."""

from typing import Any

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.trainer_probe.optimizers.spec import OptimizerSpec


def test_all_mistakes_are_said_at_once() -> None:
    """A beta of 1 would never take a gradient in; a norm of nought would leave nothing of it."""
    settings: dict[str, Any] = {"name": "lam", "beta1": 1.0, "epsilon": 0.0, "max_gradient_norm": 0.0}
    with pytest.raises(InputError) as error:
        OptimizerSpec(**settings)
    assert str(error.value) == (
        "optimizer.beta1: 1\n  allowed: 0 or more, below 1\n"
        "optimizer.epsilon: 0\n  allowed: above 0\n"
        "optimizer.max_gradient_norm: 0\n  allowed: above 0; inf for no clipping\n"
        "optimizer.name: unknown optimizer 'lam'\n  did you mean 'lamb'?\n  allowed: adamw, lamb"
    )
