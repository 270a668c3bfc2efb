"""Runs of perftest's programs at one end: arguments from checked numbers, no shell, and a time limit.

The server's end waits for the client's; both get the same sizes. A client that comes too early tries again.

Source: perftest 4.5, perftest_parameters.c (what each option means).
"""

import shutil
import subprocess
import time
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake, UnavailableError
from fabrictune.foundation.foreign_files import read_head
from fabrictune.foundation.temporary_folders import temporary_folder
from fabrictune.foundation.time_limits import scaled
from fabrictune.rdma_bench.verbs.ports import DevicePort

PROGRAMS = {"bandwidth": "ib_write_bw", "latency": "ib_write_lat"}
MAX_OUTPUT_BYTES = 2**18
NO_SERVER = "Couldn't connect to"
RETRY_S = 0.5
_SHOWN_CHARACTERS = 400


@dataclass(frozen=True, kw_only=True)
class PerftestSpec:
    """One run; the fields are the same at both ends, but for `server`."""

    what: str  # bandwidth or latency
    server: str = ""  # IPv4 address of the other end, where its server waits; "": this end is the server
    control_port: int = 18515
    message_bytes: int = 65536
    num_queue_pairs: int = 1
    num_iterations: int = 1000
    timeout_exponent: int = 14
    is_both_ways: bool = False
    limit_s: float = 60.0

    def __post_init__(self) -> None:
        bounds = {
            "control_port": (1024, 65535),
            "message_bytes": (1, 2**23),
            "num_queue_pairs": (1, 128),
            "num_iterations": (5, 1_000_000),
            "timeout_exponent": (0, 31),
            "limit_s": (1, 3600),
        }
        mistakes = [
            Mistake(where=name, found=f"{getattr(self, name)}", allowed=f"{low} to {high}")
            for name, (low, high) in bounds.items()
            if not low <= getattr(self, name) <= high
        ]
        if self.what not in PROGRAMS:
            mistakes.append(Mistake(where="what", found=repr(self.what), allowed=", ".join(PROGRAMS)))
        if self.server and not _is_ipv4(self.server):
            mistakes.append(Mistake(where="server", found=repr(self.server), allowed="an IPv4 address"))
        if mistakes:
            raise InputError(*mistakes)


@dataclass(frozen=True, kw_only=True)
class PerftestOutput:
    """Text that a run printed, and its JSON ("" where its version cannot)."""

    text: str
    json: str


def command_line(spec: PerftestSpec, place: DevicePort) -> list[str]:
    """Return the words of a run, without what its version may not know."""
    is_bandwidth = spec.what == "bandwidth"
    words = [PROGRAMS[spec.what], "-d", place.device, "-i", f"{place.port}", "-x", f"{place.gid.index}"]
    words += ["-p", f"{spec.control_port}", "-s", f"{spec.message_bytes}", "-n", f"{spec.num_iterations}"]
    words += ["-u", f"{spec.timeout_exponent}", "-F"]
    words += ["-q", f"{spec.num_queue_pairs}", "--report_gbits"] if is_bandwidth else []
    words += ["-b"] if is_bandwidth and spec.is_both_ways else []
    return [*words, spec.server] if spec.server else words


def run_perftest(spec: PerftestSpec, place: DevicePort) -> PerftestOutput:
    """Run one end; raises UnavailableError where perftest is missing, fails, or takes too long."""
    program, *words = command_line(spec, place)
    path = shutil.which(program)
    if path is None:
        raise UnavailableError(
            Mistake(where=program, found="not on the path", next_step="apt-get install perftest (dnf: perftest)")
        )
    deadline = time.monotonic() + spec.limit_s
    with temporary_folder("fabrictune-perftest-") as folder:
        file = folder / "out.json"
        as_json = ["--out_json", f"--out_json_file={file}"] if _knows_json(path) else []
        while True:
            ran = _run([path, *as_json, *words], deadline - time.monotonic())
            output = (ran.stdout + ran.stderr).decode(errors="replace")
            if ran.returncode == 0:
                text = read_head(file, MAX_OUTPUT_BYTES).decode(errors="replace")
                return PerftestOutput(text=output[-MAX_OUTPUT_BYTES:], json=text)
            if NO_SERVER not in output or time.monotonic() + RETRY_S > deadline:
                found = f"ended with {ran.returncode}: {output.strip()[-_SHOWN_CHARACTERS:]}"
                raise UnavailableError(Mistake(where=program, found=found))
            time.sleep(RETRY_S)


def _knows_json(path: str) -> bool:
    return b"--out_json" in _run([path, "--help"], scaled(10.0)).stdout


def _run(words: list[str], limit_s: float) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 - a program of the distribution, and numbers that were checked
            words, capture_output=True, timeout=limit_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(Mistake(where=Path(words[0]).name, found=str(error))) from error


def _is_ipv4(text: str) -> bool:
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True
