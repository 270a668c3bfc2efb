"""Shapes that make no model are refused, all mistakes at once."""

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.trainer_probe.model.presets import MODELS
from fabrictune.trainer_probe.model.spec import ModelSpec


def test_the_presets_have_the_published_shapes() -> None:
    """MegaScale, Table 1: heads, hidden size and layers; section 6.1: sequence 2,048 and vocabulary 64,000."""
    shapes = {
        name: (spec.num_heads, spec.width, spec.depth, spec.sequence, spec.vocabulary) for name, spec in MODELS.items()
    }
    assert shapes["175B"] == (128, 12288, 96, 2048, 64_000)
    assert shapes["530B"] == (160, 20480, 105, 2048, 64_000)


def test_all_mistakes_are_reported_at_once() -> None:
    """Ten features are no whole number for each of four heads, and 65 tokens are more than there are."""
    with pytest.raises(InputError) as caught:
        ModelSpec(width=10, num_heads=4, sequence=64, window=65, depth=0, block="paralel")  # type: ignore[arg-type]
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
        ModelSpec(width=12, num_heads=4, positions="rotary")
