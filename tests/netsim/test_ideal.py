"""The ideal time is what the engine takes for a transfer that is alone."""

from collections.abc import Callable

import numpy as np
import pytest

from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.traces import Medium
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.ideal import IdealTimes
from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.fabric import Fabric
from tests.netsim.conftest import network_of, traffic_of

Simulate = Callable[..., RunRecord]

GBPS = 10**9


def line(rates_gbps: tuple[int, ...]) -> Fabric:
    """Return two hosts with switches between them, a link of each rate in turn and 10 ns each."""
    draft = FabricDraft("line")
    nodes = [
        draft.add_host("left"),
        *(draft.add_switch(f"switch{n}") for n in range(len(rates_gbps) - 1)),
        draft.add_host("right"),
    ]
    for number, rate_gbps in enumerate(rates_gbps):
        left, right = nodes[number : number + 2]
        ends = (left, "nic0" if number == 0 else "right"), (right, "nic0" if right == nodes[-1] else "left")
        draft.add_link(*ends, rate_bps=rate_gbps * GBPS, delay_ps=10_000)
    return draft.finish()


@pytest.mark.parametrize("rates_gbps", [(100, 100), (100, 40, 100), (40, 100, 300), (300, 100, 40), (100, 40, 70, 30)])
@pytest.mark.parametrize("num_bytes", [0, 1, 1000, 1001, 1999, 12_345])
def test_a_lone_transfer_takes_its_ideal_time(simulate: Simulate, rates_gbps: tuple[int, ...], num_bytes: int) -> None:
    """To the picosecond, wherever the bottleneck is and however short the last packet."""
    config = PacketConfig(mtu_bytes=1000)
    record = simulate([(0, 1)], [{"bytes": num_bytes}], config, fabric=line(rates_gbps))
    transfers = record.tables["transfers"]
    assert transfers["ideal_ps"].tolist() == transfers["finish_ps"].tolist()
    assert transfers["slowdown"].tolist() == [1.0]


def test_what_crosses_no_fabric_has_no_ideal_time() -> None:
    """NVLink is not among the links."""
    rows = [{"bytes": 1000, "medium": Medium.NVLINK, "source": 0, "destination": 1}, {"bytes": 1000}]
    traffic = traffic_of(rows)
    times = IdealTimes(network_of(line((100, 100)), [(0, 1)]), PacketConfig())
    ideal_ps = times.of(traffic.qp_N, traffic.bytes_N)
    assert ideal_ps[0] == -1
    assert ideal_ps[1] > 0


def test_two_that_meet_slow_each_other_down(simulate: Simulate) -> None:
    """Both have 8 MB for one host: each takes twice as long as alone, but for the latency."""
    record = simulate([(0, 2), (1, 2)], [{"bytes": 8_000_000, "qp": qp} for qp in range(2)])
    np.testing.assert_allclose(record.tables["transfers"]["slowdown"], 2.0, rtol=1e-3)


def test_what_never_finished_has_no_slowdown(simulate: Simulate) -> None:
    """It is not a number, in the table as in any mean over it."""
    record = simulate([(0, 1)], [{"bytes": 10**7}], PacketConfig(time_limit_ns=1_000))
    assert np.isnan(record.tables["transfers"]["slowdown"]).tolist() == [True]
