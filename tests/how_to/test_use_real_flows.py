"""The page on real flows says what is true: its scenario runs as it stands there."""

import re
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.scenario.flow_files import FLOW_FORMATS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-real-flows.md"
LOG = """\
host0:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.1.0.1<0>
gpu-17:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.1.0.2<0>
host0:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/1
gpu-17:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [receive] via NET/IB/0
"""


def test_its_scenario_is_analyzed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log of the two hosts that it names: one flow, from host0:nic1 to host2:nic0."""
    (scenario,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "monday.yaml").write_text(scenario)
    (tmp_path / "monday.log").write_text(LOG)
    assert run(["ecmp", "analyze", str(tmp_path / "monday.yaml"), "--out", str(tmp_path / "record")]) == 0
    assert "throughput of 1 flows: mean 100 % of their rate" in capsys.readouterr().out


def test_it_lists_every_format() -> None:
    """A format that is added is written down."""
    assert sorted(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)) == sorted(FLOW_FORMATS)
