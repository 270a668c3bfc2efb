"""Network namespaces of this machine: made, filled and removed with iproute2, and nothing outside them touched.

Source: ip-netns(8), ip-link(8), tc(8), setns(2).
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn, TypeVar

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.time_limits import scaled

_NETWORK = 0x40000000  # CLONE_NEWNET
_PLACE = "/run/netns"
Made = TypeVar("Made")
COMMAND_TIMEOUT_S = 30
FORBIDDEN = ("Operation not permitted", "Permission denied")
WITHOUT_RIGHTS = (
    "run it as root with CAP_SYS_ADMIN and CAP_NET_ADMIN: with sudo on the machine itself, or in a container that has "
    "them (docker run --privileged)"
)
WITHOUT_KERNEL = "use a kernel with namespaces, veth and bridge"
WITHOUT_SHAPER = "use a kernel with the queueing discipline that it names, or load it: modprobe sch_tbf"


def require_namespaces() -> None:
    """Raise UnavailableError where this process can make no network namespaces."""
    if shutil.which("ip") is None:
        refuse("iproute2 is not installed", "apt install iproute2")
    if os.geteuid() != 0:
        refuse("network namespaces need root", "run it with sudo, on a machine that may")


def inside(namespace: str, *words: str) -> list[str]:
    """Return the command that runs `words` in a namespace."""
    return ["ip", "netns", "exec", namespace, *words]


def made_inside(namespace: str, make: Callable[[], Made]) -> Made:
    """Return what `make` makes in a namespace, such as a socket, which stays there; raises OSError."""

    def make_there() -> Made:
        with Path(_PLACE, namespace).open("rb") as place:
            if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), _NETWORK):
                error = ctypes.get_errno()
                raise OSError(error, os.strerror(error), namespace)
        return make()

    with ThreadPoolExecutor(max_workers=1) as thread:  # a thread's network is its own, and ends with it
        return thread.submit(make_there).result()


def list_namespaces() -> set[str]:
    """Return the names of the namespaces that there are."""
    return {line.split()[0] for line in run_tool(["ip", "netns", "list"]).splitlines() if line}


def processes_in(namespace: str) -> list[int]:
    """Return the processes whose network is a namespace."""
    return [int(line) for line in run_tool(["ip", "netns", "pids", namespace]).split()]


def remove_namespace(namespace: str) -> None:
    """Delete a namespace, and with it everything in it but processes."""
    run_tool(["ip", "netns", "del", namespace])


def run_batch(namespace: str, lines: Sequence[str], *, tool: str = "ip") -> None:
    """Run several commands of `ip` or `tc` in a namespace, or with "" in this one; the first that fails ends it."""
    if lines:
        run_tool([tool, *(["-n", namespace] if namespace else []), "-batch", "-"], "\n".join(lines) + "\n")


def run_tool(command: Sequence[str], stdin: str = "") -> str:
    """Return what a command prints; raises UnavailableError where it fails."""
    ran = subprocess.run(  # noqa: S603  # iproute2 and its like, with words of this package
        command, input=stdin, capture_output=True, text=True, timeout=scaled(COMMAND_TIMEOUT_S), check=False
    )
    if ran.returncode:
        refuse(f"{' '.join(command)}: {ran.stderr.strip()}", _next_step(ran.stderr))
    return ran.stdout


def refuse(found: str, next_step: str) -> NoReturn:
    """Raise UnavailableError."""
    raise UnavailableError(Mistake(where="network namespaces", found=found, next_step=next_step))


def _next_step(said: str) -> str:
    if any(text in said for text in FORBIDDEN):
        return WITHOUT_RIGHTS
    return WITHOUT_SHAPER if "qdisc" in said else WITHOUT_KERNEL
