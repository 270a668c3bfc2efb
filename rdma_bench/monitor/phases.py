"""Transfer phases as a NIC sees them: times in which it sends or receives much, against what its link carries.

A phase is a row of samples in each of which a tenth of the link's rate is carried; a pause of a few samples does not
end it. Its ends are known to one sample each, so that its rate is that or more: the shorter the interval, the better.

Source: MegaScale (NSDI'24), 4.3 (data of each phase of data and pipeline parallelism, against the physical limit).

Shapes: K samples, C counters.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.rdma_bench.counters.catalog import CounterClass
from fabrictune.rdma_bench.monitor.sources import CounterFile

BUSY_FRACTION = 0.1  # of the link's rate
MAX_PAUSE = 2  # samples
DIRECTIONS = {"sent": CounterClass.BYTES_SENT, "received": CounterClass.BYTES_RECEIVED}
SIGNALS = {
    "ecn_marked": (CounterClass.ECN_MARKED,),
    "cnps": (CounterClass.CNP_SENT, CounterClass.CNP_HANDLED),
    "pauses": (CounterClass.PAUSE_RECEIVED, CounterClass.PAUSE_SENT),
    "out_of_sequence": (CounterClass.SEQUENCE_ERROR,),
}
_RATE = re.compile(r"(\d+(?:\.\d+)?) Gb/sec")


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One phase of a device in one direction."""

    device: str
    direction: str
    begin_s: float  # by the monitor's clock
    duration_s: float
    num_samples: int
    num_bytes: int
    rate_bps: float
    share_fraction: float  # of the link's rate
    signals: Mapping[str, int]  # rises of SIGNALS in it


def link_rates(settings: Mapping[tuple[str, str], str]) -> dict[str, int]:
    """Return the rate in bits per second of each device whose settings say it."""
    rates = {}
    for (device, name), value in settings.items():
        if name == "speed" and value.isdecimal() and 0 < int(value) < 2**31:
            rates[device] = int(value) * 1_000_000
        elif name == "rate" and (match := _RATE.match(value)):
            rates[device] = round(float(match[1]) * 1e9)
    return {device: rate for device, rate in rates.items() if rate > 0}


def find_phases(
    counters: Sequence[CounterFile], time_K: FloatArray, rise_KC: IntArray, rates_bps: Mapping[str, int]
) -> list[Phase]:
    """Return the phases of the devices whose rate is known, in order of time; rises are those since the time before."""
    phases: list[Phase] = []
    for direction, counter_class in DIRECTIONS.items():
        for device, column in _first_of(counters, counter_class).items():
            if device in rates_bps:
                phases += _phases(counters, device, direction, column, time_K, rise_KC, rates_bps[device])
    return sorted(phases, key=lambda phase: (phase.begin_s, phase.device, phase.direction))


def device_rises(counters: Sequence[CounterFile], device: str, rise_C: IntArray) -> dict[str, int]:
    """Return the rises of a device's SIGNALS."""
    return {
        name: sum(
            int(rise)
            for counter, rise in zip(counters, rise_C.tolist(), strict=True)
            if counter.device == device and counter.meaning.counter_class in classes
        )
        for name, classes in SIGNALS.items()
    }


def _first_of(counters: Sequence[CounterFile], counter_class: CounterClass) -> dict[str, int]:
    """Return the place of each device's first counter of a class: others count the same bytes again."""
    places: dict[str, int] = {}
    for place, counter in enumerate(counters):
        if counter.meaning.counter_class == counter_class:
            places.setdefault(counter.device, place)
    return places


def _phases(
    counters: Sequence[CounterFile],
    device: str,
    direction: str,
    column: int,
    time_K: FloatArray,
    rise_KC: IntArray,
    rate_bps: int,
) -> Iterator[Phase]:
    step_K = np.maximum(np.diff(time_K), 1e-9)
    is_busy_K = 8 * rise_KC[:, column] / step_K >= BUSY_FRACTION * rate_bps
    for first, last in _runs(is_busy_K):
        duration_s = float(time_K[last + 1] - time_K[first])
        num_bytes = int(rise_KC[first : last + 1, column].sum())
        carried_bps = 8 * num_bytes / duration_s
        yield Phase(
            device=device,
            direction=direction,
            begin_s=float(time_K[first]),
            duration_s=duration_s,
            num_samples=last + 1 - first,
            num_bytes=num_bytes,
            rate_bps=carried_bps,
            share_fraction=carried_bps / rate_bps,
            signals=device_rises(counters, device, rise_KC[first : last + 1].sum(axis=0)),
        )


def _runs(is_busy_K: BoolArray) -> Iterator[tuple[int, int]]:
    """Yield the first and last of busy samples between which no more than MAX_PAUSE are idle."""
    busy = np.flatnonzero(is_busy_K)
    if len(busy):
        ends = np.flatnonzero(np.diff(busy) > MAX_PAUSE + 1)
        yield from zip(
            busy[np.concatenate([[0], ends + 1])].tolist(), busy[np.append(ends, len(busy) - 1)].tolist(), strict=True
        )
