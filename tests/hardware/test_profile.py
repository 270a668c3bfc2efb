"""Rules of a profile's values where they are not from a file, and their uncertainty."""

from dataclasses import replace
from typing import Any

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.hardware.cluster import FixedSpec, StragglerSpec
from fabrictune.hardware.files import bundled_profile

A100 = bundled_profile("a100")


@pytest.mark.parametrize(
    ("spec", "field", "wrong", "told"),
    [
        (A100.nvlink, "latency_ps", -1_000_000, "latency_ps: -1 us\n  allowed: 0 or more"),
        (A100.nvlink, "collective_bytes_per_s", 0.0, "collective_bytes_per_s: 0 B/s\n  allowed: above 0"),
        (A100.network, "achieved_fraction", 0.0, "achieved_fraction: 0\n  allowed: above 0"),
        (A100.network, "message_ps", -1, "message_ps: -1 ps\n  allowed: 0 or more"),
        (A100.host, "issue_ps", -1, "issue_ps: -1 ps\n  allowed: 0 or more"),
        (A100.gpu, "launch_ps", -1, "launch_ps: -1 ps\n  allowed: 0 or more"),
        (A100.gpu.gemm, "load_cost", -1.0, "load_cost: -1\n  allowed: 0 or more"),
        (StragglerSpec(), "slowdown_fraction", -0.1, "slowdown_fraction: -0.1\n  allowed: 0 or more"),
        (FixedSpec(), "step_ps", -1, "step_ps: -1 ps\n  allowed: 0 or more"),
        (A100.gpu.attention.flash2, "forward_fraction", 0.0, "forward_fraction: 0\n  allowed: above 0"),
    ],
)
def test_a_fit_that_went_wrong_makes_no_profile(spec: Any, field: str, wrong: float, told: str) -> None:
    """A negative latency has no file, since its text is refused before."""
    with pytest.raises(InputError) as refused:
        replace(spec, **{field: wrong})
    assert str(refused.value) == told


@pytest.mark.parametrize(
    ("kind", "uncertainty"),
    [("data sheet", 0.0), ("measured", 0.05), ("fitted", 0.05), ("derived", 0.1), ("assumed", 0.25)],
)
def test_the_kind_of_a_source_implies_an_uncertainty(kind: str, uncertainty: float) -> None:
    """Unless the profile sets it, for a key or its section; the key counts before the section."""
    sources = {**A100.sources, "network.latency": f"{kind}: here"}
    profile = replace(A100, sources=sources, uncertainties={})
    assert profile.uncertainty_of("network.latency") == uncertainty
    set_ones = replace(profile, uncertainties={"network": 0.3, "network.message": 0.4})
    assert (set_ones.uncertainty_of("network.latency"), set_ones.uncertainty_of("network.message")) == (0.3, 0.4)


def test_without_attention_there_is_no_gpu() -> None:
    """A step would have none."""
    with pytest.raises(InputError, match="no kernel of attention"):
        replace(A100.gpu.attention, unfused=None, flash1=None, flash2=None)
