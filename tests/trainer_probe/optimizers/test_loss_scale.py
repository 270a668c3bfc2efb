"""The loss scale's rise and fall."""

import pytest

torch = pytest.importorskip("torch")

from fabrictune.trainer_probe.optimizers.loss_scale import LossScale  # noqa: E402


def test_only_half_precision_needs_one() -> None:
    """bfloat16's smallest normal number is float32's, 1.2e-38; float16's is 6.1e-5."""
    assert LossScale.of(torch.float16) == LossScale(value=65536.0)
    assert [LossScale.of(dtype) for dtype in (torch.bfloat16, torch.float32, torch.float64)] == [None] * 3


def test_it_halves_at_once_and_doubles_after_an_interval() -> None:
    """Three good steps double 8 to 16; a bad one halves it and starts the count again."""
    scale = LossScale(value=8.0, growth_interval=3)
    values = []
    for is_finite in (True, True, True, True, False, True, True, True):
        scale = scale.after(is_finite=is_finite)
        values.append(scale.value)
    assert values == [8, 8, 16, 16, 8, 8, 8, 16]


def test_it_never_falls_below_one() -> None:
    """Below one it would add to what it is there to prevent."""
    assert LossScale(value=1.0).after(is_finite=False).value == 1.0
