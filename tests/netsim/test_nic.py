"""Hosts that are slow to take and to answer what they receive. 100 Gb/s is 80 ps a byte; a cable takes 10 ns."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.nic import NicConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import PfcConfig

Simulate = Callable[..., RunRecord]

ONE_WAY_PS = 2 * (80_000 + 10_000)  # 1000 B
BACK_PS = 2 * (8_000 + 10_000)  # 100 B
TAKEN_PS = 160_000  # 1000 B at 50 Gb/s


def config(*, pfc: PfcConfig | None = None, **nic: Any) -> PacketConfig:
    """Return 1000 B packets and 100 B acknowledgements without overhead."""
    return PacketConfig(
        mtu_bytes=1000, wire_overhead_bytes=0, ack_bytes=100, pfc=pfc or PfcConfig(), nic=NicConfig(**nic)
    )


def test_a_host_takes_packets_one_after_another(simulate: Simulate) -> None:
    """At 50 Gb/s each takes 160 ns; the second is there 80 ns after the first, and waits for 80."""
    record = simulate([(0, 1)], [{"bytes": 1000}, {"bytes": 1000}], config(drain_rate_bps=50 * 10**9))
    assert record.tables["transfers"]["finish_ps"].tolist() == [ONE_WAY_PS + TAKEN_PS, ONE_WAY_PS + 2 * TAKEN_PS]


def test_a_round_trip_is_split_into_fabric_and_endpoint(simulate: Simulate) -> None:
    """Taken after 160 ns, answered 300 ns later: 460 of the 676 ns pass in the host."""
    slow = config(drain_rate_bps=50 * 10**9, endpoint_delay_ns=300)
    transfers = simulate([(0, 1)], [{"bytes": 1000}], slow).tables["transfers"]
    assert transfers["mean_endpoint_ps"].tolist() == [TAKEN_PS + 300_000]
    assert transfers["mean_rtt_ps"].tolist() == [ONE_WAY_PS + TAKEN_PS + 300_000 + BACK_PS]
    assert transfers["acknowledged_ps"].tolist() == transfers["mean_rtt_ps"].tolist()


def test_hosts_that_take_no_time_leave_no_columns(simulate: Simulate) -> None:
    """Nothing is summed up for them, and the fast engine runs."""
    assert "mean_rtt_ps" not in simulate([(0, 1)], [{"bytes": 1000}]).tables["transfers"]


def test_answers_keep_the_order_of_their_packets(simulate: Simulate) -> None:
    """A jitter of 50 packets' time never lets one overtake another, or go-back-N would send again."""
    jittery = config(endpoint_jitter_ns=4_000)
    transfers = simulate([(0, 1)], [{"bytes": 200_000}], jittery).tables["transfers"]
    assert transfers["packets_retransmitted"].tolist() == [0]
    assert 0 < transfers["mean_endpoint_ps"][0] < 4_000_000


def test_jitter_comes_from_the_seed(simulate: Simulate) -> None:
    """One stream a queue pair: the same seed repeats it, another does not."""

    def acknowledged_ps(seed: int) -> int:
        record = simulate([(0, 1)], [{"bytes": 1000}], config(endpoint_jitter_ns=1_000_000), seed=seed)
        return int(record.tables["transfers"]["acknowledged_ps"][0])

    assert acknowledged_ps(1) == acknowledged_ps(1)
    assert acknowledged_ps(1) != acknowledged_ps(2)


def test_a_full_nic_pauses_its_switch_and_then_its_sender(simulate: Simulate) -> None:
    """2 MB at 20 of 100 Gb/s do not fit into 40 kB in the NIC and 80 kB in the switch; nothing is lost."""
    small = config(
        pfc=PfcConfig(buffer_bytes=80_000), drain_rate_bps=20 * 10**9, receive_buffer_bytes=40_000, endpoint_delay_ns=0
    )
    record = simulate([(0, 1)], [{"bytes": 2_000_000}], small)
    assert record.tables["ports"]["dropped_packets"].sum() == 0
    assert np.count_nonzero(record.tables["ports"]["pauses"]) == 2
    assert record.tables["transfers"]["finish_ps"].tolist() == [ONE_WAY_PS + 2_000_000 * 400]


def test_one_slow_host_is_slow_alone(simulate: Simulate) -> None:
    """Host 1 takes 20 Gb/s, host 2 what comes: the second transfer ends as if no host were slow."""
    rows = [{"bytes": 100_000, "qp": 0}, {"bytes": 100_000, "qp": 1}]
    slow = config(drain_rate_bps=20 * 10**9, slow_hosts=("host1",))
    finish_ps = simulate([(0, 1), (3, 2)], rows, slow).tables["transfers"]["finish_ps"].tolist()
    assert finish_ps == [ONE_WAY_PS + 100_000 * 400, ONE_WAY_PS + 99_000 * 80]


def test_a_slow_host_must_be_there(simulate: Simulate) -> None:
    """The nearest name is said."""
    with pytest.raises(InputError, match=r"nic.slow_hosts: unknown node 'hots1'\n  did you mean 'host1'"):
        simulate([(0, 1)], [{"bytes": 1}], config(drain_rate_bps=10**9, slow_hosts=("hots1",)))


def test_without_pauses_a_full_nic_drops(simulate: Simulate) -> None:
    """Of 100 packets at five times the drain rate 40 kB hold 40 and 20 are taken meanwhile; the rest comes again."""
    lossy = config(pfc=PfcConfig(enabled=False), drain_rate_bps=20 * 10**9, receive_buffer_bytes=40_000)
    record = simulate([(0, 1)], [{"bytes": 100_000}], lossy)
    assert record.run["packets"]["data_dropped"] > 0
    assert record.run["outcome"] == "finished"


def test_a_nic_s_buffer_must_hold_its_headroom() -> None:
    """At 100 Gb/s the headroom alone is more than 5 kB."""
    from fabrictune.netsim.engine_inputs.ports import port_arrays
    from tests.netsim.conftest import one_switch

    with pytest.raises(InputError, match=r"nic: 5000 B of buffer"):
        port_arrays(one_switch(2), config(drain_rate_bps=10**9, receive_buffer_bytes=5_000))
