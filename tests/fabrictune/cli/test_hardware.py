"""`fabrictune hardware` and the option `--hardware`."""

import json

import pytest

from fabrictune.cli.main import run
from fabrictune.hardware.files import profile_names


def test_the_list_has_every_bundled_profile(capsys: pytest.CaptureFixture[str]) -> None:
    """As names that `--hardware` takes."""
    assert run(["hardware", "list", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == profile_names()


def test_a_profile_is_shown_with_the_source_of_each_value(capsys: pytest.CaptureFixture[str]) -> None:
    """In base units, and as people read it."""
    assert run(["hardware", "show", "a100", "--json"]) == 0
    rows = {row["key"]: row for row in json.loads(capsys.readouterr().out)["values"]}
    assert rows["gpu.peak"] == {
        "key": "gpu.peak",
        "value": 312e12,
        "unit": "flops/s",
        "shown": "312 TFLOP/s",
        "uncertainty_fraction": 0.0,
        "source": "data sheet: NVIDIA A100 Tensor Core GPU, 2021; multiprocessors of the Ampere whitepaper",
    }


def test_an_unknown_profile_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    """Where, found, nearest, allowed, next."""
    assert run(["train", "plan", "tiny", "--hardware", "h2000"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [
        "fabrictune train plan: --hardware: 'h2000': no hardware profile of this name, and no file",
        "  did you mean 'h200'?",
    ]
    assert lines[-1] == "  next: fabrictune hardware list"
