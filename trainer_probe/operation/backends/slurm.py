"""Nodes as jobs of Slurm, each with one node of its own, which survive the driver that submitted them.

Every node of the job is a batch job named after both, so that a later driver finds it again. Slurm's commands get
argument lists, never a shell: the batch script is one constant line that becomes the executor's command, and the
command is its arguments. Values of the environment travel in the environment; only their names are on a command line.

A node has ended when its job is neither waiting nor running nor completing: by then slurmd has ended every process of
it that it follows (`warn_of_tracking`). A job whose host Slurm has given up stays in completing for ever; its node
counts as cut off, since slurmd ends what is left before it takes another job.

Source: Slurm 22.05, sbatch(1), squeue(1), scancel(1), scontrol(1); also `slurmctld`'s MinJobAge, after which an exit
code is forgotten. Read as `--format` and `--oneliner`, which have changed less than `--json`.

Left out: federations of clusters.
"""

import os
import re
import subprocess
import time
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from tempfile import NamedTemporaryFile

from fabrictune.foundation.errors import FabrictuneWarning, InputError, Mistake, UnavailableError
from fabrictune.trainer_probe.operation.backends.exit_codes import UNKNOWN_CODE

ENTRY = '#!/bin/sh\nexec "$@"\n'
ENDED_STATES = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
)
LOST_HOST_STATES = ("DOWN", "NOT_RESPONDING", "FAIL", "POWERED_DOWN")
_EXPORTED = ("PATH", "HOME", "USER", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")
_FIELDS = "%i|%j|%T|%N"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_OPTION = re.compile(r"--[a-z][a-z-]*(=[^\x00-\x1f]*)?")


@dataclass(frozen=True, kw_only=True)
class SlurmSettings:
    """How the jobs of nodes are submitted."""

    options: tuple[str, ...] = ()  # of sbatch, such as "--partition=gpu", "--gres=gpu:8", "--exclude=n7"
    output: str = "%x.%j.log"  # of an executor, as sbatch names it
    command_timeout_s: float = 60.0  # of a command of Slurm
    end_timeout_s: float = 300.0  # until a cancelled job is over, or its host given up
    poll_s: float = 0.5


@dataclass(frozen=True, kw_only=True)
class SlurmJob:
    """A job as squeue lists it."""

    number: str
    node: str  # of the fabrictune job
    state: str
    host: str

    @property
    def has_ended(self) -> bool:
        """Whether Slurm has ended all its processes."""
        return self.state in ENDED_STATES


class SlurmBackend:
    """The nodes of one job as jobs of Slurm."""

    def __init__(self, job: str, settings: SlurmSettings | None = None) -> None:
        settings = SlurmSettings() if settings is None else settings
        mistakes = [*_mistaken_name("job", job), *map(_mistaken_option, filter(_is_no_option, settings.options))]
        if mistakes:
            raise InputError(*mistakes)
        self._job, self._settings = job, settings
        self._numbers: dict[str, str] = {}  # of this driver's jobs and of those it has found, by node
        self._numbers.update({found.node: found.number for found in self._list() if not found.has_ended})

    def start(self, node: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Submit a node's job; raises UnavailableError where Slurm refuses it."""
        if mistakes := _mistaken_name("node", node):
            raise InputError(*mistakes)
        exported = sorted({*(name for name in _EXPORTED if name in os.environ), *environment})
        with NamedTemporaryFile("w", prefix="fabrictune-", suffix=".sh") as entry:
            entry.write(ENTRY)
            entry.flush()
            submitted = self._call(
                "sbatch",
                "--parsable",
                "--nodes=1",
                "--ntasks=1",
                "--no-requeue",
                f"--job-name={self._prefix}{node}",
                f"--output={self._settings.output}",
                f"--export={','.join(exported)}",
                *self._settings.options,
                entry.name,
                *command,
                environment=environment,
            )
        self._numbers[node] = submitted.strip().partition(";")[0]

    def end(self, node: str) -> None:
        """Cancel a node's job; returns when all its processes are gone or Slurm has given up its host.

        Raises UnavailableError where neither is so after the limit.
        """
        number = self._numbers.get(node)
        if number is None:
            return
        deadline_s = time.monotonic() + self._settings.end_timeout_s
        while not self._is_over(node):
            self._call("scancel", "--signal=KILL", "--full", number, is_allowed_to_fail=True)
            self._call("scancel", number, is_allowed_to_fail=True)  # one that has no process yet
            if time.monotonic() > deadline_s:
                raise UnavailableError(
                    Mistake(
                        where=f"node {node}, Slurm's job {number}",
                        found=f"has not ended {self._settings.end_timeout_s:g} s after it was cancelled",
                        next_step=f"look at `scontrol show job {number}` and its host; set the host down if it is lost",
                    )
                )
            time.sleep(self._settings.poll_s)

    def ended(self) -> Mapping[str, int]:
        """Return the exit codes of nodes whose jobs are over, negative for a signal."""
        jobs = {found.number: found for found in self._list()}
        return {
            node: self._exit_code(number)
            for node, number in dict(self._numbers).items()  # a start may add one meanwhile
            if number not in jobs or jobs[number].has_ended
        }

    def living(self) -> Collection[str]:
        """Return the nodes whose jobs wait or run, of this driver and of earlier ones."""
        return sorted({found.node for found in self._list() if not found.has_ended})

    def warn_of_tracking(self) -> None:
        """Warn where Slurm follows processes in a way that loses those whose parent has ended."""
        tracking = parse_tracking(self._call("scontrol", "show", "config"))
        if tracking != "proctrack/cgroup":
            warnings.warn(
                f"Slurm follows processes by {tracking or 'an unknown way'}: those of a node that outlive their parent "
                "may survive its end; proctrack/cgroup ends them",
                FabrictuneWarning,
                stacklevel=2,
            )

    def close(self) -> None:
        """End all nodes."""
        for node in list(self._numbers):
            self.end(node)

    @property
    def _prefix(self) -> str:
        return f"fabrictune.{self._job}."

    def _is_over(self, node: str) -> bool:
        job = next((found for found in self._list() if found.number == self._numbers[node]), None)
        if job is None or job.has_ended:
            return True
        return job.state == "COMPLETING" and job.host != "" and self._is_lost(job.host)

    def _is_lost(self, host: str) -> bool:
        states = self._call("sinfo", "--noheader", "--Node", f"--nodes={host}", "--Format=StateLong:60")
        return any(state.rstrip("*") in LOST_HOST_STATES or state.endswith("*") for state in states.upper().split())

    def _list(self) -> list[SlurmJob]:
        """Return this job's nodes, those that have ended included, as long as Slurm remembers them."""
        lines = self._call("squeue", "--noheader", "--states=all", "--user", str(os.getuid()), f"--format={_FIELDS}")
        return list(parse_queue(lines.splitlines(), self._prefix))

    def _exit_code(self, number: str) -> int:
        described = self._call("scontrol", "--oneliner", "show", "job", number, is_allowed_to_fail=True)
        return parse_exit_code(described)

    def _call(
        self, *command: str, environment: Mapping[str, str] | None = None, is_allowed_to_fail: bool = False
    ) -> str:
        try:
            process = subprocess.run(  # noqa: S603  # Slurm's own commands, without a shell
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                env={**os.environ, **(environment or {})},
                timeout=self._settings.command_timeout_s,
                check=False,
            )
        except FileNotFoundError:
            raise UnavailableError(
                Mistake(where=command[0], found="is not installed", next_step="run on a node with Slurm's commands")
            ) from None
        except subprocess.TimeoutExpired:
            found = f"has not answered for {self._settings.command_timeout_s:g} s"
            raise UnavailableError(Mistake(where=command[0], found=found, next_step="look at slurmctld")) from None
        if process.returncode and not is_allowed_to_fail:
            said = process.stderr.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
            raise UnavailableError(Mistake(where=command[0], found=said[0][:300]))
        return process.stdout


def parse_queue(lines: Iterable[str], prefix: str) -> Iterable[SlurmJob]:
    """Yield the jobs whose names begin with a prefix, of lines "number|name|state|host"."""
    for line in lines:
        fields = line.strip().split("|")
        if len(fields) == 4 and fields[1].startswith(prefix):
            yield SlurmJob(number=fields[0], node=fields[1].removeprefix(prefix), state=fields[2], host=fields[3])


def parse_tracking(configuration: str) -> str:
    """Return how Slurm follows the processes of a job, of `scontrol show config`; "" where it does not say."""
    found = re.search(r"^ProctrackType\s*=\s*(\S+)", configuration, re.MULTILINE)
    return found[1] if found else ""


def parse_exit_code(described: str) -> int:
    """Return the exit code of `scontrol show job`, the signal's number below zero; UNKNOWN_CODE without one."""
    found = re.search(r"(?:^|\s)ExitCode=(\d+):(\d+)(?:\s|$)", described)
    if found is None:
        return UNKNOWN_CODE
    code, number = int(found[1]), int(found[2])
    return -number if number else code


def _mistaken_name(where: str, name: str) -> list[Mistake]:
    if _NAME.fullmatch(name):
        return []
    return [Mistake(where=where, found=repr(name), allowed="letters, digits, - and _, at most 63")]


def _is_no_option(option: str) -> bool:
    return _OPTION.fullmatch(option) is None


def _mistaken_option(option: str) -> Mistake:
    return Mistake(where="sbatch option", found=repr(option), allowed="--name or --name=value")
