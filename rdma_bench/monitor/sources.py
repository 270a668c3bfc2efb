"""Counters and settings of this host's NICs as open files of the kernel, read again and again.

Left out: counters that only `ethtool -S` has (pauses by priority of most drivers); sysfs has none of them.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.rdma_bench.counters.catalog import CounterClass, CounterMeaning, meaning_of
from fabrictune.rdma_bench.counters.readings import whole_number
from fabrictune.rdma_bench.counters.snapshots import Counter, Snapshot

SYSFS = Path("/sys/class")
MAX_COUNTERS = 4096
_MAX_BYTES = 64
_SURE_DIGITS = 19  # of a number below 2^63
_INTERFACE_COUNTERS = ("statistics/*", "carrier_down_count")
_ADAPTER_COUNTERS = ("ports/*/counters/*", "ports/*/hw_counters/*")
_INTERFACE_SETTINGS = ("mtu", "speed", "duplex", "operstate", "qos/*", "ecn/*/enable/*")
_ADAPTER_SETTINGS = ("fw_ver", "ports/*/rate", "ports/*/state", "ports/*/phys_state")


@dataclass(frozen=True, kw_only=True)
class CounterFile:
    """One counter."""

    device: str
    name: str
    meaning: CounterMeaning
    path: Path
    descriptor: int

    def read(self) -> int | None:
        """Return its value now, None where the kernel gives none."""
        try:
            content = os.pread(self.descriptor, _MAX_BYTES, 0).strip()
        except OSError:  # the device is gone, or down
            return None
        if len(content) < _SURE_DIGITS and content.isdigit():  # nearly all are, and a sample has many
            return int(content)
        return whole_number(content.decode("ascii", "replace"))


class NicSources:
    """The counters whose meaning is known, and the settings, of some devices or of all but the loopback device."""

    def __init__(self, devices: Sequence[str] = (), root: Path = SYSFS) -> None:
        self._root, self._devices = root, devices
        self.counters: list[CounterFile] = []
        for path in [*self._files("net", _INTERFACE_COUNTERS), *self._files("infiniband", _ADAPTER_COUNTERS)]:
            meaning = meaning_of(path.name)
            if meaning.counter_class != CounterClass.NOT_KNOWN and len(self.counters) < MAX_COUNTERS:
                self._open(path, meaning)

    def read(self) -> list[int]:
        """Return the value of each counter, -1 for one that cannot be read."""
        return [-1 if value is None else value for value in (counter.read() for counter in self.counters)]

    def snapshot(self, values: Sequence[int]) -> Snapshot:
        """Return values as a snapshot, without those that could not be read."""
        counters = {
            (one.device, one.name): Counter(
                device=one.device, name=one.name, value=value, meaning=one.meaning, where=str(one.path)
            )
            for one, value in zip(self.counters, values, strict=True)
            if value >= 0
        }
        return Snapshot(counters=counters)

    def settings(self) -> dict[tuple[str, str], str]:
        """Return the settings as they are now, by device and name."""
        found = {}
        for path in [*self._files("net", _INTERFACE_SETTINGS), *self._files("infiniband", _ADAPTER_SETTINGS)]:
            device, name = self._place(path)
            try:
                found[device, name] = path.read_text(errors="replace").strip()[:200]
            except OSError:  # a link that is down has no speed
                found[device, name] = ""
        return found

    def close(self) -> None:
        """Close the files."""
        for counter in self.counters:
            os.close(counter.descriptor)
        self.counters = []

    def _open(self, path: Path, meaning: CounterMeaning) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:
            return
        device, _ = self._place(path)
        self.counters.append(
            CounterFile(device=device, name=path.name, meaning=meaning, path=path, descriptor=descriptor)
        )

    def _files(self, kind: str, patterns: Sequence[str]) -> list[Path]:
        folder = self._root / kind
        devices = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        chosen = [name for name in devices if (name in self._devices if self._devices else name != "lo")]
        return [file for name in chosen for pattern in patterns for file in sorted((folder / name).glob(pattern))]

    def _place(self, path: Path) -> tuple[str, str]:
        device, *inner = path.relative_to(self._root).parts[1:]
        return (f"{device}/{inner[1]}", "/".join(inner[2:])) if inner[0] == "ports" else (device, "/".join(inner))
