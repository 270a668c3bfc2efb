"""A job with real processes: it ends, goes on after a killed rank, and leaves nothing behind."""

import os
import signal
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.trainer_probe.operation.node_folders import memory_of
from fabrictune.trainer_probe.operation.process_table import GONE, read_process
from tests.trainer_probe.operation.operated import operated

pytestmark = pytest.mark.slow


def test_a_job_goes_on_after_a_killed_rank_with_the_losses_of_an_undisturbed_one(tmp_path: Path) -> None:
    """Steps are deterministic, and a checkpoint holds all that they depend on: losses are equal to the last bit."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    saves = ("--nodes", "2", "--slots", "1", "--save-every", "4", "--checkpoint")
    with operated(tmp_path / "a", *saves, str(tmp_path / "a" / "saves"), num_steps=60) as job:
        assert job.finish() == 0, job.output
        undisturbed = job.losses()
        assert job.events()[-1].values["outcome"] == "finished"
    with operated(tmp_path / "b", *saves, str(tmp_path / "b" / "saves"), num_steps=60) as job:
        job.until_step(10)
        os.kill(job.pid_of_rank(1), signal.SIGKILL)
        job.until(lambda line: "generation started" in line)
        pids = job.all_pids()
        assert job.finish() == 0, job.output
        assert job.losses() == undisturbed
        fault = next(event for event in job.events() if event.kind == "fault detected")
        assert (fault.values["cause"], fault.values["ranks"]) == ("rank killed", [1])
        resumed = [event for event in job.events() if event.kind == "training"][-1]
        assert resumed.values["step"] >= 8
        name = (job.run / "job").read_text().strip()
        assert all(read_process(pid).state == GONE for pid in pids)
        assert not any(memory_of(name, node).exists() for node in ("node0", "node1"))


def test_a_job_that_was_interrupted_goes_on_at_the_step_after_its_last(tmp_path: Path) -> None:
    """Ctrl-C saves what there is, ends all processes, and the same command goes on."""
    arguments = ("--nodes", "1", "--slots", "2", "--checkpoint", str(tmp_path / "saves"), "--save-every", "50")
    with operated(tmp_path, *arguments, num_steps=150) as job:
        job.until_step(20)
        pids = job.all_pids()
        assert job.process is not None
        job.process.send_signal(signal.SIGINT)
        assert job.finish() == 130, job.output
        assert all(read_process(pid).state == GONE for pid in pids)
        job.start()
        assert job.finish() == 0, job.output
        assert [event.values["step"] for event in job.events() if event.kind == "step"] == list(range(150))


def test_a_lost_node_goes_on_from_the_copies_on_another(tmp_path: Path) -> None:
    """Without any storage: the spare takes the files of rank 1, of which only the first node has copies."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    arguments = ("--nodes", "2", "--slots", "1", "--memory-every", "10")
    with operated(tmp_path / "a", *arguments, num_steps=150, layout="{tp: 2}") as job:
        assert job.finish() == 0, job.output
        undisturbed = job.losses()
    with operated(tmp_path / "b", *arguments, "--spares", "1", num_steps=150, layout="{tp: 2}") as job:
        job.until_step(45)
        first = next(event.values for event in job.events() if event.kind == "generation started")
        kept, lost = first["nodes"]
        executor: object = job.processes(lost)["executor"]
        assert isinstance(executor, int)
        os.kill(executor, signal.SIGKILL)
        assert job.finish() == 0, job.output
        events, losses = job.events(), job.losses()
    assert losses == undisturbed
    assert first["peers"][lost] == {"node": kept, "shortcoming": "ToR sets not known"}
    second = [event.values for event in events if event.kind == "generation started"][1]
    assert second["nodes"][0] == kept
    resumed = next(event.values for event in events if event.kind == "training" and event.values["generation"] == 2)
    assert resumed["source"] == "memory"
    assert resumed["step"] >= 30, "copies are one save behind at most"


def test_a_change_goes_on_from_the_step_that_runs_and_a_bad_one_is_taken_back(tmp_path: Path) -> None:
    """Another strategy from a checkpoint on; then a learning rate without a finite loss, and what was before again."""
    arguments = ("--nodes", "2", "--slots", "1", "--checkpoint", str(tmp_path / "saves"), "--save-every", "1000")
    with operated(tmp_path, *arguments, num_steps=600) as job:
        job.until_step(20)
        assert run(["train", "change", str(job.run), "--set", "data_parallel.strategy=zero1"]) == 0
        job.until(lambda line: "generation 2" in line and "training" in line)
        assert run(["train", "change", str(job.run), "--set", "schedule.peak=1.0e+38"]) == 0
        assert job.finish() == 0, job.output
        events = job.events()
        assert [event.values["is_rollback"] for event in events if event.kind == "code changed"] == [False, False, True]
        assert [event.values["action"] for event in events if event.kind == "decision"] == ["roll back"]
        tasks = [event.values["task"]["settings"] for event in events if event.kind == "generation started"]
        assert [sorted(task) for task in tasks[:2]] == [[], ["data_parallel.strategy"]]
        assert tasks[3] == tasks[1]
        assert sorted(job.losses()) == list(range(600))
