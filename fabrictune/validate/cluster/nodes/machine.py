"""What a node has that stages need: versions, torch, GPUs, RDMA devices, and interfaces with addresses and rates."""

import json
import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

COMMAND_S = 10.0
MAX_OUTPUT = 2**20
MBPS = 1_000_000
NET, RDMA = Path("/sys/class/net"), Path("/sys/class/infiniband")


def describe_node() -> dict[str, Any]:
    """Return the facts of this node as JSON values."""
    return {
        "fabrictune": version_of("fabrictune"),
        "python": platform.python_version(),
        "torch": version_of("torch"),
        "cores": len(os.sched_getaffinity(0)),
        "num_gpus": _num_gpus(),
        "rdma_devices": sorted(path.name for path in RDMA.iterdir()) if RDMA.is_dir() else [],
        "perftest": bool(shutil.which("ib_write_bw")),
        "interfaces": _interfaces(),
        "reached_at": os.environ.get("SSH_CONNECTION", "").split(" ")[2:3],
    }


def version_of(package: str) -> str:
    """Return the installed version of a package, "" where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _num_gpus() -> int:
    return len([line for line in _output("nvidia-smi", "-L").splitlines() if line.startswith("GPU ")])


def _interfaces() -> list[dict[str, Any]]:
    """Return the interfaces that are up and have an IPv4 address, but for the loopback's."""
    try:
        listed = json.loads(_output("ip", "-json", "address", "show", "up") or "[]")
    except ValueError:
        return []
    found = []
    for row in listed if isinstance(listed, list) else []:
        name = str(row.get("ifname", ""))
        own = [one.get("local") for one in row.get("addr_info", ()) if one.get("family") == "inet"]
        if own and "LOOPBACK" not in row.get("flags", ()):
            found.append({"name": name, "ipv4": own[0], "mtu": row.get("mtu", 1500), "speed_bps": _speed_bps(name)})
    return found


def _speed_bps(interface: str) -> int:
    """Return what the driver says; 0 where it says nothing."""
    try:
        speed = int((NET / interface / "speed").read_text())
    except (OSError, ValueError):
        return 0
    return max(0, speed) * MBPS


def _output(*words: str) -> str:
    """Return what a program prints, "" where it is missing or fails."""
    path = shutil.which(words[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is None:
        return ""
    try:
        ran = subprocess.run([path, *words[1:]], capture_output=True, timeout=COMMAND_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout[:MAX_OUTPUT].decode(errors="replace") if ran.returncode == 0 else ""
