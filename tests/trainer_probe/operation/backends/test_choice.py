"""The backend of a job by its name: what each one needs and refuses, and jobs whose nodes come from elsewhere."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fabrictune.foundation.children import module_command
from fabrictune.foundation.errors import InputError, UnavailableError
from fabrictune.foundation.time_limits import scaled
from fabrictune.trainer_probe.operation.backends.choice import NodeSource
from fabrictune.trainer_probe.operation.backends.local import LocalBackend
from fabrictune.trainer_probe.operation.run_folder import RunFolder
from tests.trainer_probe.operation.backends.api_server import api_server
from tests.trainer_probe.operation.operated import operated

POD = {"spec": {"containers": [{"name": "executor", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}


def test_a_backend_has_the_options_that_it_needs() -> None:
    """All mistakes at once: options of another backend would be without effect."""
    with pytest.raises(InputError, match=r"(?s)--sbatch: with backend local.*--context: with backend local"):
        NodeSource(sbatch_options=("--gres=gpu:8",), context="c")
    with pytest.raises(InputError, match="--pod: nothing"):
        NodeSource(backend="kubernetes")


def test_a_node_is_told_what_it_sees(tmp_path: Path) -> None:
    """By default this machine's Python, key and folder; where nodes see others, those."""
    folder = RunFolder(path=tmp_path)
    command = " ".join(NodeSource().command(folder, "node0", {"--driver": "h:1"}))
    assert command.startswith(f"{sys.executable} -P -m fabrictune train executor --driver h:1 --key {tmp_path}/key")
    assert command.endswith(f"--node node0 --folder {tmp_path}/nodes/node0")
    source = NodeSource(backend="kubernetes", pod=POD, python="python3", key="/secret/key", folder="/scratch")
    assert re.fullmatch(
        r"python3 -P -m fabrictune train executor --key /secret/key --job \w+ --node node0 --folder /scratch/node0",
        " ".join(source.command(folder, "node0", {})),
    )
    assert isinstance(NodeSource().open(folder), LocalBackend)


def test_slurm_is_asked_before_anything_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its commands the job says so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="squeue: is not installed"):
        NodeSource(backend="slurm").open(RunFolder(path=tmp_path))


@pytest.mark.slow
def test_a_job_runs_on_pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pods of a stand-in for an API server, whose kubelet runs their commands here; none is left."""
    pytest.importorskip("kubernetes")
    (tmp_path / "pod.json").write_text(json.dumps(POD))
    arguments = ("--nodes", "2", "--slots", "1", "--backend", "kubernetes", "--pod", str(tmp_path / "pod.json"))
    with api_server() as (cluster, address):
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        with operated(tmp_path, *arguments, num_steps=6) as job:
            assert job.finish() == 0, job.output
        assert sorted(job.losses()) == list(range(6))
        assert all(process.poll() is not None for process in cluster.processes.values())
        assert len(cluster.processes) == 2


@pytest.mark.slow
def test_a_job_runs_on_agents_of_torchrun(tmp_path: Path) -> None:
    """Two agents, each with an executor as its only worker, which have joined before the driver is told of them."""
    arguments = ("--nodes", "2", "--slots", "1", "--backend", "torchelastic")
    with operated(tmp_path, *arguments, num_steps=6) as job:
        job.until(lambda line: "driver started" in line)
        address = json.loads((job.run / "driver.json").read_text())
        executor = module_command("fabrictune", "train", "executor")
        options = {
            "--driver": f"127.0.0.1:{address['port']}",
            "--key": str(job.run / "key"),
            "--job": (job.run / "job").read_text(),
            "--slots": "1",
            "--folder": str(job.run / "nodes"),
        }
        agent = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
        agent += ["--rdzv-backend", "c10d", "--rdzv-endpoint", str(tmp_path / "rendezvous")]
        agent += ["--rdzv-conf", "store_type=file", "--local-addr", "127.0.0.1", "--no-python"]
        command = [*agent, *executor, *(word for pair in options.items() for word in pair)]
        agents = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(2)]
        try:
            assert job.finish() == 0, job.output
            outputs = [process.communicate(timeout=scaled(60.0))[0].decode() for process in agents]
        finally:
            for process in agents:
                process.kill()
                process.wait()
    assert sorted(job.losses()) == list(range(6))
    assert [process.returncode for process in agents] == [0, 0], outputs
