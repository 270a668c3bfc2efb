"""What launchers tell a process."""

import pytest

from fabrictune.collectives.startup.launchers import Launched, first_host, launched_by
from fabrictune.foundation.errors import InputError

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "node1", "MASTER_PORT": "29500", "LOCAL_RANK": "1"}
SLURM = {
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_NODELIST": "gpu[07-08,11]",
    "SLURM_JOB_ID": "123456",
    "SLURM_STEP_ID": "2",
}


def test_a_process_by_itself_has_no_launcher() -> None:
    """Neither with nothing set, nor in a batch script, which is no step of srun's."""
    assert launched_by({"PATH": "/usr/bin"}) is None
    assert launched_by({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "1"}) is None


def test_torchrun_tells_rank_and_store() -> None:
    """Its agent serves a store, and counts restarts, each of which is an attempt of its own."""
    elastic = {"TORCHELASTIC_RESTART_COUNT": "2", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    assert launched_by({**TORCHRUN, **elastic}) == Launched(
        launcher="torchrun",
        rank=3,
        num_ranks=8,
        local_rank=1,
        host="node1",
        port=29500,
        attempt="fabrictune-2",
        has_store=True,
    )


def test_slurm_tells_rank_and_nodes() -> None:
    """Rank 0 stands on the first node; the port follows from the job: 20,000 + 123,456 mod 20,000."""
    assert launched_by(SLURM) == Launched(
        launcher="Slurm",
        rank=3,
        num_ranks=8,
        local_rank=1,
        host="gpu07",
        port=23_456,
        attempt="fabrictune-123456-2",
        has_store=False,
    )
    moved = launched_by({**SLURM, "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "1234"})
    assert moved is not None
    assert (moved.host, moved.port) == ("10.0.0.1", 1234)


@pytest.mark.parametrize(
    ("nodes", "host"),
    [
        ("gpu07", "gpu07"),
        ("gpu[07-12,15],login1", "gpu07"),
        ("rack1-n[3,5]-ib,rack2-n1", "rack1-n3-ib"),
        ("a,b[1-2]", "a"),
    ],
)
def test_the_first_of_slurms_nodes(nodes: str, host: str) -> None:
    """Numbers keep their zeros, and what follows the bracket follows the number."""
    assert first_host(nodes) == host


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {"RANK": "0"},
            "environment: RANK is set, and WORLD_SIZE, MASTER_ADDR, MASTER_PORT not\n"
            "  next: start the ranks with torchrun",
        ),
        (
            {**TORCHRUN, "WORLD_SIZE": "eight"},
            "environment: RANK, WORLD_SIZE or MASTER_PORT no number\n  next: start the ranks with torchrun",
        ),
        (
            {"SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "1"},
            "environment: SLURM_STEP_NUM_TASKS is set, and SLURM_STEP_NODELIST not\n  next: start the ranks with srun",
        ),
    ],
)
def test_half_of_an_environment_is_refused(environment: dict[str, str], message: str) -> None:
    """A rank that guessed would wait for ever."""
    with pytest.raises(InputError) as raised:
        launched_by(environment)
    assert str(raised.value) == message
