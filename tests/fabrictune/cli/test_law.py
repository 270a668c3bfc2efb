"""`fabrictune law`: parameters exchanged with a NIC."""

from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.scenario.files import load_scenario

FABRIC_AND_TRAFFIC = (
    "name: nic\nquestion: What would this NIC do?\n"
    "fabric: {builder: fat_tree, radix: 4, link_rate: 400 Gbps}\n"
    "traffic: {workload: incast, senders: 8, message: 9 MB}\n"
)


@pytest.fixture
def nic(tmp_path: Path) -> Path:
    """Return a file with four numbers of a NIC and one that no law has."""
    path = tmp_path / "nic.txt"
    path.write_text("rp_ai_rate: 9\nrp_byte_reset: 100\nrp_min_dec_fac: 60\nnp_min_time_between_cnps: 2\nrp_new: 1\n")
    return path


def test_what_is_imported_is_part_of_a_scenario(nic: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Put behind fabric and traffic, it gives the law the NIC's numbers; what is not used is said."""
    assert run(["law", "import", str(nic)]) == 0
    printed = capsys.readouterr()
    assert printed.err == f"warning: {nic}: not used: rp_new\n"
    path = tmp_path / "scenario.yaml"
    path.write_text(FABRIC_AND_TRAFFIC + printed.out)
    scenario = load_scenario(path)
    parameters = scenario.law.spec.parameters
    names = ("rpg_ai_rate_bps", "rpg_byte_reset_bytes", "rpg_min_dec_fac_fraction", "rpg_hai_rate_bps")
    assert [getattr(parameters, name) for name in names] == [9e6, 6400, 0.6, 50e6]
    assert scenario.packet_config().cnp.interval_ns == 2_000


def test_what_is_exported_sets_a_nic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All seventeen numbers, the two of the scenario among them."""
    path = tmp_path / "scenario.yaml"
    law = "law: {name: dcqcn_firmware, parameters: {rpg_ai_rate: 20 Mbps}}\nengine: {cnp: {interval: 2 us}}\n"
    path.write_text(FABRIC_AND_TRAFFIC + law)
    assert run(["law", "export", str(path), "--for", "cc_params"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 17
    assert "echo 20 > /sys/kernel/debug/mlx5/<device>/cc_params/rp_ai_rate" in lines
    assert "echo 2 > /sys/kernel/debug/mlx5/<device>/cc_params/np_min_time_between_cnps" in lines


def test_another_law_is_no_nics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its parameters have no place in a NIC."""
    path = tmp_path / "scenario.yaml"
    path.write_text(FABRIC_AND_TRAFFIC + "law: dcqcn\n")
    assert run(["law", "export", str(path)]) == 2
    assert capsys.readouterr().err == (f"{path}: law: dcqcn\n  allowed: dcqcn_firmware: the law a NIC has built in\n")
