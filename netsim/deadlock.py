"""PFC deadlock: ports paused forever by buffers that wait for one another in a cycle.

A port is paused until the buffer behind its wire has drained to its resume threshold. What that buffer holds for a port
that is itself never resumed does not drain. So start with all held ports and strike out every one whose buffer would
fall to its threshold if all ports outside the list drained theirs, until nothing changes: what remains is never
resumed, whatever else happens. It is the largest such set, and each of its ports waits for another of it, so following
them leads round a ring. In a shared buffer, thresholds are those that hold while the bytes for these ports stay.

Only a switch that throws packets away (a watchdog) ends such a state; a run that is in it stalls.

Source: Hu et al., "Deadlocks in Datacenter Networks: Why Do They Form, and How to Avoid Them", HotNets 2016 (cyclic
buffer dependency).
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.netsim import _engine
from fabrictune.netsim.engine_inputs.inputs import EngineInputs

BytesFor = dict[int, dict[int, int]]  # bytes in a buffer, by the queue that fills it, then by the one they wait in


@dataclass(frozen=True, kw_only=True)
class Deadlock:
    """Ports that are never resumed."""

    ring: tuple[int, ...]  # each waits for the next, and the last for the first
    ports: tuple[int, ...]  # of the ring, and those that wait for it
    held_bytes: int  # in the buffers behind them, for ports among them


def find_deadlock(simulation: _engine.Simulation, inputs: EngineInputs) -> Deadlock | None:
    """Return the deadlock of a simulation at this instant, if there is one.

    Where ports have several priorities, each of a port's queues waits for itself.
    """
    holds, waits = simulation.hold_columns(), simulation.waiting_columns()
    bytes_for: BytesFor = defaultdict(dict)
    for filled_by, port, num_bytes in zip(waits["ingress"], waits["port"], waits["bytes"], strict=True):
        bytes_for[int(filled_by)][int(port)] = int(num_bytes)
    num_priorities = len(inputs["priority_weight"])
    if num_priorities:
        buffers = _Buffers(inputs, bytes_for, simulation.input_columns()["headroom_bytes"])
        stuck = _never_resumed({int(queue) for queue in holds["port"]}, buffers.resumed)
    else:
        resume_below = zip(holds["port"].tolist(), holds["resume_below_bytes"].tolist(), strict=True)
        stuck = stuck_ports(dict(resume_below), bytes_for)
    if not stuck:
        return None
    per_port = max(1, num_priorities)
    return Deadlock(
        ring=tuple(queue // per_port for queue in _ring(stuck, bytes_for)),
        ports=tuple(sorted({queue // per_port for queue in stuck})),
        held_bytes=sum(_bytes_for(stuck, bytes_for[port]) for port in stuck),
    )


def stuck_ports(resume_below_bytes: dict[int, int], bytes_for: BytesFor) -> set[int]:
    """Return which of the held ports, the keys of `resume_below_bytes`, are never resumed."""

    def resumed(stuck: set[int]) -> set[int]:
        return {port for port in stuck if _bytes_for(stuck, bytes_for[port]) <= resume_below_bytes[port]}

    return _never_resumed(set(resume_below_bytes), resumed)


def _never_resumed(held: set[int], resumed: Callable[[set[int]], set[int]]) -> set[int]:
    """Strike out what is resumed once all but a set has drained, until nothing is."""
    stuck = held
    while gone := resumed(stuck):
        stuck = stuck - gone
    return stuck


class _Buffers:
    """Buffers of nodes whose ports have priorities, shared or not."""

    def __init__(self, inputs: EngineInputs, bytes_for: BytesFor, headroom_bytes: IntArray) -> None:
        num_priorities = len(inputs["priority_weight"])
        self._bytes_for = bytes_for
        self._headroom_bytes = headroom_bytes
        self._shared_bytes = inputs["priority_shared_buffer"]
        self._reserve_bytes = inputs["priority_input_reserve"]
        self._offset_bytes = inputs["priority_resume_offset"]
        self._alpha = np.tile(inputs["priority_alpha"], len(inputs["port_peer"]))  # by queue
        self._node = np.repeat(inputs["port_node"][inputs["port_peer"]], num_priorities)  # that a queue fills

    def resumed(self, stuck: set[int]) -> set[int]:
        """Return the queues that are resumed once all that is not for stuck ones has left.

        What they keep of a shared buffer lowers the thresholds of all its queues.
        """
        kept, above = self._left(stuck)
        free = self._shared_bytes.astype(np.int64).copy()
        for queue, num_bytes in kept.items():
            free[self._node[queue]] -= max(0, num_bytes - int(self._reserve_bytes[queue]))
        return {
            queue
            for queue in stuck
            if not above.get(queue, 0) and self._has_room(queue, kept.get(queue, 0), int(free[self._node[queue]]))
        }

    def _left(self, stuck: set[int]) -> tuple[dict[int, int], dict[int, int]]:
        """Return what each queue keeps within its threshold, and in headroom, which is the first to drain."""
        kept, above = {}, {}
        for queue, by_port in self._bytes_for.items():
            total, staying = sum(by_port.values()), _bytes_for(stuck, by_port)
            above[queue] = max(0, int(self._headroom_bytes[queue]) - (total - staying))
            kept[queue] = staying - above[queue]
        return kept, above

    def _has_room(self, queue: int, kept: int, free: int) -> bool:
        """Return whether a queue that keeps so much is resumed (BufferPool::room in shared_buffer.hpp)."""
        reserve = int(self._reserve_bytes[queue])
        threshold = reserve + int(float(self._alpha[queue]) * free)
        room = max(0, min(threshold - kept, max(0, reserve - kept) + free))
        return kept == 0 or room >= int(self._offset_bytes[queue])


def _bytes_for(ports: set[int], by_port: dict[int, int]) -> int:
    return sum(num_bytes for port, num_bytes in by_port.items() if port in ports)


def _ring(stuck: set[int], bytes_for: dict[int, dict[int, int]]) -> tuple[int, ...]:
    """Follow each port to the one it waits for most, until one comes again."""
    walk = [min(stuck)]
    while True:
        behind = {port: num_bytes for port, num_bytes in bytes_for[walk[-1]].items() if port in stuck}
        following = max(behind, key=lambda port: (behind[port], -port))
        if following in walk:
            ring = walk[walk.index(following) :]
            start = ring.index(min(ring))
            return (*ring[start:], *ring[:start])
        walk.append(following)
