"""The part of a host's PCIe that is slow, inferred from the bandwidth between its adapters.

Every adapter writes to every other, and to itself. Whatever is slow shows in all pairs that cross it and in no other:
an adapter or its slot in its row and column, a PCIe switch or a socket in the pairs of all adapters behind it. The
smallest part that explains all slow pairs is named, the adapter before its switch, the switch before the socket.

Source: MegaScale (NSDI 2024), section 4.3: a full mesh of loopback tests shows PCIe faults by inference.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

_INFINIBAND = Path("/sys/class/infiniband")
_MAX_ABOVE = 16


@dataclass(frozen=True, kw_only=True)
class AdapterPlace:
    """Where an adapter is: PCIe addresses from the root port down to its own, and its socket."""

    name: str
    path: tuple[str, ...]
    socket: int = -1

    @property
    def parts(self) -> tuple[str, ...]:
        """What its data cross, the nearest first."""
        above = [f"PCIe {address}" for address in reversed(self.path[:-1])]
        return (f"adapter {self.name}", *above, *([f"socket {self.socket}"] if self.socket >= 0 else []))


def read_places(devices: Sequence[str], root: Path = _INFINIBAND) -> list[AdapterPlace]:
    """Return the places of a host's RDMA devices, as its kernel has them."""
    return [_read_place(device, root) for device in devices]


def slow_parts(
    bandwidth_bps: Mapping[tuple[str, str], float], places: Sequence[AdapterPlace], *, deviation: float
) -> tuple[str, ...]:
    """Return the parts that explain the pairs slower than the median by `deviation` of it, the most telling first.

    A pair that no part explains is returned as a pair.
    """
    usual = median(bandwidth_bps.values())
    slow = {pair for pair, rate_bps in bandwidth_bps.items() if rate_bps < (1 - deviation) * usual}
    crossing: dict[str, set[tuple[str, str]]] = {}
    depth: dict[str, int] = {}
    for place in places:
        for level, part in enumerate(place.parts):
            crossing.setdefault(part, set()).update(pair for pair in bandwidth_bps if place.name in pair)
            depth[part] = max(depth.get(part, 0), level)
    parts: list[str] = []
    explained = {part: pairs for part, pairs in crossing.items() if pairs <= slow and len(pairs) < len(bandwidth_bps)}
    while slow and explained:
        best = max(explained, key=lambda part: (len(explained[part] & slow), -depth[part]))
        if not explained[best] & slow:
            break
        parts.append(best)
        slow -= explained.pop(best)
    return (*parts, *(f"{sender} to {receiver}" for sender, receiver in sorted(slow)))


def _read_place(device: str, root: Path) -> AdapterPlace:
    folder = root / device / "device"
    above = [part for part in folder.resolve().parts if part.count(":") == 2 and "." in part]
    try:
        socket = int((folder / "numa_node").read_text())
    except (OSError, ValueError):
        socket = -1
    return AdapterPlace(name=device, path=tuple(above[-_MAX_ABOVE:]) or (device,), socket=socket)
