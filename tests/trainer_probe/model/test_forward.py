"""The model's gradients against finite differences, and a cut model against a whole one."""

import itertools

import pytest

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.model.attention import rotate
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.forward import MicroBatch, run_chunk
from fabrictune.trainer_probe.model.gpt import Block, GptSpec, Positions
from fabrictune.trainer_probe.model.initialization import make_weights
from fabrictune.trainer_probe.model.operators import SingleProcess

EVERY_KIND = list(itertools.product(["serial", "parallel"], ["learned", "rotary"], [None, 2]))


def small_spec(block: Block, positions: Positions, window: int | None) -> GptSpec:
    return GptSpec(
        width=8, depth=2, num_heads=2, vocabulary=7, sequence=5, block=block, positions=positions, window=window
    )


def random_batch(spec: GptSpec, batch_size: int = 2) -> MicroBatch:
    ids = torch.randint(spec.vocabulary, (batch_size, spec.sequence + 1), generator=torch.Generator().manual_seed(1))
    return MicroBatch(tokens_BS=ids[:, :-1], targets_BS=ids[:, 1:])


@pytest.mark.parametrize(("block", "positions", "window"), EVERY_KIND)
def test_every_gradient_is_the_finite_difference(block: Block, positions: Positions, window: int | None) -> None:
    """In double precision, along a random direction of every weight, by torch.autograd.gradcheck."""
    spec = small_spec(block, positions, window)
    chunk, batch = ChunkSpec(model=spec), random_batch(spec)
    weights = make_weights(chunk)
    names = list(weights)

    def loss(*values: torch.Tensor) -> torch.Tensor:
        return run_chunk(chunk, dict(zip(names, values, strict=True)), SingleProcess(), batch, None, "")

    inputs = [value.requires_grad_() for value in weights.values()]
    assert torch.autograd.gradcheck(loss, inputs, fast_mode=True)
    assert all(gradient.abs().max() > 1e-9 for gradient in torch.autograd.grad(loss(*inputs), inputs))


@pytest.mark.parametrize(("block", "positions", "window"), EVERY_KIND)
def test_no_token_sees_a_later_one(block: Block, positions: Positions, window: int | None) -> None:
    """Another last token changes the activations of its own place only; an earlier one is seen by its own place."""
    spec = small_spec(block, positions, window)
    chunk = ChunkSpec(model=spec, number=0, num_chunks=2)
    weights, batch = make_weights(chunk), random_batch(spec)
    changed = batch.tokens_BS.clone()
    changed[:, -1] = (changed[:, -1] + 1) % spec.vocabulary
    before = run_chunk(chunk, weights, SingleProcess(), batch, None, "")
    after = run_chunk(
        chunk, weights, SingleProcess(), MicroBatch(tokens_BS=changed, targets_BS=batch.targets_BS), None, ""
    )
    assert torch.equal(before[:-1], after[:-1])
    assert not torch.equal(before[-1], after[-1])


def test_chunks_after_one_another_are_the_model() -> None:
    """The same operations in the same order: equal to the last bit."""
    spec = small_spec("parallel", "learned", 2)
    whole, batch = ChunkSpec(model=spec), random_batch(spec)
    x = None
    for number in range(2):
        chunk = ChunkSpec(model=spec, number=number, num_chunks=2)
        x = run_chunk(chunk, make_weights(chunk), SingleProcess(), batch, x, "")
    assert x is not None
    assert torch.equal(x, run_chunk(whole, make_weights(whole), SingleProcess(), batch, None, ""))


def test_an_untrained_model_is_as_good_as_guessing() -> None:
    """Logits near nought: the loss of a token is the logarithm of the vocabulary, 1.95 for 7."""
    spec = small_spec("parallel", "learned", None)
    chunk, batch = ChunkSpec(model=spec), random_batch(spec, 64)
    loss = run_chunk(chunk, make_weights(chunk), SingleProcess(), batch, None, "") / (64 * spec.sequence)
    assert float(loss) == pytest.approx(1.946, abs=0.02)


def test_rotary_positions_tell_distances_only() -> None:
    """The product of a query at place i and a key at place j is that of places i + 3 and j + 3."""
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(1, 1, 1, 8, generator=generator, dtype=torch.float64).expand(9, 1, 1, 8) for _ in "qk")
    score_SS = rotate(query)[:, 0, 0] @ rotate(key)[:, 0, 0].t()
    torch.testing.assert_close(score_SS[3:, 3:], score_SS[:-3, :-3], rtol=0, atol=1e-14)
    assert (score_SS[0] - score_SS[0, 0]).abs().max() > 0.1
