"""What this machine can do: each thing the project can use, whether it is here, and what to do where it is not.

A check looks and changes nothing. Only what the core needs (Python, its packages, the compiled engine, memory) decides
whether the machine is fit; the rest opens more of the project.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from fabrictune.foundation.errors import UnavailableError
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.time_limits import scaled
from fabrictune.foundation.units import format_bytes
from fabrictune.rdma_bench.measurement.workers import find_python
from fabrictune.topology.probing.sockets import open_raw_sockets

State = Literal["ok", "missing", "unusable"]

MIN_PYTHON = (3, 11)
MIN_MEMORY_BYTES = 2 * 10**9
PROBE_TIMEOUT_S = 10


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a look at the machine showed."""

    state: State
    detail: str
    next_step: str = ""


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One thing the project can use."""

    name: str
    opens: str  # what needs it
    look: Callable[[], Found]
    is_needed: bool = False  # by the core


@dataclass(frozen=True, kw_only=True)
class RequirementStatus:
    """A check and what it found."""

    name: str
    opens: str
    is_needed: bool
    state: State
    detail: str
    next_step: str


def examine(checks: Sequence[Requirement], progress: Progress | None = None) -> list[RequirementStatus]:
    """Run checks in their order; `progress` receives the completed fraction."""
    diagnoses = []
    for number, check in enumerate(checks):
        found = check.look()
        diagnoses.append(
            RequirementStatus(name=check.name, opens=check.opens, is_needed=check.is_needed, **vars(found))
        )
        if progress:
            progress((number + 1) / len(checks))
    return diagnoses


def is_fit(diagnoses: Sequence[RequirementStatus]) -> bool:
    """Return whether everything that the core needs is there and works."""
    return all(diagnosis.state == "ok" for diagnosis in diagnoses if diagnosis.is_needed)


def look_at_python() -> Found:
    """Is Python new enough?"""
    version = platform.python_version()
    if sys.version_info >= MIN_PYTHON:
        return Found(state="ok", detail=version)
    return Found(state="unusable", detail=version, next_step="install Python 3.11 or later")


def look_for_module(module: str, next_step: str) -> Found:
    """Can a Python module be imported?"""
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (module, module.partition(".")[0]):
            return Found(state="unusable", detail=f"it needs {error.name}", next_step=next_step)
        return Found(state="missing", detail="not installed", next_step=next_step)
    except (ImportError, OSError) as error:  # built for another Python, or for another library
        return Found(state="unusable", detail=_first_line(error), next_step=f"built for another system: {next_step}")
    return Found(state="ok", detail=str(getattr(found, "__version__", "here")))


def look_for_program(names: Sequence[str], next_step: str) -> Found:
    """Is one of these programs on the path?"""
    for name in names:
        if place := shutil.which(name):
            return Found(state="ok", detail=place)
    return Found(state="missing", detail=f"no {' or '.join(names)} on the path", next_step=next_step)


def look_at_verbs() -> Found:
    """Can RDMA devices be used, by this Python or by the system's? There are five reasons why not."""
    try:
        python = find_python()
    except UnavailableError as error:
        (mistake,) = error.mistakes
        is_missing = mistake.found.startswith(("module missing", "no device", "no RDMA subsystem"))
        state: State = "missing" if is_missing else "unusable"
        return Found(state=state, detail=mistake.found, next_step=mistake.next_step)
    return Found(state="ok", detail=f"with {python}")


def look_at_namespaces() -> Found:
    """Can this user make network namespaces, with the `ip` command to fill them?"""
    for program in ("unshare", "ip"):
        if not shutil.which(program):
            return Found(
                state="missing", detail=f"no {program} on the path", next_step="install util-linux and iproute2"
            )
    as_user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    try:
        tried = subprocess.run(  # noqa: S603 - fixed arguments
            ["unshare", *as_user, "--net", "true"],  # noqa: S607 - wherever the distribution has it
            capture_output=True,
            text=True,
            timeout=scaled(PROBE_TIMEOUT_S),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Found(state="unusable", detail=_first_line(error), next_step="run as root")
    if tried.returncode:
        return Found(
            state="unusable",
            detail=tried.stderr.strip() or "refused",
            next_step="run as root, or allow user namespaces",
        )
    return Found(state="ok", detail="as root" if not as_user else "as this user")


def look_at_raw_sockets() -> Found:
    """May this process send packets of its own making?"""
    try:
        with open_raw_sockets():
            return Found(state="ok", detail="allowed")
    except UnavailableError as error:
        (mistake,) = error.mistakes
        return Found(state="unusable", detail=mistake.found, next_step=mistake.next_step)


def look_at_memory() -> Found:
    """Is there enough memory, within the container's limit if there is one?"""
    num_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file() and (text := limit.read_text().strip()).isdecimal():
        num_bytes = min(num_bytes, int(text))
    detail = format_bytes(num_bytes)
    if num_bytes >= MIN_MEMORY_BYTES:
        return Found(state="ok", detail=detail)
    return Found(state="unusable", detail=detail, next_step=f"use a machine with {format_bytes(MIN_MEMORY_BYTES)}")


def look_at_cores() -> Found:
    """How many processor cores may this process use?"""
    return Found(state="ok", detail=str(len(os.sched_getaffinity(0))))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


CHECKS: tuple[Requirement, ...] = (
    Requirement(name="Python", opens="everything", look=look_at_python, is_needed=True),
    Requirement(
        name="compiled engine",
        opens="sim run, demo",
        look=lambda: look_for_module("fabrictune.netsim._engine", "make demo, which finds a compiler and builds it"),
        is_needed=True,
    ),
    Requirement(
        name="numba",
        opens="congestion-control laws",
        look=lambda: look_for_module("numba", "pip install numba"),
        is_needed=True,
    ),
    Requirement(name="memory", opens="everything", look=look_at_memory, is_needed=True),
    Requirement(name="cores", opens="everything", look=look_at_cores, is_needed=True),
    Requirement(
        name="torch",
        opens="validate local, the reference trainer",
        look=lambda: look_for_module("torch", "pip install 'fabrictune[train]'"),
    ),
    Requirement(
        name="scapy",
        opens="packet captures",
        look=lambda: look_for_module("scapy", "pip install 'fabrictune[probe]'"),
    ),
    Requirement(
        name="paramiko",
        opens="fleet by SSH",
        look=lambda: look_for_module("paramiko", "pip install 'fabrictune[fleet]'"),
    ),
    Requirement(
        name="optuna",
        opens="sim sweep with search: tpe",
        look=lambda: look_for_module("optuna", "pip install 'fabrictune[sweep]'"),
    ),
    Requirement(
        name="ray",
        opens="sim sweep --on ray",
        look=lambda: look_for_module("ray", "pip install 'fabrictune[sweep]'"),
    ),
    Requirement(name="RDMA devices", opens="rdma timers measure, bw, lat, matrix", look=look_at_verbs),
    Requirement(
        name="QEMU",
        opens="the same with --soft-roce, in a virtual machine",
        look=lambda: look_for_program(["qemu-system-x86_64"], "install qemu-system-x86, cpio, zstd and kmod"),
    ),
    Requirement(name="raw sockets", opens="topo probe", look=look_at_raw_sockets),
    Requirement(name="network namespaces", opens="tests on a miniature cluster", look=look_at_namespaces),
    Requirement(
        name="redis-server",
        opens="start-up measured with a Redis store",
        look=lambda: look_for_program(["redis-server"], "install redis-server from the distribution"),
    ),
    Requirement(
        name="C++ compiler",
        opens="building the engine again",
        look=lambda: look_for_program(["c++", "g++", "clang++"], "install g++, or let make demo fetch one"),
    ),
)
