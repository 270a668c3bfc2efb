"""Units of the numbers that commands print as JSON; the fixture in conftest.py checks what every other test prints."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from tests.fabrictune.cli.conftest import unitless_numbers


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        ({"completion_time.max": 163}, ["completion_time.max"]),
        ({"completion_time.max": {"value": 163, "unit": "ps"}}, []),
        ({"completion_time_ps": 163, "num_transfers": 8, "name": "x", "is_open": True, "lost": None}, []),
        ({"rows": [{"mean_bps_low": 1.0}, {"speed": 2}]}, ["speed"]),
        ({"dropped_packets": {"link down": 3}, "drops": {"link down": 3}}, ["link down"]),
        (
            {"effects": [{"metric": "slowest_connection_bps", "value": 1.0}, {"metric": "speed", "value": 1.0}]},
            ["value"],
        ),
    ],
)
def test_a_number_says_its_unit_by_its_key_or_its_object(value: object, keys: list[str]) -> None:
    """The walk finds each number that does not."""
    assert list(unitless_numbers(value)) == keys


@pytest.mark.parametrize(
    "arguments",
    [
        ["scenario", "check", "{incast}"],
        ["scenario", "keys", "traffic.incast"],
        ["sim", "run", "{incast}", "--out", "run", "--fail-on", "never"],
        ["sim", "run", "{link-flap}", "--out", "run"],
        ["sim", "run", "{job-beside-burst}", "--out", "run", "--fail-on", "never"],
        ["sim", "sweep", "{incast}", "--vary", "engine.ecn.kmin=20 KB;800 KB", "--seeds", "1", "--out", "sweep"],
        ["ecmp", "analyze", "{demo-interleaved}", "--out", "analysis", "--fail-on", "never"],
        ["ecmp", "explain", "{demo-interleaved}"],
        ["ecmp", "whatif", "{ecmp-whatif}", "--seeds", "2", "--out", "whatif"],
        ["ecmp", "factorial", "{megascale-three-means}", "--seeds", "2", "--out", "factorial"],
        ["ecmp", "plan", "{demo-interleaved}", "--seeds", "2", "--out", "plan"],
        ["topo", "build", "fat_tree", "radix=4", "--out", "k4.json"],
        ["law", "list"],
        ["law", "show", "dcqcn"],
        ["hardware", "show", "a100"],
        ["rdma", "timers", "predict"],
        ["rdma", "timers", "table"],
        ["train", "keys"],
        ["train", "plan", "tiny", "--out", "train"],
        ["conformance", "topology."],
        ["doctor"],
    ],
    ids=lambda arguments: " ".join(arguments[:3]),
)
def test_every_number_that_a_command_prints_has_its_unit(
    arguments: list[str],
    scenarios: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On bundled scenarios; one JSON value comes out, and no number in it is bare."""
    monkeypatch.chdir(tmp_path)
    files = {path.stem: str(path) for path in scenarios.glob("*.yaml")}
    words = [files[word[1:-1]] if word.startswith("{") else word for word in arguments]
    assert run([*words, "--json"]) == 0
    assert list(unitless_numbers(json.loads(capsys.readouterr().out))) == []
