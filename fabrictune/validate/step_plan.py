"""What a training step sends over every link of a testbed, before it runs.

The requests come from the trainer's dry run; what a rank sends to another, from gloo's algorithms; over which links
it goes, from the kernel's own routes for the ports of their connections. Headers are counted: 66 bytes a packet
(Ethernet, IP, TCP with timestamps), and an acknowledgement for every second packet on the way back. The network's part
of a step is that of its collectives one after another, each as long as its busiest link takes.

Left out: connections made and closed, TCP's retransmissions, gloo's own headers, the few bytes by which ranks agree on
the norm of gradients and report a step.

Shapes: P ports, R ranks, N requests.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.foundation.traces import CommTrace
from fabrictune.foundation.units import BITS_PER_BYTE
from fabrictune.hardware.files import find_profile
from fabrictune.testbed.paths import Flow
from fabrictune.testbed.wiring import MTU_BYTES
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.plan import make_plan
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.validate.gloo_pairs import pair_bytes

HEADER_BYTES = 66
PAYLOAD_BYTES = MTU_BYTES - 52
PACKETS_PER_ACK = 2
_ANY_PROFILE = "a100"  # what ranks request does not depend on it


def planned_requests(recipe: Recipe) -> CommTrace:
    """Return the requests of all ranks in a step of a recipe; raises UnavailableError where torch is missing."""
    return make_plan(recipe, HardwareSpec.of_profile(find_profile(_ANY_PROFILE))).trace.written_out()


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """A step's requests on the paths of the connections between ranks."""

    requests: CommTrace
    paths: Mapping[Flow, tuple[int, ...]]
    num_ports: int

    @cached_property
    def wire_bytes_P(self) -> FloatArray:
        """The bytes that each port sends in a step, headers and acknowledgements included."""
        return self._wire_bytes_P(self._pairs())

    def network_s(self, rate_bps_P: IntArray) -> float:
        """Return the network's part of a step: of each collective in turn, what its busiest link takes."""
        requests = self.requests
        columns = zip(requests.axis_N, requests.tag_N, requests.operation_N.tolist(), strict=True)
        keys = dict.fromkeys((str(axis), str(tag), operation) for axis, tag, operation in columns)
        return sum(self._busiest_s(key, rate_bps_P) for key in keys)

    def _busiest_s(self, key: tuple[str, str, int], rate_bps_P: IntArray) -> float:
        axis, tag, operation = key
        is_own_N = (np.array(self.requests.axis_N) == axis) & (np.array(self.requests.tag_N) == tag)
        pairs_RR = self._pairs(is_own_N & (self.requests.operation_N == operation))
        return float((self._wire_bytes_P(pairs_RR) * BITS_PER_BYTE / rate_bps_P).max())

    def _pairs(self, is_counted_N: BoolArray | None = None) -> FloatArray:
        num_ranks, step = int(self.requests.rank_N.max()) + 1, int(self.requests.step_N.max())
        return pair_bytes(self.requests, step=step, num_ranks=num_ranks, is_counted_N=is_counted_N)

    def _wire_bytes_P(self, pairs_RR: FloatArray) -> FloatArray:
        """Return what each port sends for bytes from rank to rank; connections of a pair share evenly."""
        ends = [(flow.source_nic, flow.destination_nic) for flow in self.paths]
        rank_of = {nic: rank for rank, nic in enumerate(sorted({source for source, _ in ends}))}  # in order of hosts
        wire_P = np.zeros(self.num_ports)
        for flow, path in self.paths.items():
            pair = (flow.source_nic, flow.destination_nic)
            payload = pairs_RR[rank_of[pair[0]], rank_of[pair[1]]] / ends.count(pair)
            packets = payload / PAYLOAD_BYTES
            wire_P[list(path)] += payload + packets * HEADER_BYTES
            wire_P[list(self.paths[flow.reverse])] += packets / PACKETS_PER_ACK * HEADER_BYTES
        return wire_P
