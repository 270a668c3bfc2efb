"""Bytes that a node's network interfaces have received and sent: the job's own interface, and every RDMA port.

RDMA bypasses the kernel, so that an interface's counters do not show it; a port's own do, in words of four bytes.

Source: proc_pid_net(5); Linux Documentation/ABI/stable/sysfs-class-infiniband.

Left out: traffic inside a node.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_DEVICES = Path("/proc/self/net/dev")  # of this process's network namespace, which /sys may not be
_RDMA = Path("/sys/class/infiniband")
_PORT_COUNTERS, _WORD_BYTES = ("port_rcv_data", "port_xmit_data"), 4


def read_nic_bytes(interface: str, devices: Path = _DEVICES, rdma: Path = _RDMA) -> Mapping[str, tuple[int, int]]:
    """Return bytes received and sent by name, those of ports as `mlx5_0/1`; what cannot be read is left out."""
    found: dict[str, tuple[int, int]] = {}
    with suppress(OSError, ValueError, IndexError):
        for line in devices.read_text().splitlines():
            name, _, columns = line.partition(":")
            if name.strip() == interface:
                words = columns.split()
                found[interface] = int(words[0]), int(words[8])
    for counters in rdma.glob("*/ports/*/counters"):
        with suppress(OSError, ValueError):
            received, sent = (_WORD_BYTES * int((counters / name).read_text()) for name in _PORT_COUNTERS)
            found[f"{counters.parts[-4]}/{counters.parts[-2]}"] = received, sent
    return found
