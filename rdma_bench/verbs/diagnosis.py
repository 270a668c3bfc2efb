"""Diagnosis of RDMA devices that cannot be used here: five causes with five next steps.

pyverbs comes from the distribution (`python3-pyverbs`), for its own Python and its own libibverbs: the package of the
same name on the Python index builds another library, which then does not fit. So a virtual environment often has none,
and the system's Python does.

    python3 -m fabrictune.rdma_bench.verbs.diagnosis       prints the diagnosis of that Python, as JSON
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from fabrictune.foundation.errors import Mistake, UnavailableError

Problem = Literal["module missing", "ABI mismatch", "no RDMA subsystem", "no device", "no permission"]

SUBSYSTEM = Path("/sys/class/infiniband_verbs")
DEVICES = Path("/sys/class/infiniband")
NODES = Path("/dev/infiniband")
_SOFTWARE_DEVICE = "modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0"


@dataclass(frozen=True, kw_only=True)
class DeviceDiagnosis:
    """Result of the diagnosis of this machine."""

    problem: Problem | None  # None: devices can be used
    found: str
    next_step: str = ""
    devices: tuple[str, ...] = ()


def diagnose(
    module: str = "pyverbs.device", *, subsystem: Path = SUBSYSTEM, devices: Path = DEVICES, nodes: Path = NODES
) -> DeviceDiagnosis:
    """Say whether RDMA devices can be used, and if not, why; looks and changes nothing."""
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        return DeviceDiagnosis(
            problem="module missing",
            found=f"no module {error.name}",
            next_step="apt-get install python3-pyverbs (dnf: python3-pyverbs), and run its system's Python",
        )
    except (ImportError, OSError) as error:  # built for another Python, or for another libibverbs
        return DeviceDiagnosis(
            problem="ABI mismatch",
            found=(str(error).splitlines() or [type(error).__name__])[0],
            next_step="remove the pyverbs that pip installed; use the distribution's, under the system's Python",
        )
    if not subsystem.exists():
        return DeviceDiagnosis(
            problem="no RDMA subsystem", found=f"no {subsystem}", next_step="load the adapter's driver and ib_uverbs"
        )
    names = tuple(sorted(device.name for device in devices.glob("*")))
    if not names:
        return DeviceDiagnosis(
            problem="no device", found=f"none in {devices}", next_step=f"in software: {_SOFTWARE_DEVICE}"
        )
    if not _may_open(sorted(nodes.glob("uverbs*"))):
        return DeviceDiagnosis(
            problem="no permission",
            found=f"{', '.join(names)}, and no {nodes}/uverbs* that may be opened",
            next_step="join the group that owns it, and raise the limit of locked memory (ulimit -l)",
            devices=names,
        )
    return DeviceDiagnosis(problem=None, found=", ".join(names), devices=names)


def require_devices(diagnosis: DeviceDiagnosis, *, where: str) -> None:
    """Raise UnavailableError where devices cannot be used."""
    if diagnosis.problem:
        raise UnavailableError(
            Mistake(where=where, found=f"{diagnosis.problem}: {diagnosis.found}", next_step=diagnosis.next_step)
        )


def _may_open(nodes: Sequence[Path]) -> bool:
    return any(os.access(node, os.R_OK | os.W_OK) for node in nodes)


if __name__ == "__main__":
    print(json.dumps(asdict(diagnose())))  # noqa: T201 - the caller reads it
