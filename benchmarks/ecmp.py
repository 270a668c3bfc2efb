"""Speed of ECMP analysis: hash functions, the full 175B job once and under 1,000 seeds, and the same through networkx.

The job is MegaScale's: 12,288 GPUs as tp 8, pp 8, dp 192 on its fabric, servers placed at random, so that nearly every
flow climbs. Each rank sends to its next of the data-parallel ring and to both neighbours of the pipeline: 36,864 queue
pairs. One run goes from nothing to the load of every link: fabric built, ranks placed, queue pairs numbered, all flows
hashed at every hop in both directions, collisions found. A seed of the thousand is paths of the data, loads, and
max-min fair rates.

The other way is what a day's script would do: `networkx.all_shortest_paths` for each flow, a CRC of its 5-tuple modulo
their number, a counter a link. It is given 1,024 GPUs in two tiers, where a pair has 32 paths, and 300 of their flows;
ours routes all of them on the same fabric. The ratio is of flows a second.

Run: `python -m benchmarks.run ecmp`
"""

import resource
import statistics
import time
import zlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.builders.megascale import MegascaleSpec
from fabrictune.topology.ecmp.collisions import analyze_collisions, find_collisions
from fabrictune.topology.ecmp.seed_study import measure_seeds
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HASHES, FiveTuples, HashSpec
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.path_tracing import PathTracer
from fabrictune.topology.placement import place
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.rank_pairs import neighbour_pairs
from fabrictune.topology.routing import build_network, data_headers

RUNS = 5
NUM_HASHED = 1_000_000
NUM_SEEDS = 1000
FULL_JOB = ParallelLayout(tp=8, pp=8, dp=192)
FULL_FLOWS = 36_864
SMALL_JOB = ParallelLayout(tp=8, pp=4, dp=32)
SMALL_CLOS = ClosSpec(num_hosts=128, hosts_per_tor_set=64, tiers=2)
NUM_FLOWS_NETWORKX = 300


def benchmarks() -> list[dict[str, Any]]:
    """Return the figures as rows of benchmarks/results.json; peaks of memory grow, so the smallest case comes first."""
    return [*_full_job(), *_hashes(), *_against_networkx()]


def _full_job() -> list[dict[str, Any]]:
    fabric = build_clos(MegascaleSpec())
    queue_pairs = _job(fabric, FULL_JOB)
    assert len(queue_pairs) == FULL_FLOWS, f"the job has changed: {len(queue_pairs)} queue pairs"
    once = [_seconds(_run_once) for _ in range(RUNS)]
    peak = _peak_mib()
    routes = PathTracer(fabric, queue_pairs.source_nic_Q, queue_pairs.destination_nic_Q)
    headers = data_headers(fabric, queue_pairs)
    seeds = iter(range(RUNS * 20))
    paths = [_seconds(lambda: routes.paths(headers, HashSpec(seed=next(seeds)))) for _ in range(RUNS * 20)]
    thousand = _seconds(lambda: measure_seeds(fabric, queue_pairs, HashSpec(), range(NUM_SEEDS)))
    return [
        _row("topology.ecmp-full-job.one-run", once, "s"),
        _row("topology.ecmp-full-job.peak-memory", [peak], "MiB"),
        _row("topology.ecmp-full-job.paths-of-a-seed", [1e3 * value for value in paths], "ms"),
        _row("topology.ecmp-full-job.1000-seeds", [thousand], "s"),
        _row("topology.ecmp-full-job.1000-seeds.peak-memory", [_peak_mib()], "MiB"),
    ]


def _run_once() -> None:
    fabric = build_clos(MegascaleSpec())
    report = analyze_collisions(build_network(fabric, _job(fabric, FULL_JOB), HashSpec()))
    assert len(report.overloaded_ports) > 0, "a random placement collides"


def _job(fabric: Fabric, layout: ParallelLayout) -> QueuePairs:
    placement, pairs = place(layout, fabric, "random"), neighbour_pairs(layout, ("dp", "pp"))
    return make_queue_pairs(placement.nic_R[pairs.source_E], placement.nic_R[pairs.destination_E])


def _hashes() -> list[dict[str, Any]]:
    generator = np.random.Generator(np.random.Philox(1))
    flows = FiveTuples(
        source_ipv4_F=generator.integers(0, 2**32, NUM_HASHED),
        destination_ipv4_F=generator.integers(0, 2**32, NUM_HASHED),
        source_port_F=generator.integers(0xC000, 2**16, NUM_HASHED),
    )
    seed_F = HashSpec().node_seeds(480)[generator.integers(0, 480, NUM_HASHED)]
    return [
        _row(
            f"topology.hash.{name}",
            [NUM_HASHED / 1e6 / _seconds(partial(function.hash_flows, flows, seed_F)) for _ in range(RUNS)],
            "M flows/s",
        )
        for name, function in HASHES.items()
    ]


def _against_networkx() -> list[dict[str, Any]]:
    fabric = build_clos(SMALL_CLOS)
    queue_pairs = _job(fabric, SMALL_JOB)
    ours = [len(queue_pairs) / _seconds(lambda: _loads(fabric, queue_pairs)) for _ in range(RUNS)]
    graph = nx.Graph(zip(fabric.port_node_P.tolist(), fabric.port_node_P[fabric.port_peer_P].tolist(), strict=True))
    theirs = NUM_FLOWS_NETWORKX / _seconds(lambda: _networkx_loads(graph, fabric, queue_pairs))
    return [
        _row("topology.ecmp-1024-gpus.ours", ours, "flows/s"),
        _row("topology.ecmp-1024-gpus.networkx", [theirs], "flows/s"),
        _row("topology.ecmp-1024-gpus.ratio", [value / theirs for value in ours], "times"),
    ]


def _loads(fabric: Fabric, queue_pairs: QueuePairs) -> None:
    routes = PathTracer(fabric, queue_pairs.source_nic_Q, queue_pairs.destination_nic_Q)
    find_collisions(fabric, queue_pairs, routes.paths(data_headers(fabric, queue_pairs), HashSpec(function="crc32")))


def _networkx_loads(graph: "nx.Graph[int]", fabric: Fabric, queue_pairs: QueuePairs) -> None:
    """Count the flows of every link; between hosts, since such a script knows no NICs."""
    host_C, wire_FB = fabric.nic_host_C.tolist(), data_headers(fabric, queue_pairs).wire_bytes()
    loads: Counter[tuple[int, int]] = Counter()
    step = len(queue_pairs) // NUM_FLOWS_NETWORKX
    for row in range(0, step * NUM_FLOWS_NETWORKX, step):
        source, destination = (
            host_C[nic_Q[row]] for nic_Q in (queue_pairs.source_nic_Q, queue_pairs.destination_nic_Q)
        )
        paths = list(nx.all_shortest_paths(graph, source, destination))
        path = paths[zlib.crc32(wire_FB[row].tobytes()) % len(paths)]
        loads.update(pairwise(path))
    assert loads, "flows leave their hosts"


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _row(name: str, values: list[float], unit: str) -> dict[str, Any]:
    spread = f"median of {len(values)}, {min(values):.3g} to {max(values):.3g}" if len(values) > 1 else "1 run"
    return {"name": name, "value": statistics.median(values), "unit": unit, "spread": spread}
