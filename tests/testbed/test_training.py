"""A training on a testbed carries the bytes that its requests plan, over the links that the kernel chooses."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fabrictune.cli.main import run
from fabrictune.testbed.plan import plan_testbed
from fabrictune.testbed.shaping import change_rate
from fabrictune.testbed.testbed import temporary_testbed
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.lookup import find_port
from fabrictune.trainer_probe.recipes.files import load_recipe
from tests.real.namespaces import require_namespaces

if TYPE_CHECKING:
    from fabrictune.validate.testbed_training import StepEvent

pytest.importorskip("torch")

RECIPE = """
name: on-a-testbed
model: {preset: tiny, vocabulary: 258, width: 64, depth: 1, sequence: 16}
degrees: {layout: {dp: 2}, num_batches: 1, batch_size: 1}
schedule: {peak: 3.0e-3, num_warmup_steps: 2, num_steps: 10}
data: {source: synthetic}
num_steps: 10
"""
PLANTED_AFTER = 12  # two steps of warm-up, six of calibration, five compared
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
        ended = run([*train, "--out", str(tmp_path / "record"), "--json"])
    finally:
        assert run(["validate", "testbed", "down", *own]) == 0
    out = capsys.readouterr().out
    trained = json.loads(out[: out.index("testbed training: ")])
    assert run(["train", "stragglers", str(tmp_path / "record"), "--json", "--fail-on", "never"]) == 0
    assert json.loads(capsys.readouterr().out)["num_ranks"] == 2, "its ranks left their spans"
    assert run(["train", "stragglers", str(tmp_path / "record"), "--json", "--fail-on", "never"]) == 0
    assert json.loads(capsys.readouterr().out)["num_ranks"] == 2
    assert len(trained["step_s"]) == 10
    assert 0 < trained["network_s"] < min(trained["step_s"])
    assert [step["state"] for step in trained["steps"]][:8] == ["warm-up"] * 2 + ["calibration"] * 6
    assert all(step["predicted_s"] > trained["network_s"] for step in trained["steps"][8:])
    assert [check["rule"] for check in trained["checks"][:2]] == ["testbed.step-longer", "testbed.link-busy"]
    assert trained["checks"][0]["result"] == "not run", "two steps after the calibration are too few"
    assert ended == 0 or (ended == 1 and trained["findings"]), "a busy machine may make a link late"
    assert len(trained["links"]) == 4
    for link in trained["links"]:
        assert link["sent_bytes"] == pytest.approx(link["planned_bytes"], rel=WITHIN), link


@pytest.mark.real
def test_a_link_that_becomes_slow_raises_the_alarm_and_is_named(tmp_path: Path) -> None:
    """A twentieth of its rate from step 13 on, by when it has not been named; the alarm comes with step 18.

    A step's bytes take 0.1 s at the planned rate and 1.9 s more at a twentieth, far from a clean step's scatter.
    """
    require_namespaces()
    from fabrictune.validate.step_twin import StepTwin
    from fabrictune.validate.testbed_training import train_on
    from fabrictune.validate.twin_findings import check_twin

    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(RECIPE)
    spec = ClosSpec(num_hosts=2, hosts_per_tor_set=2, nics_per_host=1, tiers=2, uplinks_per_tor=1, downlink_split=1)
    fabric = plan_testbed(build_clos(spec), rate_bps=30_000_000)
    slow, twin = find_port(fabric, "host0:nic0", where=""), StepTwin(fabric)
    settings = {"num_steps": 20}
    with temporary_testbed(fabric, "twin", tmp_path, with_ssh=False) as testbed:

        def on_step(event: "StepEvent") -> None:
            twin.compare(event)
            if event.step == PLANTED_AFTER:
                change_rate(testbed.built, slow, int(fabric.port_rate_bps_P[slow]) // 20)

        train_on(testbed, load_recipe(recipe, settings), recipe, settings, on_step=on_step)
    clean, planted = twin.steps[: PLANTED_AFTER + 1], twin.steps[PLANTED_AFTER + 1 :]
    assert not any(link.port == slow for step in clean for link in step.links)
    assert any(step.is_alarm for step in planted)
    findings = check_twin(twin).findings
    label = fabric.link_label(slow)
    assert label in [finding.entity for finding in findings if finding.id == "testbed.link-busy"]
    assert any(label in finding.actual for finding in findings if finding.id == "testbed.step-longer")
