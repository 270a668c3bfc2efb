"""Host memory for staged checkpoints: how much there is, and a refusal that says so where it lacks.

What is free is the least of what the kernel has available and what each control group above this process still allows.

Source: Linux, Documentation/filesystems/proc.rst, "MemAvailable"; Documentation/admin-guide/cgroup-v2.rst,
"memory.max", "memory.current" and "memory.stat".
"""

from collections.abc import Iterator
from pathlib import Path

from fabrictune.foundation.errors import Mistake, UnavailableError

KEPT_FRACTION = 0.05  # of what is free, left for others
_CGROUPS = Path("/sys/fs/cgroup")


def check_host_memory(needed_bytes: int, *, num_local_ranks: int, num_buffers: int) -> None:
    """Raise UnavailableError where this machine's ranks together need more than there is."""
    free_bytes = available_bytes()
    whole = needed_bytes * num_buffers * num_local_ranks
    if free_bytes is None or whole <= free_bytes * (1 - KEPT_FRACTION):
        return
    raise UnavailableError(
        Mistake(
            where="checkpoints: host memory",
            found=f"{_shown(free_bytes)} free",
            allowed=f"{_shown(whole)}: {num_buffers} copies of {_shown(needed_bytes)} for each of {num_local_ranks} "
            f"ranks on this machine, and {KEPT_FRACTION:.0%} to spare",
            next_step="run fewer ranks a machine, divide the optimizer (data_parallel.strategy: zero1), or save less",
        )
    )


def available_bytes() -> int | None:
    """Return how much memory can still be had, None where the system does not tell."""
    return min(_limits(), default=None)


def _limits() -> Iterator[int]:
    for line in _read(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024
    path = _read(Path("/proc/self/cgroup")).partition("::")[2].strip().lstrip("/")
    for group in (_CGROUPS / path, *(_CGROUPS / path).parents):
        allowed, used = _read(group / "memory.max").strip(), _read(group / "memory.current").strip()
        if allowed.isdigit() and used.isdigit():
            yield int(allowed) - int(used) + _file_cache_bytes(group)


def _file_cache_bytes(group: Path) -> int:
    """Return the file cache in a group's use that the kernel gives back first."""
    for line in _read(group / "memory.stat").splitlines():
        if line.startswith("inactive_file "):
            return int(line.split()[1])
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _shown(num_bytes: int) -> str:
    return f"{num_bytes / 2**20:,.0f} MiB"
