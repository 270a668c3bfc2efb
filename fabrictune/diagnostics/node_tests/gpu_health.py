"""Health of NVIDIA GPUs: uncorrected ECC errors, pending repairs, clocks held down, and Xid errors of the driver.

The figures are NVML's, as nvidia-smi prints them; an Xid is a line of the kernel's log, with the numbers of one boot.

Source: NVIDIA, "Xid Errors" and "GPU Memory Error Management"; nvidia-smi(1), --help-query-gpu.
Left out: Xids that the kernel's log has dropped, or that this user may not read.
"""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fabrictune.diagnostics.results import NodeResult
from fabrictune.foundation.time_limits import scaled

_QUERY_S = 20.0
_QUERY = {  # nvidia-smi's name: what is wrong with a GPU whose value is not one of the good ones
    "ecc.errors.uncorrected.volatile.total": "uncorrected ECC errors since the driver was loaded",
    "retired_pages.pending": "pages that wait for a reboot to be retired",
    "remapped_rows.pending": "rows that wait for a reset to be remapped",
    "remapped_rows.failure": "rows that could not be remapped",
    "clocks_throttle_reasons.hw_thermal_slowdown": "clocks held down for heat",
    "clocks_throttle_reasons.hw_power_brake_slowdown": "clocks held down by the power supply",
    "clocks_throttle_reasons.sw_thermal_slowdown": "clocks held down for heat by the driver",
}
_GOOD = ("0", "no", "not active", "[n/a]", "n/a", "[not supported]")
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)")
_HARMLESS = frozenset({13, 31, 43, 45, 68, 109})  # of an application, as NVIDIA's table has it


def check_gpu_health(folder: Path) -> NodeResult:
    """Ask NVML by nvidia-smi, and read the kernel's log."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return NodeResult(test="GPU health", skipped="no nvidia-smi on this node")
    query = f"--query-gpu=index,{','.join(_QUERY)}"
    answer = _run(program, query, "--format=csv,noheader,nounits")
    if answer is None:
        return NodeResult(test="GPU health", faults=("nvidia-smi does not answer",))
    return NodeResult(test="GPU health", faults=(*read_health(answer), *read_xids(_run("dmesg") or "")))


def read_health(answer: str) -> Iterator[str]:
    """Yield what is wrong by nvidia-smi's answer, a line of values for each GPU."""
    for line in filter(str.strip, answer.splitlines()):
        index, *values = [value.strip() for value in line.split(",")]
        if len(values) != len(_QUERY):
            yield f"nvidia-smi answers {line.strip()!r}"
            continue
        for meaning, value in zip(_QUERY.values(), values, strict=True):
            if value.lower() not in _GOOD:
                yield f"GPU {index}: {meaning}" + (f": {value}" if value.isdecimal() else "")


def read_xids(log: str) -> Iterator[str]:
    """Yield the Xid errors of a kernel's log that are not an application's, by GPU and number."""
    counts = Counter((gpu, int(number)) for gpu, number in _XID.findall(log))
    for (gpu, number), count in counts.items():
        if number not in _HARMLESS:
            yield f"GPU {gpu}: Xid {number}, {count} {'time' if count == 1 else 'times'}"


def _run(*words: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603  # nvidia-smi or dmesg, with our own words
            words, capture_output=True, text=True, errors="replace", timeout=scaled(_QUERY_S), check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
