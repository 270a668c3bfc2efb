"""Profiles with fitted values: what is written, and what a reader of them has."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from fabrictune.foundation.errors import InputError
from fabrictune.hardware.files import bundled_profile, load_profile
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.validate.fit.calibration import calibrate
from fabrictune.validate.fit.fit import model_all
from fabrictune.validate.fit.fitted_profile import FittedValue, fitted_values, refuse_beyond_nic, write_fitted
from fabrictune.validate.fit.sources import MeasuredFile
from fabrictune.validate.fit.terms import PARAMETERS
from fabrictune.validate.fit.verdicts import judge
from tests.fabrictune.validate.fit.made_up import KNOWN, LARGE, PATH, SIZES, collective, drawn

FILE = MeasuredFile(path=PATH, digest="0123456789abcdef" * 4, times=())


def values_of(sizes: tuple[int, ...]) -> list[FittedValue]:
    """Return what an all-reduce inside a host determines."""
    calibration = calibrate(model_all(drawn(((collective(8, 1), sizes),), seed=1), "ring"), KNOWN)
    files = {name: [FILE] for name in PARAMETERS}
    return fitted_values(bundled_profile("h100"), judge(calibration), files, spread=0.01)


def test_a_profile_on_a_bundled_base_has_the_fitted_values_alone(tmp_path: Path) -> None:
    """30 us and 200 GB/s went in; each has its file, points and sizes as its source."""
    path = tmp_path / "mine.yaml"
    write_fitted(bundled_profile("h100"), values_of(SIZES), path)
    tree = yaml.safe_load(path.read_text())
    assert tree["base"] == "h100"
    assert tree["nvlink"].keys() == {"latency", "collective"}
    profile = load_profile(path)
    assert profile.nvlink.latency_ps == pytest.approx(30e6, rel=1e-6)
    assert profile.nvlink.collective_bytes_per_s == pytest.approx(200e9, rel=1e-6)
    assert profile.source_of("nvlink.latency") == (
        "fitted: made-up.txt (0123456789ab), 31 points, 8 B to 8.59 GB; well determined"
    )
    assert profile.uncertainty_of("nvlink.latency") == pytest.approx(1.645 * 0.01, rel=0.01)
    assert profile.network == bundled_profile("h100").network


def test_a_value_that_is_not_determined_stays_the_base_s(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    write_fitted(bundled_profile("h100"), values_of(LARGE), path)
    assert load_profile(path).nvlink.latency_ps == bundled_profile("h100").nvlink.latency_ps
    assert "latency" not in yaml.safe_load(path.read_text())["nvlink"]


def test_a_profile_on_a_file_is_complete(tmp_path: Path) -> None:
    """Its base may go: every value is in the file."""
    base: HardwareProfile = replace(bundled_profile("h100"), name="lab")
    path = tmp_path / "mine.yaml"
    write_fitted(base, values_of(SIZES), path)
    profile = load_profile(path)
    assert profile.gpu == base.gpu
    assert profile.nvlink.latency_ps == pytest.approx(30e6, rel=1e-6)


def test_a_name_is_that_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "-my cluster.yaml"
    assert write_fitted(bundled_profile("h100"), values_of(SIZES), path).name == "my-cluster"


def test_a_rate_beyond_the_nic_is_refused() -> None:
    """61 GB/s of a NIC of 50 GB/s."""
    with pytest.raises(InputError) as error:
        refuse_beyond_nic(bundled_profile("h100"), 1 / 61, "all.txt")
    assert str(error.value) == (
        "all.txt: network.rate 488 Gbps on each GPU's NIC, which has 400 Gbps by the profile h100\n"
        "  allowed: at most the NIC's rate\n"
        "  next: name a profile with this cluster's NICs (--hardware), or the algorithm that was at work (--algorithm"
        " hierarchical)"
    )
