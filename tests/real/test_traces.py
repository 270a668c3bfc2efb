"""Public communication traces: counted as their sources say, and run in the packet engine."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabrictune.cc.compiler import compile_law
from fabrictune.cc.laws import load_law
from fabrictune.collectives.expansion import ExpansionSpec, expand
from fabrictune.collectives.traces.builder import TraceRow, build_trace
from fabrictune.collectives.traces.formats import read_trace
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.traces import CommTrace, Operation
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.packet import run
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.placement import place
from fabrictune.topology.routing import build_network

pytestmark = pytest.mark.real


def bytes_by_operation(trace: CommTrace, rank: int) -> dict[str, int]:
    """Return what one rank asks for."""
    rows = trace.rank_N == rank
    return {
        Operation(one).name: int(trace.bytes_N[rows & (trace.operation_N == one)].sum())
        for one in np.unique(trace.operation_N[rows])
    }


def simulate(trace: CommTrace) -> RunRecord:
    """Run a trace on hosts of one GPU under one switch."""
    num_ranks = int(trace.rank_N.max()) + 1
    fabric = build_clos(ClosSpec(num_hosts=num_ranks, hosts_per_tor_set=num_ranks, nics_per_host=1, tiers=2))
    placement = place(ParallelLayout(dp=num_ranks), fabric, "contiguous", gpus_per_host=1)
    queue_pairs, traffic = expand(trace, placement, fabric, ExpansionSpec())
    network = build_network(fabric, queue_pairs, HashSpec())
    return run(network, traffic, compile_law(load_law("none")), PacketConfig())


def test_a_profile_of_pytorch_runs(real_data: Path) -> None:
    """15 all-reduces and 6 broadcasts of rank 0, 46.876493 ms of kernels; 76,830,615 elements, 159 of them longs."""
    trace = read_trace([real_data / "trace" / "nccl_data.json.gz"])
    rank_0 = trace.rank_N == 0
    assert np.bincount(trace.operation_N[rank_0]).tolist() == [15, 0, 0, 6]
    assert trace.bytes_N[rank_0].sum() == 76_830_615 * 4 + 159 * 4
    assert (trace.complete_ps_N - trace.issue_ps_N)[rank_0].sum() == 46_876_493_000
    record = simulate(trace)
    assert record.run["outcome"] == "finished"
    work_ps = trace.compute_before_ps_N[rank_0].sum()
    assert record.run["end_ps"] > work_ps, "the gaps between kernels, and what they communicate"


def test_a_chakra_ring_runs_once_its_ranks_are_there(real_data: Path) -> None:
    """Rank 0 of a ring of eight, 3,670,016 B in 28 messages; the others do the same one place further on."""
    rank_0 = read_trace([real_data / "trace" / "custom_allreduce.0.et"])
    assert (len(rank_0), int(rank_0.bytes_N.sum())) == (28, 3_670_016)
    everyone = tuple(range(8))
    requests: list[TraceRow] = []
    for rank in everyone:
        first = len(requests)
        requests += [
            TraceRow(
                rank=rank,
                operation=Operation(rank_0.operation_N[row]),
                group=everyone,
                num_bytes=int(rank_0.bytes_N[row]),
                peer=(int(rank_0.peer_N[row]) + rank) % 8,
                compute_before_ps=int(rank_0.compute_before_ps_N[row]),
                waits=tuple(first + one for one in rank_0.dependencies.of(row).tolist()),
            )
            for row in range(len(rank_0))
        ]
    record = simulate(build_trace(requests))
    assert record.run["outcome"] == "finished"
    assert record.tables["transfers"]["bytes"].sum() == 8 * 3_670_016 // 2, "each message is sent once"


def test_a_workload_of_simai_has_its_bytes(real_data: Path) -> None:
    """Sums a rank, as SimAI's own reader gives them; suffixes name the group and not the operation."""
    trace = read_trace([real_data / "trace" / "workload_analytical.txt"], num_ranks=32)
    assert bytes_by_operation(trace, 0) == {
        "ALL_REDUCE": 1_258_340_368,
        "REDUCE_SCATTER": 92_588_605_440 + 38_654_705_664,
        "ALL_GATHER": 101_256_462_336 + 19_327_352_832,
        "ALL_TO_ALL": 19_327_352_832 + 77_309_411_328,
    }
    small = replace(trace, bytes_N=-(-trace.bytes_N // 10**7))
    assert simulate(small).run["outcome"] == "finished"
