"""Timeline of faults: intervals in which faults hold ports, and the changes of ports that follow.

A fault has one interval; a flap has one for each time down. A port is down while any interval of that effect holds it,
so a link's own failure and that of its switch may overlap. Two faults of one kind that hold the same port at once
contradict one another, and are a mistake.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Self

import numpy as np

from fabrictune.foundation.errors import InputError, Mistake, quote
from fabrictune.foundation.units import PS_PER_NS, format_duration
from fabrictune.netsim.config.faults import BitErrors, Fault, Flap, LinkDown, SlowPort, SwitchDown
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.failures import failed_ports
from fabrictune.topology.lookup import find_node, find_port

END_OF_TIME_PS = 2**62

Ports = frozenset[int]


class Effect(IntEnum):
    """A change at a port, numbered as in netsim/engine/state/faults.hpp."""

    DOWN = 0  # value 1 while it is
    LOSS = 1  # value: share of packets lost
    BYTE_ERRORS = 2  # value: chance that a byte arrives whole
    RATE = 3  # value: bits a second


@dataclass(frozen=True, kw_only=True)
class FaultInterval:
    """An interval in which a fault holds ports; a permanent fault ends at END_OF_TIME_PS."""

    fault: int  # row in the list of faults
    effect: Effect
    begin_ps: int
    end_ps: int
    ports: Ports
    value: float = 1.0


@dataclass(frozen=True, kw_only=True)
class FaultTimeline:
    """The faults of a run and their intervals."""

    faults: tuple[Fault, ...] = ()
    intervals: tuple[FaultInterval, ...] = ()

    @classmethod
    def of(cls, fabric: Fabric, faults: Sequence[Fault], config: PacketConfig) -> Self:
        """Return the timeline of faults on a fabric; raises InputError as `fault_intervals` does."""
        return cls(faults=tuple(faults), intervals=fault_intervals(fabric, faults, config))


NO_FAULTS = FaultTimeline()


@dataclass(frozen=True, kw_only=True)
class Change:
    """A port's new value, from an instant on."""

    time_ps: int
    effect: Effect
    port: int
    value: float


def fault_intervals(fabric: Fabric, faults: Sequence[Fault], config: PacketConfig) -> tuple[FaultInterval, ...]:
    """Return the intervals of all faults in their order.

    Raises InputError, `faults.2.link` the place of each mistake, for names that are none, for faults that contradict
    one another, and for those that begin when the run has reached its time limit.
    """
    intervals: list[FaultInterval] = []
    mistakes: list[Mistake] = []
    for row, fault in enumerate(faults):
        try:
            _check(fabric, fault, row, config)
            intervals.extend(_intervals_of(fabric, fault, row))
        except InputError as error:
            mistakes.extend(error.mistakes)
    if not mistakes:
        mistakes.extend(_contradictions(fabric, faults, intervals))
    if mistakes:
        raise InputError(*mistakes)
    return tuple(intervals)


def changes(fabric: Fabric, faults: Sequence[FaultInterval]) -> list[Change]:
    """Return every change of a port's value in the order of time, effect and port."""
    values: dict[tuple[int, Effect, int], float] = {}
    holders: dict[int, int] = defaultdict(int)  # intervals that hold a port down
    for time_ps, is_begin, interval in _turns(faults):
        for port in sorted(interval.ports):
            value = interval.value if is_begin else _healthy(fabric, interval.effect, port)
            if interval.effect == Effect.DOWN:
                holders[port] += 1 if is_begin else -1
                value = float(holders[port] > 0)
            values[time_ps, interval.effect, port] = value
    last: dict[tuple[Effect, int], float] = {}
    rows = []
    for (time_ps, effect, port), value in sorted(values.items()):
        if value != last.get((effect, port), _healthy(fabric, effect, port)):
            rows.append(Change(time_ps=time_ps, effect=effect, port=port, value=value))
        last[effect, port] = value
    return rows


def down_ports(found: Sequence[Change]) -> Iterator[tuple[int, Ports]]:
    """Yield every instant at which ports go down or come up, and all that are down from then on."""
    down: set[int] = set()
    by_time: dict[int, list[Change]] = defaultdict(list)
    for change in found:
        if change.effect == Effect.DOWN:
            by_time[change.time_ps].append(change)
    for time_ps, together in by_time.items():
        for change in together:
            (down.add if change.value else down.discard)(change.port)
        yield time_ps, frozenset(down)


def _turns(faults: Sequence[FaultInterval]) -> list[tuple[int, bool, FaultInterval]]:
    """Return the begins and ends of intervals in the order of time; at one instant, ends come first."""
    ends = [(interval.end_ps, False, interval) for interval in faults if interval.end_ps < END_OF_TIME_PS]
    begins = [(interval.begin_ps, True, interval) for interval in faults]
    return sorted(ends + begins, key=lambda turn: turn[:2])


def _healthy(fabric: Fabric, effect: Effect, port: int) -> float:
    """Return a port's value without any fault."""
    if effect == Effect.RATE:
        return float(fabric.port_rate_bps_P[port])
    return 1.0 if effect == Effect.BYTE_ERRORS else 0.0


def _check(fabric: Fabric, fault: Fault, row: int, config: PacketConfig) -> None:
    limit_ns = config.time_limit_ns
    if limit_ns is not None and fault.at_ns >= limit_ns:
        raise InputError(
            Mistake(
                where=f"faults.{row}.at",
                found=format_duration(fault.at_ns * PS_PER_NS),
                allowed=f"before the run's time limit, {format_duration(limit_ns * PS_PER_NS)}",
            )
        )
    if isinstance(fault, SwitchDown):
        node = find_node(fabric, fault.switch, where=f"faults.{row}.switch")
        if fabric.node_kind_N[node] != NodeKind.SWITCH:
            where = f"faults.{row}.switch"
            raise InputError(Mistake(where=where, found=f"the host {quote(fault.switch)}", allowed="a switch"))


def _intervals_of(fabric: Fabric, fault: Fault, row: int) -> Iterator[FaultInterval]:
    ports = _ports_of(fabric, fault, row)
    if isinstance(fault, Flap):
        period_ns = fault.period_ns or 0
        for turn in range(fault.count):
            begin_ps = (fault.at_ns + turn * period_ns) * PS_PER_NS
            end_ps = begin_ps + fault.down_ns * PS_PER_NS
            yield FaultInterval(fault=row, effect=Effect.DOWN, begin_ps=begin_ps, end_ps=end_ps, ports=ports)
        return
    effect, value = _effect_of(fabric, fault, row, ports)
    end_ps = END_OF_TIME_PS if fault.until_ns is None else fault.until_ns * PS_PER_NS
    yield FaultInterval(
        fault=row, effect=effect, begin_ps=fault.at_ns * PS_PER_NS, end_ps=end_ps, ports=ports, value=value
    )


def _effect_of(
    fabric: Fabric, fault: LinkDown | SwitchDown | BitErrors | SlowPort, row: int, ports: Ports
) -> tuple[Effect, float]:
    if isinstance(fault, SlowPort):
        (port,) = ports
        rate_bps = int(fabric.port_rate_bps_P[port])
        if fault.rate_bps >= rate_bps:
            found, allowed = f"{fault.rate_bps} bps", f"below the port's own {rate_bps} bps"
            raise InputError(Mistake(where=f"faults.{row}.rate", found=found, allowed=allowed))
        return Effect.RATE, float(fault.rate_bps)
    if isinstance(fault, BitErrors):
        if fault.loss_fraction is not None:
            return Effect.LOSS, fault.loss_fraction
        assert fault.ber_fraction is not None, "checked when it was made"
        return Effect.BYTE_ERRORS, _byte_arrives(fault.ber_fraction)
    return Effect.DOWN, 1.0


def _byte_arrives(ber: float) -> float:
    """Return the chance of eight good bits, by products alone, which are the same on every machine."""
    two_bits = (1 - ber) * (1 - ber)
    four_bits = two_bits * two_bits
    return four_bits * four_bits


def _ports_of(fabric: Fabric, fault: Fault, row: int) -> Ports:
    if isinstance(fault, SlowPort):
        return frozenset([find_port(fabric, fault.port, where=f"faults.{row}.port")])
    if isinstance(fault, SwitchDown):
        is_held_P = failed_ports(fabric, [fault.switch], where=f"faults.{row}.switch")
        return frozenset(np.nonzero(is_held_P)[0].tolist())
    port = find_port(fabric, fault.link, where=f"faults.{row}.link")
    return frozenset([port, int(fabric.port_peer_P[port])])


def _contradictions(fabric: Fabric, faults: Sequence[Fault], found: Sequence[FaultInterval]) -> Iterator[Mistake]:
    """Yield a mistake for each fault that holds a port already held by another of its kind."""
    of_port: dict[tuple[str, int], list[FaultInterval]] = defaultdict(list)
    for interval in found:
        for port in interval.ports:
            of_port[_kind(faults[interval.fault]), port].append(interval)
    seen = set()
    for (_, port), intervals in of_port.items():
        intervals.sort(key=lambda interval: (interval.begin_ps, interval.fault))
        for before, after in pairwise(intervals):
            pair = before.fault, after.fault
            if after.begin_ps >= before.end_ps or before.fault == after.fault or pair in seen:
                continue
            seen.add(pair)
            yield Mistake(
                where=f"faults.{after.fault}",
                found=(
                    f"holds {fabric.link_label(port)} at {format_duration(after.begin_ps)},"
                    f" as faults[{before.fault}] does"
                ),
                allowed="one fault of a kind on a port at a time",
                next_step="end the one before the other begins, or join the two",
            )


def _kind(fault: Fault) -> str:
    return "link" if isinstance(fault, LinkDown | Flap) else type(fault).__name__
