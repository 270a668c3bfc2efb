"""Launcher of a process, if any, and the variables it has set: torchrun's, or those of Slurm's srun.

Source: PyTorch, "torchrun (Elastic Launch)", environment variables; Slurm, srun, "output environment variables".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabrictune.foundation.errors import InputError, Mistake

TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
SLURM = ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NODELIST", "SLURM_JOB_ID")
_SLURM_PORTS = range(20_000, 40_000)  # chosen by the job's number, so that two jobs on one node rarely meet


@dataclass(frozen=True, kw_only=True)
class Launched:
    """Facts from a launcher for one of the processes it started."""

    launcher: str
    rank: int
    num_ranks: int
    local_rank: int  # among those of this machine
    host: str  # where rank 0 can be reached
    port: int
    attempt: str  # a name for this start of the job
    has_store: bool  # whether the launcher itself serves a store there


def launched_by(environment: Mapping[str, str]) -> Launched | None:
    """Return what a launcher says in the environment, None where this process was started by itself.

    Raises InputError where only part of it is said.
    """
    if environment.get(TORCHRUN[0]):
        _check(environment, TORCHRUN, numbers=("RANK", "WORLD_SIZE", "MASTER_PORT"), next_step="torchrun")
        return Launched(
            launcher="torchrun",
            rank=int(environment["RANK"]),
            num_ranks=int(environment["WORLD_SIZE"]),
            local_rank=int(environment.get("LOCAL_RANK", "0")),
            host=environment["MASTER_ADDR"],
            port=int(environment["MASTER_PORT"]),
            attempt=f"fabrictune-{environment.get('TORCHELASTIC_RESTART_COUNT', '0')}",
            has_store=environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
        )
    if environment.get(SLURM[0]):
        _check(environment, SLURM, numbers=("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"), next_step="srun")
        job = environment["SLURM_JOB_ID"]
        port = _SLURM_PORTS[int(job) % len(_SLURM_PORTS)] if job.isdecimal() else _SLURM_PORTS[0]
        return Launched(
            launcher="Slurm",
            rank=int(environment["SLURM_PROCID"]),
            num_ranks=int(environment["SLURM_STEP_NUM_TASKS"]),
            local_rank=int(environment["SLURM_LOCALID"]),
            host=environment.get("MASTER_ADDR") or first_host(environment["SLURM_STEP_NODELIST"]),
            port=int(environment.get("MASTER_PORT") or port),
            attempt=f"fabrictune-{job}-{environment.get('SLURM_STEP_ID', '0')}",
            has_store=False,
        )
    return None


def first_host(nodes: str) -> str:
    """Return the first host of Slurm's list of nodes: `gpu07` of `gpu[07-12,15],login1`."""
    match = re.match(r"([^,\[]*)(?:\[(\d+)[^\]]*\]([^,\[]*))?", nodes)
    assert match, "the pattern matches nothing, too"
    return "".join(part or "" for part in match.groups())


def _check(environment: Mapping[str, str], names: tuple[str, ...], *, numbers: tuple[str, ...], next_step: str) -> None:
    missing = [name for name in names if not environment.get(name)]
    if missing or not all(environment[name].isdecimal() for name in numbers):
        what = f"{names[0]} is set, and {', '.join(missing)} not" if missing else f"{_listed(numbers)} no number"
        raise InputError(Mistake(where="environment", found=what, next_step=f"start the ranks with {next_step}"))


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
