"""A whole operated job whose nodes are jobs of a real Slurm."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from fabrictune.trainer_probe.operation.backends.choice import NUM_JOB_LETTERS
from fabrictune.trainer_probe.operation.backends.slurm import SlurmBackend
from fabrictune.trainer_probe.operation.process_table import GONE, read_process
from tests.trainer_probe.operation.backends.slurm_cluster import missing_parts
from tests.trainer_probe.operation.operated import operated

NO_SLURM = missing_parts()


def hosts_of_jobs() -> dict[str, str]:
    """Return the host of each node of the job that waits or runs in Slurm."""
    command = ["squeue", "--noheader", "--format=%j|%N"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return {line.split("|")[0].rpartition(".")[2]: line.split("|")[1] for line in lines}


def set_partition(state: str) -> None:
    """Let Slurm take jobs or refuse them."""
    subprocess.run(["scontrol", "update", "PartitionName=all", f"State={state}"], check=True)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(bool(NO_SLURM), reason=NO_SLURM or "-")
def test_a_job_on_slurm_outlives_a_refusal_and_a_lost_node_and_leaves_nothing(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm refuses at first; a node is lost, the spare takes its rank, and the queue is empty at the end."""
    monkeypatch.setenv("SLURM_CONF", str(cluster))
    arguments = ("--nodes", "2", "--slots", "1", "--spares", "1", "--backend", "slurm", "--sbatch=--partition=all")
    saves = ("--checkpoint", str(tmp_path / "saves"), "--save-every", "10")
    set_partition("INACTIVE")
    with operated(tmp_path, *arguments, *saves, num_steps=120) as job:
        try:
            job.until(lambda line: "node not started" in line and "sbatch" in line)
            set_partition("UP")
            joined = [job.until(lambda line: "node joined" in line) for _ in range(3)]
            assert len(joined) == 3
            assert sorted(hosts_of_jobs().values()) == ["n1", "n2", "n3"]
            job.until_step(25)
            lost = next(event for event in job.events() if event.kind == "generation started").values["nodes"][1]
            executor: object = job.processes(lost)["executor"]
            assert isinstance(executor, int)
            os.kill(executor, signal.SIGKILL)
            job.until(lambda line: "generation started" in line)
            pids = job.all_pids()
            assert job.finish() == 0, job.output
            events = job.events()
        finally:
            SlurmBackend((job.run / "job").read_text().strip()[:NUM_JOB_LETTERS]).close()
    assert {event.values["attempt"] for event in events if event.kind == "node not started"} >= {1}
    faults = [event.values for event in events if event.kind == "fault detected" and event.values["is_fatal"]]
    assert [(fault["cause"], fault["nodes"]) for fault in faults] == [("executor lost", [lost])]
    second = [event.values for event in events if event.kind == "generation started"][1]
    assert lost not in second["nodes"]
    assert sorted({event.values["step"] for event in events if event.kind == "step"}) == list(range(120))
    assert hosts_of_jobs() == {}
    assert all(read_process(pid).state == GONE for pid in pids)
