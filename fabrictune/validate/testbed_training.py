"""A training on a testbed, a rank a host: its steps, and every link's bytes beside what its requests and paths plan.

What a rank sends to another comes from the trace of requests by gloo's algorithms; over which links it goes, from the
kernel's own routes for the ports of their connection. Headers are counted: 66 bytes a packet (Ethernet, IP, TCP with
timestamps), and an acknowledgement for every second packet on the way back. The network's part of a step is that of its
collectives one after another, each as long as its busiest link takes.

Left out: connections made and closed, TCP's retransmissions, gloo's own headers.

Shapes: P ports, R ranks.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.foundation.children import ending_with_parent, module_command
from fabrictune.foundation.errors import InputError, Mistake, UnavailableError
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.traces import CommTrace
from fabrictune.foundation.units import BITS_PER_BYTE
from fabrictune.testbed.connections import read_connections
from fabrictune.testbed.counters import link_counters
from fabrictune.testbed.paths import Flow, kernel_paths
from fabrictune.testbed.testbed import Testbed
from fabrictune.testbed.wiring import MTU_BYTES
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.validate.gloo_pairs import pair_bytes

HEADER_BYTES = 66
PAYLOAD_BYTES = MTU_BYTES - 52
PACKETS_PER_ACK = 2
NS_PER_S = 10**9


@dataclass(frozen=True, kw_only=True)
class StepEvent:
    """A step that has ended, by the clock of this machine (CLOCK_MONOTONIC)."""

    step: int
    seconds: float
    began_s: float


@dataclass(frozen=True, kw_only=True)
class TestbedTraining:
    """What was trained, and what it took."""

    step_s: tuple[float, ...]
    trace: CommTrace  # of the last steps
    paths: Mapping[Flow, tuple[int, ...]]  # of the connections between ranks
    sent_bytes_P: IntArray  # as every port counted them, over the whole run

    def planned_bytes_P(self) -> FloatArray:
        """Return the bytes that each port sends over the whole run, headers and acknowledgements included."""
        return len(self.step_s) * self._wire_bytes_P(self._pairs(self.trace))

    def network_s(self, rate_bps_P: IntArray) -> float:
        """Return the network's part of a step: of each collective in turn, what its busiest link takes."""
        step = int(self.trace.step_N.max())
        keys = dict.fromkeys(
            (str(axis), str(tag), int(operation))
            for axis, tag, operation, of_step in zip(
                self.trace.axis_N, self.trace.tag_N, self.trace.operation_N, self.trace.step_N, strict=True
            )
            if of_step == step
        )
        return sum(self._busiest_s(key, rate_bps_P) for key in keys)

    def _busiest_s(self, key: tuple[str, str, int], rate_bps_P: IntArray) -> float:
        axis, tag, operation = key
        is_own_N = (np.array(self.trace.axis_N) == axis) & (np.array(self.trace.tag_N) == tag)
        pairs_RR = self._pairs(self.trace, is_own_N & (self.trace.operation_N == operation))
        return float((self._wire_bytes_P(pairs_RR) * BITS_PER_BYTE / rate_bps_P).max())

    def _pairs(self, trace: CommTrace, is_counted_N: BoolArray | None = None) -> FloatArray:
        step = int(trace.step_N.max())
        return pair_bytes(trace, step=step, num_ranks=self.num_ranks, is_counted_N=is_counted_N)

    @property
    def num_ranks(self) -> int:
        """R."""
        return int(self.trace.rank_N.max()) + 1

    def _wire_bytes_P(self, pairs_RR: FloatArray) -> FloatArray:
        """Return what each port sends for bytes from rank to rank; connections of a pair share evenly."""
        ends = [(flow.source_nic, flow.destination_nic) for flow in self.paths]
        wire_P = np.zeros(len(self.sent_bytes_P))
        for flow, path in self.paths.items():
            pair = (flow.source_nic, flow.destination_nic)
            payload = pairs_RR[self._rank_of[pair[0]], self._rank_of[pair[1]]] / ends.count(pair)
            packets = payload / PAYLOAD_BYTES
            wire_P[list(path)] += payload + packets * HEADER_BYTES
            wire_P[list(self.paths[flow.reverse])] += packets / PACKETS_PER_ACK * HEADER_BYTES
        return wire_P

    @property
    def _rank_of(self) -> dict[int, int]:
        """The rank at each NIC: hosts have ranks in order, each at its first NIC."""
        return {nic: rank for rank, nic in enumerate(sorted({flow.source_nic for flow in self.paths}))}


def train_on(
    testbed: Testbed,
    recipe: Recipe,
    recipe_file: Path,
    settings: Mapping[str, Any],
    *,
    on_step: Callable[[StepEvent], None] = lambda event: None,
) -> TestbedTraining:
    """Train a recipe with a rank on each host; raises InputError for another number of ranks, and UnavailableError."""
    require_extra("torch", extra="train", where="trainer")
    num_ranks, num_hosts = recipe.degrees.layout.world_size, len(testbed.hosts)
    if num_ranks != num_hosts:
        step = "change the degrees, or build a testbed of as many hosts"
        found = f"{num_ranks} ranks"
        raise InputError(
            Mistake(
                where=f"{recipe.name}: degrees.layout", found=found, allowed=f"{num_hosts}, a host each", next_step=step
            )
        )
    steps: list[float] = []
    connections: dict[Flow, int] = {}
    with tempfile.TemporaryDirectory(prefix="fabrictune-testbed-") as folder, link_counters(testbed.built) as counters:
        trace = Path(folder, "trace.parquet")
        before = counters.read()
        for event in _events(testbed, recipe_file, settings, Path(folder), trace):
            if event["event"] == "step":
                steps.append(event["elapsed_ns"] / NS_PER_S)
                connections = read_connections(testbed.built) or connections
                began_s = event["ended_s"] - steps[-1]
                on_step(StepEvent(step=event["step"], seconds=steps[-1], began_s=began_s))
        after = counters.read()
        return TestbedTraining(
            step_s=tuple(steps),
            trace=CommTrace.read(trace),
            paths=kernel_paths(testbed.built, list(connections)),
            sent_bytes_P=after.sent_bytes_P - before.sent_bytes_P,
        )


def _events(
    testbed: Testbed, recipe_file: Path, settings: Mapping[str, Any], folder: Path, trace: Path
) -> Iterator[dict[str, Any]]:
    """Yield what the ranks report until they have ended; raises UnavailableError with a failed one's last words."""
    hosts = [
        {
            "name": host,
            "namespace": testbed.built.namespace(host),
            "interface": rails[0],
            "address": testbed.address(host),
        }
        for host, rails in testbed.interfaces().items()
    ]
    job = folder / "job.json"
    job.write_text(
        json.dumps({"hosts": hosts, "recipe": str(recipe_file), "settings": dict(settings), "trace": str(trace)})
    )
    command = [*ending_with_parent(), *module_command("fabrictune.validate.testbed_ranks", str(job))]
    with (folder / "errors.txt").open("w+") as errors, _running(command, errors) as process:
        assert process.stdout
        for line in process.stdout:
            yield json.loads(line)
        if process.wait():
            errors.seek(0)
            said = "\n".join(errors.read().splitlines()[-8:])
            raise UnavailableError(Mistake(where="training on the testbed", found=f"failed\n{said}"))


@contextmanager
def _running(command: list[str], errors: Any) -> "Iterator[subprocess.Popen[str]]":
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)  # noqa: S603  # ours
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        assert process.stdout
        process.stdout.close()
