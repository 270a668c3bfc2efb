"""Shapes of models, presets, and counts against closed forms; published figures are among the conformance cases."""

import math
from dataclasses import replace

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.gpt import PRESETS, Block, GptSpec, Positions, published_parameters
from fabrictune.trainer_probe.model.spec import flops_per_token, flops_per_token_recomputed, num_parameters


def test_the_presets_have_the_published_shapes() -> None:
    """MegaScale, Table 1: heads, hidden size and layers; section 6.1: sequence 2,048 and vocabulary 64,000."""
    shapes = {
        name: (spec.num_heads, spec.width, spec.depth, spec.sequence, spec.vocabulary) for name, spec in PRESETS.items()
    }
    assert shapes["175B"] == (128, 12288, 96, 2048, 64_000)
    assert shapes["530B"] == (160, 20480, 105, 2048, 64_000)


def test_all_mistakes_are_reported_at_once() -> None:
    """Ten features are no whole number for each of four heads, and 65 tokens are more than there are."""
    with pytest.raises(InputError) as caught:
        GptSpec(width=10, num_heads=4, sequence=64, window=65, depth=0, block="paralel")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "model.depth: 0\n"
        "  allowed: 1 or more\n"
        "model.width: 10\n"
        "  allowed: a multiple of the 4 heads\n"
        "model.window: 65\n"
        "  allowed: at most the sequence, 64\n"
        "  next: leave it out for full attention\n"
        "model.block: 'paralel'\n"
        "  did you mean 'parallel'?\n"
        "  allowed: serial, parallel"
    )


def test_rotary_positions_need_pairs_of_features() -> None:
    """Twelve features over four heads are three each, of which one would have no partner."""
    with pytest.raises(InputError, match="heads of 3 features"):
        GptSpec(width=12, num_heads=4, positions="rotary")


@pytest.mark.parametrize("name", ["175B", "530B"])
def test_published_parameters_follow_the_closed_form(name: str) -> None:
    """12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)): 174.8 and 529.9 thousand million."""
    spec = PRESETS[name]
    h, depth = spec.width, spec.depth
    factor = 1 + 13 / (12 * h) + (spec.vocabulary + spec.sequence) / (12 * depth * h)
    assert published_parameters(spec) == pytest.approx(12 * depth * h**2 * factor, rel=1e-12)
    assert published_parameters(spec) / 1e9 == pytest.approx({"175B": 174.8, "530B": 529.9}[name], abs=0.05)


def test_a_gpu_of_64_holds_the_published_share() -> None:
    """TP 8 and PP 8: 2.731 thousand million parameters, in bf16 the 5.46 GB that data parallelism reduces."""
    assert 2 * published_parameters(PRESETS["175B"]) / 64 / 1e9 == pytest.approx(5.46, abs=0.005)


def test_the_serial_block_has_the_published_parameters_but_for_the_head() -> None:
    """Here the head is not the embedding (V h more), and a norm stands before it (2 h more)."""
    spec = replace(PRESETS["175B"], block="serial")
    assert num_parameters(spec) - published_parameters(spec) == (64_000 + 2) * 12288


@pytest.mark.parametrize("positions", ["learned", "rotary"])
@pytest.mark.parametrize("block", ["serial", "parallel"])
def test_the_count_is_that_of_the_weights(block: Block, positions: Positions) -> None:
    """The closed form against the shapes of the tensors themselves."""
    spec = GptSpec(width=24, depth=3, num_heads=4, vocabulary=50, sequence=20, block=block, positions=positions)
    assert sum(math.prod(weight.shape) for weight in ChunkSpec(model=spec).weights()) == num_parameters(spec)


def test_flops_follow_the_closed_forms() -> None:
    """72 l h^2 (1 + s/6h + V/12hl) a token, and 96 l h^2 (1 + s/6h + V/16lh) with recomputation."""
    spec = PRESETS["530B"]
    h, depth, s, v = spec.width, spec.depth, spec.sequence, spec.vocabulary
    assert flops_per_token(spec) == pytest.approx(
        72 * depth * h**2 * (1 + s / (6 * h) + v / (12 * h * depth)), rel=1e-12
    )
    recomputed = 96 * depth * h**2 * (1 + s / (6 * h) + v / (16 * depth * h))
    assert flops_per_token_recomputed(spec) == pytest.approx(recomputed, rel=1e-12)


def test_a_window_replaces_the_sequence_in_the_operations() -> None:
    """12 l h operations a token for every place of the span: 1,024 places fewer are 12 * 96 * 12288 * 1024 less."""
    full, half = PRESETS["175B"], replace(PRESETS["175B"], window=1024)
    assert flops_per_token(full) - flops_per_token(half) == 12 * 96 * 12288 * 1024
