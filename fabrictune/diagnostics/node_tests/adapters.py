"""RDMA adapters of a host: each writes to itself and to each other, which shows slow parts of PCIe.

TCP between two of a host's own addresses stays in the kernel, so only RDMA says anything about adapters.
"""

from contextlib import ExitStack
from itertools import product
from pathlib import Path

from fabrictune.diagnostics.pcie import read_places, slow_parts
from fabrictune.diagnostics.results import NodeResult
from fabrictune.foundation.errors import UnavailableError
from fabrictune.rdma_bench.measurement.pair import PortChoice, WorkerPair
from fabrictune.rdma_bench.measurement.transfers import TransferPlan, measure_transfers
from fabrictune.rdma_bench.measurement.workers import find_python, local_worker

_DEVICES = Path("/sys/class/infiniband")
_PLAN = TransferPlan(what="bandwidth", sizes_bytes=(2**20,), duration_s=0.2)
_DEVIATION = 0.15
_MAX_DEVICES = 16


def measure_adapters(folder: Path) -> NodeResult:
    """Measure every pair of devices, one after another."""
    devices = sorted(path.name for path in _DEVICES.iterdir())[:_MAX_DEVICES] if _DEVICES.is_dir() else []
    if not devices:
        return NodeResult(test="adapters", skipped="no RDMA device on this node")
    try:
        python = find_python()
    except UnavailableError as error:
        return NodeResult(test="adapters", skipped=error.mistakes[0].found)
    with ExitStack() as stack:
        near, far = (stack.enter_context(local_worker(python, name)) for name in ("sender", "receiver"))
        bandwidth_bps = {
            (sender, receiver): measure_transfers(
                WorkerPair(
                    sender=near,
                    receiver=far,
                    sender_place=PortChoice(device=sender),
                    receiver_place=PortChoice(device=receiver),
                ),
                _PLAN,
            )
            .transfers[0]
            .bandwidth_bps
            for sender, receiver in product(devices, devices)
        }
    slow = slow_parts(bandwidth_bps, read_places(devices), deviation=_DEVIATION)
    return NodeResult(
        test="adapters",
        figures={"adapter_bps": min(bandwidth_bps.values())},
        faults=tuple(f"{part} is slower than the other adapters and their ways" for part in slow),
    )
