"""PFC deadlock: ports paused forever by buffers that wait for one another in a cycle.

A port is paused until the buffer behind its wire has drained to its resume threshold. What that buffer holds for a port
that is itself never resumed does not drain. So start with all held ports and strike out every one whose buffer would
fall to its threshold if all ports outside the list drained theirs, until nothing changes: what remains is never
resumed, whatever else happens. It is the largest such set, and each of its ports waits for another of it, so following
them leads round a ring.

Only a switch that throws packets away (a watchdog) ends such a state; a run that is in it stalls.

Source: Hu et al., "Deadlocks in Datacenter Networks: Why Do They Form, and How to Avoid Them", HotNets 2016 (cyclic
buffer dependency).
"""

from collections import defaultdict
from dataclasses import dataclass

from fabrictune.netsim import _engine


@dataclass(frozen=True, kw_only=True)
class Deadlock:
    """Ports that are never resumed."""

    ring: tuple[int, ...]  # each waits for the next, and the last for the first
    ports: tuple[int, ...]  # of the ring, and those that wait for it
    held_bytes: int  # in the buffers behind them, for ports among them


def find_deadlock(simulation: _engine.Simulation, num_priorities: int = 1) -> Deadlock | None:
    """Return the deadlock of a simulation at this instant, if there is one.

    Where ports have several priorities, each of a port's queues waits for itself.
    """
    holds, waits = simulation.hold_columns(), simulation.waiting_columns()
    resume_below_bytes = {
        int(port): int(resume_below)
        for port, resume_below in zip(holds["port"], holds["resume_below_bytes"], strict=True)
    }
    bytes_for: dict[int, dict[int, int]] = defaultdict(dict)  # by the port that fills a buffer, then where to
    for filled_by, port, num_bytes in zip(waits["ingress"], waits["port"], waits["bytes"], strict=True):
        bytes_for[int(filled_by)][int(port)] = int(num_bytes)
    stuck = stuck_ports(resume_below_bytes, bytes_for)
    if not stuck:
        return None
    return Deadlock(
        ring=tuple(queue // num_priorities for queue in _ring(stuck, bytes_for)),
        ports=tuple(sorted({queue // num_priorities for queue in stuck})),
        held_bytes=sum(_bytes_for(stuck, bytes_for[port]) for port in stuck),
    )


def stuck_ports(resume_below_bytes: dict[int, int], bytes_for: dict[int, dict[int, int]]) -> set[int]:
    """Return which of the held ports, the keys of `resume_below_bytes`, are never resumed."""
    stuck = set(resume_below_bytes)
    while True:
        left = {port for port in stuck if _bytes_for(stuck, bytes_for[port]) > resume_below_bytes[port]}
        if left == stuck:
            return stuck
        stuck = left


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
