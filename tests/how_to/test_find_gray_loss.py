"""The page on gray loss says what is true: its command prints every line that it shows."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "find-gray-loss.md").read_text()
COUNTS, COMMAND, SCREEN = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.DOTALL | re.M)
SCENARIO = """
name: gray-loss
question: Which link loses a tenth of its packets?
fabric: {builder: clos, num_hosts: 12, hosts_per_tor_set: 4, nics_per_host: 1, tiers: 2, nic_rate: 100 Gbps,
         uplink_rate: 100 Gbps, downlink_split: 1}
traffic: {workload: permutation, message: 4 MB}
law: none
engine: {path_choice: {mode: entropy}, transport: {reliability: selective-repeat, reorder_window: 100 us}}
capture: {at: receiver, snap: 64 B, max: 100000}
faults: [{fault: bit_errors, link: "tor1:up2", at: 0 s, loss: 20 %}]
"""


def test_its_command_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line word for word, in order; an ellipsis stands for others."""
    monkeypatch.chdir(tmp_path)
    Path("counts.csv").write_text(COUNTS)
    program, *words = shlex.split(COMMAND)
    assert program == "fabrictune"
    assert run(words) == 1
    printed = iter(capsys.readouterr().out.splitlines())
    for line in SCREEN.splitlines():
        assert line == "..." or line in printed, line


def test_a_simulated_link_is_found_from_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both directions of the link lose packets in the simulation, and both are named, nothing else."""
    monkeypatch.chdir(tmp_path)
    Path("lossy.yaml").write_text(SCENARIO)
    assert run(["sim", "run", "lossy.yaml", "--out", "run", "--quiet", "--fail-on", "never"]) == 0
    capsys.readouterr()
    assert run(["rdma", "gray-loss", "run", "--quiet"]) == 1
    named = re.findall(r"^error: (\S+) -> (\S+): ", capsys.readouterr().out, re.M)
    assert {frozenset(link) for link in named} == {frozenset(("tor1:up2", "agg0-2:down1"))}
