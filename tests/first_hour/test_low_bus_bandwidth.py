"""Why is the bus bandwidth low? One log of NCCL, with its results among the messages."""

from pathlib import Path

import pytest

from tests.first_hour.session import Session

LOG = Path("nccl", "sendrecv_roce_4gpu.log")
OWN_LOG = Path(__file__).parents[1] / "golden" / "nccl" / "one-nic-2.26.log"


def test_a_log_and_its_results_name_the_cause(session: Session) -> None:
    """Four GPUs a host on one NIC, which is what 50 Gbps explain and 100 Gbps do not: two commands."""
    session.write("nccl.log", OWN_LOG.read_text())
    screen = session.command("fabrictune coll explain nccl.log --out drafted.yaml")
    assert "4 GPUs on 1 NIC: mlx5_5 (NCCL_IB_HCA=mlx5_5)" in screen
    assert "PXN          2 of 4 through another GPU's NIC" in screen
    assert "25 too slow; 50 nic 95%; turns at 95.64; 100 not the network 52%" in screen
    assert "[coll.rate-decides]" in screen
    assert "nic_rate: 400 Gbps: the log has no rate" in screen
    screen = session.command('fabrictune coll explain nccl.log --nic-rate "50 Gbps" --out drafted.yaml')
    assert "[coll.rate-decides]" not in screen
    assert "good" in session.command("fabrictune scenario check drafted.yaml")


@pytest.mark.real
def test_a_public_log_and_its_results_name_the_cause(session: Session, real_data: Path) -> None:
    """The same of a log of 8 H100 over RoCE."""
    screen = session.command(f"fabrictune coll explain {real_data / LOG}")
    assert "4 GPUs on 1 NIC: mlx5_5 (NCCL_IB_HCA=mlx5_5)" in screen
    assert "GPUDirect    4 of 4 logged connections between hosts" in screen
    assert "25 too slow; 50 nic 96%; turns at 95.7; 100 not the network 52%" in screen
