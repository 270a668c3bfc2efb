"""Counters in the kernel's files: `/sys/class/infiniband` and `/sys/class/net`, live or as `grep . *` prints them.

Source: Linux, Documentation/ABI/stable/sysfs-class-infiniband and testing/sysfs-class-net-statistics.
"""

from collections.abc import Iterator
from pathlib import Path

from fabrictune.foundation.foreign_files import read_head

COUNTER_FOLDERS = ("counters", "hw_counters", "counters_ext", "statistics")
NO_COUNTERS = ("lifespan",)  # the driver's caching time, in milliseconds
MAX_FILES = 100_000
MAX_BYTES = 100  # of one counter

_PATTERNS = (
    *(f"{device}ports/*/{folder}" for device in ("*/", "") for folder in COUNTER_FOLDERS[:3]),
    "*/statistics",
    "statistics",
)


def place_of(path: str) -> tuple[str, str, str]:
    """Return device, folder and name of a path such as `.../mlx5_0/ports/1/hw_counters/out_of_buffer`.

    The device is "" where the path does not begin above it.
    """
    *above, name = [part for part in path.split("/") if part and part != "."]
    kind = next((row for row, part in enumerate(above) if part in ("infiniband", "net")), -1)
    inner = above[kind + 1 :]
    if kind < 0 and "ports" not in inner[1:]:
        return "", "/".join(inner), name
    device, *rest = inner or [""]
    if rest[:1] == ["ports"] and len(rest) > 1:
        return f"{device}/{rest[1]}", "/".join(rest[2:]), name
    return device, "/".join(rest), name


def is_sysfs(path: Path) -> bool:
    """Return whether a folder is that of RDMA devices or network interfaces, or one device's."""
    return path.is_dir() and any(any(path.glob(pattern)) for pattern in _PATTERNS)


def sysfs_lines(folder: Path) -> Iterator[str]:
    """Yield `path: value` for each counter of a host's devices, or of one device, as its kernel has it now."""
    num_files = 0
    for pattern in _PATTERNS:
        for inner in sorted(folder.glob(pattern)):
            for file in sorted(inner.iterdir()) if inner.is_dir() else ():
                num_files += 1
                if num_files > MAX_FILES:
                    return
                text = read_head(file, MAX_BYTES).decode("ascii", errors="replace").strip()
                if text:
                    yield f"{_path_below(folder, file)}: {text}"


def _path_below(folder: Path, file: Path) -> str:
    """Return a file's path from `infiniband` or `net` on, wherever the folder lies."""
    inner = file.relative_to(folder).parts
    if inner[0] in ("ports", "statistics"):
        inner = (folder.resolve().name, *inner)
    return "/".join(("", "net" if "statistics" in inner else "infiniband", *inner))
