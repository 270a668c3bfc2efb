"""The self-check of a node: what it passes before it joins a job.

Products of whole numbers have known bits on every device and in every order of summation, since no partial sum is
rounded: an element that differs is the device's fault. Memory, disk, shared memory, the network's counters, the way to
the driver and the clock are looked at for what a training needs of them. `check_apart` runs all of it in a process of
its own, so that a device that hangs costs no more than the time given.

Left out: bandwidth of links between nodes (`coll run` measures it), and faults that need heat to show.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from fabrictune.foundation.children import ending_with_parent, module_command
from fabrictune.foundation.records import installed_version
from fabrictune.foundation.time_limits import scaled

CHECK_S = 60.0
_SHARED = Path("/dev/shm")  # noqa: S108  # the system's folder for files in memory
_NET = Path("/sys/class/net")
_PROBE_BYTES = 1 << 20
_SIDE, _LARGEST = 384, 8  # sums of 384 products of at most 64 stay below 2**24, which float32 has exactly
_NUM_PRODUCTS = 8
_NUM_READINGS = 20_000
_CONNECT_S = 5.0


@dataclass(frozen=True, kw_only=True)
class SelfCheck:
    """What a node is asked for."""

    folder: str  # for logs and data
    interface: str = "lo"
    driver: tuple[str, int] | None = None
    min_memory_bytes: int = 1 << 30
    min_disk_bytes: int = 1 << 30
    min_shared_bytes: int = 1 << 28
    versions: Mapping[str, str] = field(default_factory=dict)  # that this node's have to be


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """One check: what was found, what is asked for, and what to do where it isn't so."""

    name: str
    is_passed: bool
    figure: str
    limit: str
    next_step: str = ""


def run_self_check(asked: SelfCheck) -> dict[str, Any]:
    """Run all checks in this process; returns JSON values: `is_passed`, `elapsed_s`, `checks`, `versions`."""
    began_s = time.monotonic()
    results: list[CheckResult] = []
    for check in _CHECKS:
        try:
            results.extend(check(asked))
        except Exception as error:  # a check that cannot be made has not been passed
            name = check.__name__.strip("_").replace("_", " ")
            figure = f"{type(error).__name__}: {error}"
            results.append(CheckResult(name=name, is_passed=False, figure=figure, limit="a check that can be made"))
    return {
        "is_passed": all(result.is_passed for result in results),
        "elapsed_s": time.monotonic() - began_s,
        "checks": [asdict(result) for result in results],
        "versions": {name: installed_version(name) for name in ("fabrictune", "torch")},
    }


def check_apart(asked: SelfCheck, *, timeout_s: float | None = None) -> dict[str, Any]:
    """Run all checks in a process of their own, which is ended where it takes too long; returns JSON values."""
    limit_s = scaled(CHECK_S) if timeout_s is None else timeout_s
    began_s = time.monotonic()
    command = [*ending_with_parent(), *module_command(__name__)]
    try:
        done = subprocess.run(  # noqa: S603  # this interpreter and this module
            command, input=json.dumps(asdict(asked)), capture_output=True, text=True, timeout=limit_s, check=False
        )
        result = json.loads(done.stdout)
        assert isinstance(result, dict)
        return result
    except subprocess.TimeoutExpired:
        figure, next_step = f"not over after {limit_s:g} s", "look for a device that hangs: nvidia-smi, dmesg"
    except (ValueError, AssertionError):
        figure = f"ended with exit code {done.returncode}: {done.stderr.strip()[-200:]}"
        next_step = "run it by hand, and look into the kernel's log"
    failed = CheckResult(name="process", is_passed=False, figure=figure, limit=f"{limit_s:g} s", next_step=next_step)
    elapsed_s = time.monotonic() - began_s
    return {"is_passed": False, "elapsed_s": elapsed_s, "checks": [asdict(failed)], "versions": {}}


def whole_number_matrices() -> tuple[Any, Any, Any]:
    """Return two matrices of small whole numbers, and their product."""
    import numpy as np

    rows, columns = np.indices((_SIDE, _SIDE))
    left = (rows * 7 + columns * 3) % (2 * _LARGEST + 1) - _LARGEST
    right = (rows * 5 + columns * 11) % (2 * _LARGEST + 1) - _LARGEST
    return left, right, left @ right


def _product_of_cpu(asked: SelfCheck) -> Iterator[CheckResult]:
    import numpy as np

    left, right, expected = whole_number_matrices()
    found = [left.astype(np.float32) @ right.astype(np.float32) for _ in range(_NUM_PRODUCTS)]
    yield _product("cpu", sum(int((product != expected).sum()) for product in found), expected.size * len(found))


def _product_of_gpus(asked: SelfCheck) -> Iterator[CheckResult]:
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        return
    import torch

    left, right, expected = (torch.from_numpy(values) for values in whole_number_matrices())
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False  # partial sums stay exact
    num_gpus = torch.cuda.device_count()
    yield CheckResult(
        name="gpus",
        is_passed=num_gpus > 0,
        figure=f"{num_gpus} that torch can use",
        limit="at least 1, since the node has some",
        next_step="" if num_gpus else "look at nvidia-smi, CUDA_VISIBLE_DEVICES, and torch's CUDA version",
    )
    for number in range(num_gpus):
        device = torch.device("cuda", number)
        for dtype in (torch.float32, torch.bfloat16):
            right_bits = expected.float().to(dtype).to(device)
            num_wrong = 0
            for _ in range(_NUM_PRODUCTS):
                product = left.to(device, dtype) @ right.to(device, dtype)
                num_wrong += int((product != right_bits).sum())
            name = f"{device} {str(dtype).removeprefix('torch.')}"
            yield _product(name, num_wrong, expected.numel() * _NUM_PRODUCTS)


def _product(device: str, num_wrong: int, num_elements: int) -> CheckResult:
    return CheckResult(
        name=f"product {device}",
        is_passed=num_wrong == 0,
        figure=f"{num_wrong:,} of {num_elements:,} elements wrong",
        limit="0",
        next_step="" if num_wrong == 0 else "take the node out: the device computes wrongly",
    )


def _memory(asked: SelfCheck) -> Iterator[CheckResult]:
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    yield _room("memory", available, asked.min_memory_bytes, "end what else uses it, or take a larger node")


def _disk(asked: SelfCheck) -> Iterator[CheckResult]:
    folder = Path(asked.folder)
    folder.mkdir(parents=True, exist_ok=True)
    yield _room("disk", shutil.disk_usage(folder).free, asked.min_disk_bytes, f"make room at {folder}")
    probe, content = folder / f".self-check-{os.getpid()}", os.urandom(_PROBE_BYTES)
    began_s = time.monotonic()
    try:
        with probe.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        is_same = probe.read_bytes() == content
    finally:
        probe.unlink(missing_ok=True)
    figure = f"{'the same' if is_same else 'other'} bytes after {time.monotonic() - began_s:.3f} s"
    yield CheckResult(name="disk write", is_passed=is_same, figure=figure, limit="the same bytes")


def _shared_memory(asked: SelfCheck) -> Iterator[CheckResult]:
    free = shutil.disk_usage(_SHARED).free
    next_step = f"remove what is left in {_SHARED}, or give the container more (--shm-size, emptyDir of medium Memory)"
    yield _room("shared memory", free, asked.min_shared_bytes, next_step)


def _network(asked: SelfCheck) -> Iterator[CheckResult]:
    for interface in dict.fromkeys(("lo", asked.interface)):
        counters = [_NET / interface / "statistics" / name for name in ("rx_bytes", "tx_bytes", "rx_errors")]
        values = [int(path.read_text()) for path in counters]
        yield CheckResult(
            name=f"interface {interface}",
            is_passed=True,
            figure=f"{values[0]:,} bytes received, {values[1]:,} sent, {values[2]:,} errors",
            limit="counters can be read",
        )
    began_s = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()[:2]) as own:
        peer, _ = server.accept()
        with peer:
            own.sendall(b"self-check")
            is_same = peer.recv(32) == b"self-check"
    figure = f"{(time.monotonic() - began_s) * 1e3:.2f} ms"
    yield CheckResult(name="loopback", is_passed=is_same, figure=figure, limit="what is sent arrives")


def _driver(asked: SelfCheck) -> Iterator[CheckResult]:
    if asked.driver is None:
        return
    host, port = asked.driver
    began_s = time.monotonic()
    try:
        socket.create_connection((host, port), timeout=scaled(_CONNECT_S)).close()
    except OSError as error:
        next_step = "look for a firewall, or give the address at which this node reaches the driver"
        yield CheckResult(
            name="driver", is_passed=False, figure=f"{host}:{port}: {error}", limit="answers", next_step=next_step
        )
        return
    figure = f"{host}:{port} answers after {(time.monotonic() - began_s) * 1e3:.2f} ms"
    yield CheckResult(name="driver", is_passed=True, figure=figure, limit="answers")


def _versions(asked: SelfCheck) -> Iterator[CheckResult]:
    for name, wanted in asked.versions.items():
        found = installed_version(name)
        next_step = "" if found == wanted else f"install {name} {wanted} on this node"
        yield CheckResult(
            name=f"version {name}", is_passed=found == wanted, figure=found, limit=wanted, next_step=next_step
        )


def _clock(asked: SelfCheck) -> Iterator[CheckResult]:
    readings = [time.monotonic_ns() for _ in range(_NUM_READINGS)]
    num_back = sum(later < earlier for earlier, later in pairwise(readings))
    next_step = "" if num_back == 0 else "choose another clock source (/sys/devices/system/clocksource)"
    yield CheckResult(
        name="clock",
        is_passed=num_back == 0,
        figure=f"goes back {num_back} times in {_NUM_READINGS:,} readings",
        limit="0",
        next_step=next_step,
    )


def _room(name: str, found_bytes: int, min_bytes: int, next_step: str) -> CheckResult:
    is_enough = found_bytes >= min_bytes
    return CheckResult(
        name=name,
        is_passed=is_enough,
        figure=f"{found_bytes / 2**30:.2f} GiB",
        limit=f"at least {min_bytes / 2**30:.2f} GiB",
        next_step="" if is_enough else next_step,
    )


_CHECKS: tuple[Callable[[SelfCheck], Iterator[CheckResult]], ...] = (
    _product_of_cpu,
    _product_of_gpus,
    _memory,
    _disk,
    _shared_memory,
    _network,
    _driver,
    _versions,
    _clock,
)


def main() -> None:
    """Read what is asked from the standard input, and write the result to the standard output."""
    values = json.load(sys.stdin)
    known = {name.name: values[name.name] for name in fields(SelfCheck) if name.name in values}
    if known.get("driver") is not None:
        known["driver"] = tuple(known["driver"])
    json.dump(run_self_check(SelfCheck(**known)), sys.stdout)


if __name__ == "__main__":
    main()
