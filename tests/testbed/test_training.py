"""A training on a testbed carries the bytes that its requests plan, over the links that the kernel chooses."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from tests.real.namespaces import require_namespaces

pytest.importorskip("torch")

RECIPE = """
name: on-a-testbed
model: {preset: tiny, vocabulary: 258, width: 64, depth: 1, sequence: 16}
degrees: {layout: {dp: 2}, num_batches: 1, batch_size: 1}
schedule: {peak: 3.0e-3, num_warmup_steps: 2, num_steps: 10}
data: {source: synthetic}
num_steps: 10
"""
WITHIN = 0.1  # for a run of 4 MB; start and end are less of a longer one


@pytest.mark.real
def test_its_bytes_are_those_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two ranks on two hosts; three are refused."""
    require_namespaces()
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(RECIPE)
    own = ("--name", "training")
    up = ["validate", "testbed", "up", "--hosts", "2", "--no-ssh", "--rate", "50 Mbps", *own, "--out", str(tmp_path)]
    assert run(up) == 0
    try:
        train = ["validate", "testbed", "train", str(recipe), *own]
        assert run([*train, "--set", "degrees.layout.dp=3"]) == 2
        assert "3 ranks\n  allowed: 2, a host each\n" in capsys.readouterr().err
        assert run([*train, "--json"]) == 0
    finally:
        assert run(["validate", "testbed", "down", *own]) == 0
    out = capsys.readouterr().out
    trained = json.loads(out[: out.index("testbed training: ")])
    assert len(trained["step_s"]) == 10
    assert 0 < trained["network_s"] < min(trained["step_s"])
    assert len(trained["links"]) == 4
    for link in trained["links"]:
        assert link["sent_bytes"] == pytest.approx(link["planned_bytes"], rel=WITHIN), link
