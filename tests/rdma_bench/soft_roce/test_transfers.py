"""Bandwidth and latency between two real devices: by our own loop, by perftest, over queue pairs and directions."""

from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.rdma_bench.measurement.pair import WorkerPair
from fabrictune.rdma_bench.measurement.transfers import BACKENDS, Backend, TransferPlan, What, measure_transfers
from fabrictune.rdma_bench.soft_roce.machine import VirtualMachine
from fabrictune.rdma_bench.soft_roce.workers import TOKEN
from tests.patience import patience

pytestmark = pytest.mark.real


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("what", ["bandwidth", "latency"])
def test_every_case_has_its_figure(pair: WorkerPair, what: What, backend: Backend) -> None:
    """Two numbers of queue pairs, two directions for bandwidth; what they are in emulation means nothing."""
    plan = TransferPlan(
        what=what,
        sizes_bytes=(4096,),
        queue_pairs=(1, 2) if what == "bandwidth" else (1,),
        directions=(1, 2) if (what, backend) == ("bandwidth", "pyverbs") else (1,),
        backend=backend,
        duration_s=patience(0.1),  # a write at least
        num_iterations=20,
    )
    measured = measure_transfers(pair, plan)
    assert (len(measured.transfers), measured.stopped) == (plan.num_cases, "")
    for transfer in measured.transfers:
        if what == "bandwidth":
            assert transfer.bandwidth_bps > 0
        else:
            assert 0 < transfer.median_ns <= transfer.p99_ns


def test_a_matrix_has_every_ordered_pair_and_becomes_a_heat_map(
    machine: VirtualMachine, places: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two workers make two pairs; `report build` draws them, from the record alone."""
    near, far = places
    command = ["rdma", "matrix", f"{near}/rxe_a", f"{far}/rxe_b", "--token-file", str(machine.share / TOKEN)]
    assert run([*command, "--size", "4 KiB", "--seconds", f"{patience(0.1):.1f}", "--out", str(tmp_path / "run")]) == 0
    table = RunRecord.read(tmp_path / "run").tables["rdma_transfers"]
    assert list(zip(table["sender"].tolist(), table["receiver"].tolist(), strict=True)) == [(near, far), (far, near)]
    assert run(["report", "build", str(tmp_path / "run")]) == 0
    assert "Host pairs" in (tmp_path / "run" / "report.html").read_text()
