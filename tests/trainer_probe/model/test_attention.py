"""The band against the full score matrix, and what it costs."""

import pytest

pytest.importorskip("torch")

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from fabrictune.trainer_probe.model.attention import attend, attend_in_band, attend_in_window


def random_inputs(num_tokens: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Queries, keys and values of 2 samples, 3 heads, 4 features."""
    generator = torch.Generator().manual_seed(0)
    query, key, value = torch.randn(3, 2, 3, num_tokens, 4, generator=generator, dtype=torch.float64)
    return query.requires_grad_(), key.requires_grad_(), value.requires_grad_()


def attend_by_definition(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, window: int) -> torch.Tensor:
    """Softmax over the scores of the latest `window` tokens, all others minus infinity."""
    place = torch.arange(query.shape[2])
    distance = place[:, None] - place[None]
    scores = (query @ key.transpose(-1, -2)) / query.shape[-1] ** 0.5
    weights: torch.Tensor = scores.masked_fill((distance < 0) | (distance >= window), -torch.inf).softmax(-1)
    return weights @ value


@pytest.mark.parametrize("num_tokens", [1, 7, 12, 16])
@pytest.mark.parametrize("window", [1, 3, 4, 16])
def test_the_band_is_the_masked_matrix(num_tokens: int, window: int) -> None:
    """Also where the window does not divide the sequence, is one token, or is longer."""
    inputs = random_inputs(num_tokens)
    found, expected = attend(*inputs, window=window), attend_by_definition(*inputs, window)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
    weights = torch.linspace(-1, 1, found.numel(), dtype=torch.float64).view_as(found)
    for ours, theirs in zip(
        torch.autograd.grad((found * weights).sum(), inputs),
        torch.autograd.grad((expected * weights).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-14)


def test_full_attention_sees_all_earlier_tokens() -> None:
    """A window of the whole sequence, by definition."""
    inputs = random_inputs(9)
    torch.testing.assert_close(attend(*inputs, window=None), attend_by_definition(*inputs, 9), rtol=0, atol=1e-14)


def count_operations(num_tokens: int, window: int | None) -> int:
    counter = FlopCounterMode(display=False)
    with counter, sdpa_kernel(SDPBackend.MATH):  # whose products are counted one by one
        attend(*random_inputs(num_tokens), window=window)
    return int(counter.get_total_flops())


def test_operations_grow_with_sequence_times_window() -> None:
    """A query meets 2 w keys, twice (scores, values), at 2 operations a feature: 8 s w E for each of 2 * 3 heads."""
    assert count_operations(64, 8) == 8 * 64 * 8 * 4 * 6
    assert count_operations(128, 8) == 2 * count_operations(64, 8)
    assert count_operations(64, 16) == 2 * count_operations(64, 8)
    assert count_operations(128, None) == 4 * count_operations(64, None)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile:UserWarning")
@pytest.mark.parametrize("window", [1, 5, 16])
def test_the_fused_kernels_mask_is_the_band(window: int) -> None:
    """Computed by definition here; torch has its backward pass on GPUs alone."""
    query, key, value = (tensor.detach() for tensor in random_inputs(16))
    found, expected = attend_in_window(query, key, value, window), attend_in_band(query, key, value, window)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)


@pytest.mark.real
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")
def test_the_fused_kernel_is_the_band() -> None:
    """In bfloat16, which has 8 bits: a hundredth of outputs and gradients of order 1."""
    generator = torch.Generator("cuda").manual_seed(0)
    half = torch.randn(3, 2, 4, 512, 64, generator=generator, device="cuda", dtype=torch.bfloat16).requires_grad_()
    exact = half.detach().double().requires_grad_()
    found, expected = attend(half[0], half[1], half[2], 100), attend(exact[0], exact[1], exact[2], 100)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=0.02)
    (gradients,), (exact_gradients,) = (
        torch.autograd.grad(found.sum(), half),
        torch.autograd.grad(expected.sum(), exact),
    )
    torch.testing.assert_close(gradients.double(), exact_gradients, rtol=0.02, atol=0.02)
