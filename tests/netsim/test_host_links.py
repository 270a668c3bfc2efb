"""PCIe between NICs and memory; 100 Gb/s is 80 ps a byte, a cable takes 10 ns, and packets have 1000 B of payload."""

from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.host import HostConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.engine_inputs.host_links import host_links
from fabrictune.netsim.engine_inputs.limits import PATH_END
from fabrictune.netsim.packet import run
from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.fabric import Fabric
from tests.netsim.conftest import compiled, network_of, traffic_of

FRAME_PS, CABLE_PS = 80_000, 10_000


def two_nics_each(num_hosts: int = 3) -> Fabric:
    """Return hosts of two NICs under one switch: NICs 0 and 1 are those of the first."""
    draft = FabricDraft("hosts")
    switch = draft.add_switch("tor")
    for number in range(num_hosts):
        host = draft.add_host(f"host{number}")
        for nic in ("nic0", "nic1"):
            draft.add_link((host, nic), (switch, f"host{number}-{nic}"), rate_bps=10**11, delay_ps=CABLE_PS)
    return draft.finish()


def simulate(pairs: list[tuple[int, int]], num_bytes: int, **host: Any) -> RunRecord:
    """Return a run of one message a queue pair, with no headers on the wire."""
    config = PacketConfig(mtu_bytes=1000, wire_overhead_bytes=0, ack_bytes=100, host=HostConfig(**host))
    rows = [{"bytes": num_bytes, "qp": pair} for pair in range(len(pairs))]
    return run(network_of(two_nics_each(), pairs), traffic_of(rows), compiled("none"), config)


def times_ps(**host: Any) -> tuple[int, int]:
    """Return how long 1000 B take from memory, and into it."""
    links = HostConfig(**host)
    return -(-8 * 10**15 // links.read_rate_bps), -(-8 * 10**15 // links.write_rate_bps)


def test_rates_are_those_after_encoding_and_headers() -> None:
    """Gen5 x16 is 504 Gb/s: 256 B of payload have 20 B of headers as a completion, 24 B as a write."""
    assert HostConfig(pcie_generation=5).read_rate_bps == pytest.approx(504.1e9 * 256 / 276, rel=1e-4)
    assert HostConfig(pcie_generation=5).write_rate_bps == pytest.approx(504.1e9 * 256 / 280, rel=1e-4)
    assert HostConfig(pcie_generation=6).write_rate_bps == pytest.approx(944e9 * 256 / 280, rel=1e-4)


def test_a_faster_link_delays_nothing_but_the_last_write() -> None:
    """Frames leave as their bytes come; the last packet is in memory when it has been written."""
    _, write_ps = times_ps(pcie_generation=5)
    finish = simulate([(0, 2)], 10_000, pcie_generation=5).tables["transfers"]["finish_ps"]
    assert finish.tolist() == [11 * FRAME_PS + 2 * CABLE_PS + write_ps]


def test_a_slower_link_is_the_rate_of_its_nic() -> None:
    """Gen4 x4 carries 58 Gb/s: writes take a little longer than reads, so ten of them follow the first packet."""
    read_ps, write_ps = times_ps(pcie_generation=4, pcie_lanes=4)
    assert FRAME_PS < read_ps < write_ps
    finish = simulate([(0, 2)], 10_000, pcie_generation=4, pcie_lanes=4).tables["transfers"]["finish_ps"]
    assert finish.tolist() == [read_ps + CABLE_PS + FRAME_PS + CABLE_PS + 10 * write_ps]


def test_a_message_without_bytes_takes_none_of_a_link_s_time() -> None:
    """Its headers come while the GPU's other NIC writes 1000 B for a microsecond: it is there when these are."""
    slow: dict[str, Any] = {"pcie_generation": 3, "pcie_lanes": 1}
    config = PacketConfig(mtu_bytes=1000, wire_overhead_bytes=100, host=HostConfig(**slow, nics_per_gpu=2))
    rows = [{"bytes": 0, "qp": 0, "start_ps": 1_500_000}, {"bytes": 1000, "qp": 1}]
    record = run(network_of(two_nics_each(), [(0, 4), (2, 5)]), traffic_of(rows), compiled("none"), config)
    read_ps, write_ps = times_ps(**slow)
    written_ps = read_ps + CABLE_PS + 1100 * 80 + CABLE_PS + write_ps
    assert record.tables["transfers"]["finish_ps"][0] == written_ps > 1_500_000


@pytest.mark.parametrize(
    ("sharing", "num_reads"),
    [
        ({"nics_per_gpu": 1}, 0),
        ({"nics_per_gpu": 2}, 20),
        ({"memory": "cpu", "nics_per_switch": 1}, 0),
        ({"memory": "cpu", "nics_per_switch": 2}, 20),
    ],
)
def test_nics_share_the_link_behind_their_switch(sharing: dict[str, Any], num_reads: int) -> None:
    """Two NICs of 100 Gb/s and a link of 117: alone each sends at line rate, together their 20 packets take turns."""
    read_ps, write_ps = times_ps(pcie_generation=3)
    assert FRAME_PS / 2 < read_ps < FRAME_PS
    record = simulate([(0, 2), (1, 4)], 10_000, pcie_generation=3, **sharing)
    sent_ps = num_reads * read_ps if num_reads else 10 * FRAME_PS
    finish = record.tables["transfers"]["finish_ps"]
    assert finish.max() == sent_ps + CABLE_PS + FRAME_PS + CABLE_PS + write_ps
    assert finish.max() - finish.min() == (read_ps if num_reads else 0), "they take turns"


def test_a_host_that_writes_slowly_pauses_its_switch() -> None:
    """Two senders at line rate into two NICs of one GPU: 117 Gb/s of 200 go in, and what is too much waits outside."""
    record = simulate([(0, 4), (2, 5)], 3_000_000, pcie_generation=3, nics_per_gpu=2)
    assert record.tables["ports"]["pauses"].sum() > 0
    assert record.tables["ports"]["dropped_packets"].sum() == 0
    _, write_ps = times_ps(pcie_generation=3)
    assert record.tables["transfers"]["finish_ps"].max() == pytest.approx(6_000 * write_ps, rel=0.01)


def test_the_two_ports_of_a_nic_have_its_link() -> None:
    """NICs are numbered first, then what they share; ports of switches have none."""
    links = host_links(two_nics_each(2), HostConfig(pcie_generation=4, nics_per_gpu=2))
    link_P2 = links["host_link"].reshape(-1, 2)
    is_host_P = two_nics_each(2).port_nic_P >= 0
    assert link_P2[is_host_P].tolist() == [[0, 4], [1, 4], [2, 5], [3, 5]]
    assert (link_P2[~is_host_P] == PATH_END).all()
    assert len(links["host_link_read_rate"]) == 6


def test_a_link_that_limits_nothing_leaves_no_arrays() -> None:
    """So that runs without it are what they were."""
    assert all(len(np.atleast_1d(column)) == 0 for column in host_links(two_nics_each(), HostConfig()).values())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pcie_generation": 2}, "host.pcie_generation: 2\n  allowed: one of 3, 4, 5, 6"),
        ({"pcie_lanes": 12}, "host.pcie_lanes: 12\n  allowed: one of 1, 2, 4, 8, 16"),
        ({"max_payload_bytes": 64}, "host.max_payload: 64 B\n  allowed: 128 to 4096 B"),
        ({"nics_per_gpu": 0}, "host.nics_per_gpu: 0\n  allowed: 1 to 64"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, int], message: str) -> None:
    """With the keys of a scenario."""
    with pytest.raises(InputError) as caught:
        HostConfig(**settings)  # type: ignore[arg-type]
    assert str(caught.value) == message
