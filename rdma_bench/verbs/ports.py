"""Ports of RDMA devices as the kernel shows them: state, GIDs, network interface.

Source: Linux, Documentation/ABI/stable/sysfs-class-infiniband.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake, UnavailableError, nearest_name
from fabrictune.rdma_bench.verbs.diagnosis import DEVICES

ROCE_V2 = "RoCE v2"
_NO_GID = IPv6Address(0).exploded


@dataclass(frozen=True, kw_only=True)
class Gid:
    """One row of a port's GID table."""

    index: int
    address: IPv6Address
    type: str


@dataclass(frozen=True, kw_only=True)
class DevicePort:
    """A port that can send."""

    device: str
    port: int
    gid: Gid


def find_device_port(
    device: str = "", port: int = 1, gid_index: int | None = None, *, root: Path = DEVICES
) -> DevicePort:
    """Return an active port with the GID to use: the first active device's if none is named, and its first of RoCE v2
    on IPv4 if no index is given.

    Raises InputError for a device, port or GID that does not exist, and UnavailableError where no port is active.
    """
    names = sorted(path.name for path in root.glob("*"))
    if not device:
        device = next((name for name in names if _state(root / name / "ports" / str(port)) == "ACTIVE"), "")
        if not device:
            found = f"no device with an active port among {', '.join(names) or 'none'}"
            raise UnavailableError(Mistake(where="device", found=found, next_step="rdma link; ip link set ... up"))
    if device not in names:
        nearest = nearest_name(device, names)
        raise InputError(
            Mistake(where="device", found=f"no device {device!r}", allowed=", ".join(names), nearest=nearest)
        )
    folder = root / device / "ports" / str(port)
    if not folder.is_dir():
        allowed = ", ".join(sorted(path.name for path in folder.parent.glob("*")))
        raise InputError(Mistake(where="port", found=f"{device} has no port {port}", allowed=allowed))
    state = _state(folder)
    if state != "ACTIVE":
        raise UnavailableError(
            Mistake(
                where=f"{device} port {port}", found=f"the port is {state}", next_step="rdma link; ip link set ... up"
            )
        )
    return DevicePort(device=device, port=port, gid=_choose_gid(folder, gid_index, f"{device} port {port}"))


def read_gids(folder: Path) -> Iterator[Gid]:
    """Yield the GIDs of a port that are in use, in the order of their index; a table may have a thousand rows."""
    for index in range(sum(1 for _ in (folder / "gids").iterdir())):
        text = (folder / "gids" / f"{index}").read_text().strip()
        if text != _NO_GID:
            kind = (folder / "gid_attrs" / "types" / f"{index}").read_text().strip()
            yield Gid(index=index, address=IPv6Address(text), type=kind)


def _state(folder: Path) -> str:
    """Return "ACTIVE", "DOWN", ...; the file has a number before it."""
    try:
        return (folder / "state").read_text().partition(":")[2].strip()
    except OSError:
        return "unknown"


def _choose_gid(folder: Path, index: int | None, where: str) -> Gid:
    is_wanted = _is_usable if index is None else lambda gid: gid.index == index
    usable = next(filter(is_wanted, read_gids(folder)), None)
    if usable:
        return usable
    gids = tuple(read_gids(folder))
    if index is None and any(gid.type == ROCE_V2 for gid in gids):
        return next(gid for gid in gids if gid.type == ROCE_V2)
    allowed = ", ".join(f"{gid.index} ({gid.type}, {gid.address.ipv4_mapped or gid.address})" for gid in gids)
    wanted = f"GID of {ROCE_V2}" if index is None else f"GID of index {index}"
    next_step = "give its interface an address" if index is None else ""
    raise InputError(
        Mistake(where=where, found=f"no {wanted}", allowed=allowed or "none is in use", next_step=next_step)
    )


def _is_usable(gid: Gid) -> bool:
    return gid.type == ROCE_V2 and gid.address.ipv4_mapped is not None
