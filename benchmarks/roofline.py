"""What the packet engine's speed is made of, and what memory would allow; what its full form and probes cost.

The runs are those of `packet_engine`. Counts are exact; times are processor time, medians of interleaved runs, so that
a busy machine slows all of them alike. The clock is that of a chain of multiplications and additions, four cycles each
on any x86-64 of the last ten years. Bandwidth is what NumPy copies of arrays far beyond the caches; latency is a walk
through as many bytes as the run keeps alive, each step of which must wait for the one before.

Run: `python -m benchmarks.run roofline`
"""

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numba import njit

from benchmarks.packet_engine import CASES, CONFIG, LAW_SETTINGS, SEED, pinned_case, run_to_the_end
from fabrictune.cc.compiler import compile_law
from fabrictune.cc.interface import CompiledLaw
from fabrictune.cc.laws import load_law
from fabrictune.foundation.arrays import IntArray
from fabrictune.netsim import _engine
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.engine_inputs.inputs import EngineInputs, make_engine_inputs

RUNS = 7
COPY_BYTES = 2**28
CHAIN_STEPS = 200_000_000
CYCLES_PER_STEP = 4  # 3 of the multiplication, 1 of the addition
WALK_STEPS = 5_000_000
LINE_BYTES = 64
WHEEL_BYTES = 2**13 * LINE_BYTES

# What the engine asks memory for at a switch: the key of the event twice (pushed, taken), the packet, an entry of its
# path, the port it leaves through, and the port whose buffer it leaves.
BYTES_PER_SWITCH_HOP = 2 * 8 + 32 + 4 + LINE_BYTES + LINE_BYTES

PROBES: Mapping[str, ProbeConfig | None] = {
    "plain": None,
    "probes-32-ports-1us": ProbeConfig(interval_ns=1_000),
    "probes-everything-10us": ProbeConfig(interval_ns=10_000, ports="all", all_flows=True),
}


def benchmarks() -> list[dict[str, Any]]:
    """Return the figures as rows of benchmarks/results.json."""
    law = compile_law(load_law("dcqcn"), LAW_SETTINGS)
    clock_hz, copied_bytes_per_s = _clock_hz(), _copied_bytes_per_s()
    rows = [
        ("clock", clock_hz / 1e9, "GHz", f"best of {RUNS}"),
        ("memory-bandwidth", copied_bytes_per_s / 1e9, "GB/s", f"read and written, best of {RUNS}"),
    ]
    for name in CASES:
        rows += _case(name, law, clock_hz, copied_bytes_per_s)
    return [
        {"name": f"netsim.roofline.{what}", "value": value, "unit": unit, "spread": spread}
        for what, value, unit, spread in rows
    ]


def _case(name: str, law: CompiledLaw, clock_hz: float, copied_bytes_per_s: float) -> list[tuple[str, float, str, str]]:
    network, traffic, num_hops = pinned_case(name)
    variants = {
        what: make_engine_inputs(network, traffic, law, CONFIG, seed=SEED, probe=probe)
        for what, probe in PROBES.items()
    }
    plain = variants["plain"]
    variants["full"] = replace(plain, settings={**plain.settings, "force_full": True})
    seconds = _interleaved(variants, law)
    _, simulation = run_to_the_end(plain, law)
    num_events, median_s = simulation.num_events, statistics.median(seconds["plain"])
    arrivals = int(simulation.port_columns()["tx_packets"].sum())
    working_set_bytes = _working_set_bytes(plain, simulation)
    latency_s = _load_latency_s(working_set_bytes)
    memory_s = BYTES_PER_SWITCH_HOP / copied_bytes_per_s
    exact, of_runs = "exact", f"{RUNS} runs"
    rows = [
        ("packet-hops", num_hops / median_s, "hops/s per core", _spread(num_hops, seconds["plain"])),
        (
            "full-packet-hops",
            num_hops / statistics.median(seconds["full"]),
            "hops/s",
            _spread(num_hops, seconds["full"]),
        ),
        ("events-per-hop", num_events / num_hops, "events", exact),
        ("arrivals-per-hop", arrivals / num_hops, "events", exact),
        ("time-per-event", median_s / num_events * 1e9, "ns", of_runs),
        ("cycles-per-event", median_s / num_events * clock_hz, "cycles", of_runs),
        ("bytes-per-switch-hop", BYTES_PER_SWITCH_HOP, "B", "asked for, from the layout"),
        ("working-set", working_set_bytes / 2**10, "KiB", exact),
        ("load-latency", latency_s * 1e9, "ns", "a dependent load in the working set"),
        ("time-at-full-bandwidth", memory_s * 1e9, "ns per hop", "its bytes at the bandwidth above"),
        ("share-of-bandwidth", memory_s * num_hops / median_s, "of 1", of_runs),
    ]
    for what in PROBES:
        if what != "plain":
            ratios = [slow / fast for slow, fast in zip(seconds[what], seconds["plain"], strict=True)]
            shown = f"{min(ratios) - 1:+.1%} to {max(ratios) - 1:+.1%} over {RUNS} pairs"
            rows.append((f"{what}-cost", (statistics.median(ratios) - 1) * 100, "%", shown))
    return [(f"{name}.{what}", value, unit, spread) for what, value, unit, spread in rows]


def _interleaved(variants: Mapping[str, EngineInputs], law: CompiledLaw) -> dict[str, list[float]]:
    """Return the processor times of each variant, one run of each in turn."""
    seconds: dict[str, list[float]] = {what: [] for what in variants}
    for _ in range(RUNS):
        for what, inputs in variants.items():
            seconds[what].append(run_to_the_end(inputs, law)[0])
    return seconds


def _working_set_bytes(inputs: EngineInputs, simulation: _engine.Simulation) -> int:
    """Return what a run keeps alive at once: ports, both ends of queue pairs, paths, the wheel and the most packets."""
    return (
        len(inputs["port_rate_bps"]) * _engine.BYTES_PER_PORT
        + len(inputs["flow"]) * (_engine.BYTES_PER_QUEUE_PAIR + inputs["flow"].dtype.itemsize)
        + inputs["path"].nbytes
        + WHEEL_BYTES
        + simulation.peak_packets * _engine.BYTES_PER_PACKET
    )


def _clock_hz() -> float:
    @njit
    def chain(value: int, steps: int) -> int:
        for _ in range(steps):
            value = value * 6364136223846793005 + 1442695040888963407
        return value

    return CYCLES_PER_STEP * CHAIN_STEPS / _best_s(chain, np.uint64(1), CHAIN_STEPS)


def _copied_bytes_per_s() -> float:
    source, target = np.ones(COPY_BYTES, np.uint8), np.zeros(COPY_BYTES, np.uint8)
    return 2 * COPY_BYTES / _best_s(np.copyto, target, source)


def _load_latency_s(num_bytes: int) -> float:
    """Return the time of one step of a walk that visits every cache line of `num_bytes` in random order."""

    @njit
    def walk(following: IntArray, steps: int) -> int:
        place = 0
        for _ in range(steps):
            place = following[place]
        return place

    words_per_line = LINE_BYTES // 8
    order = np.random.default_rng(SEED).permutation(max(2, num_bytes // LINE_BYTES)) * words_per_line
    following = np.zeros(len(order) * words_per_line, np.int64)
    following[order] = np.roll(order, -1)
    return _best_s(walk, following, WALK_STEPS) / WALK_STEPS


def _best_s(function: Any, *arguments: Any) -> float:
    """Return the least processor time of several calls after a first one, which compiles."""
    function(*arguments)
    return min(_seconds(function, arguments) for _ in range(RUNS))


def _seconds(function: Any, arguments: Sequence[Any]) -> float:
    started = time.process_time()
    function(*arguments)
    return time.process_time() - started


def _spread(num_hops: int, seconds: Sequence[float]) -> str:
    return f"{num_hops / max(seconds) / 1e6:.1f} to {num_hops / min(seconds) / 1e6:.1f} M over {RUNS} runs"
