"""Messages for which no receive is posted are refused and come again. 100 Gb/s is 80 ps a byte; a cable takes 10 ns."""

from collections.abc import Callable
from typing import Literal

import pytest

from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.transport import RnrConfig, TransportConfig

Simulate = Callable[..., RunRecord]
Reliability = Literal["go-back-n", "selective-repeat"]

ONE_WAY_PS = 2 * (80_000 + 10_000)  # 1000 B
REFUSAL_PS = 2 * (8_000 + 10_000)  # 100 B
FRAME_PS = 80_000
WAIT_PS = 10_000_000  # timer code 1


def config(reliability: Reliability = "go-back-n", **rnr: int) -> PacketConfig:
    """Return 1000 B packets without overhead and a receive at a time."""
    return PacketConfig(
        mtu_bytes=1000,
        wire_overhead_bytes=0,
        ack_bytes=100,
        transport=TransportConfig(reliability=reliability, rnr=RnrConfig(receives=1, timer_code=1, **rnr)),
    )


@pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
def test_a_message_without_a_receive_comes_again_after_the_timer(simulate: Simulate, reliability: Reliability) -> None:
    """The second arrives 80 ns after the first, its refusal 36 ns later; it goes again 10 us after that."""
    record = simulate([(0, 1)], [{"bytes": 1000}, {"bytes": 1000}], config(reliability, replenish_ns=1_000))
    second_ps = ONE_WAY_PS + FRAME_PS + REFUSAL_PS + WAIT_PS + ONE_WAY_PS
    assert record.tables["transfers"]["finish_ps"].tolist() == [ONE_WAY_PS, second_ps]
    assert record.tables["transfers"]["packets_retransmitted"].tolist() == [0, 1]
    assert record.run["packets"]["data_refused"] == 1


def test_what_follows_a_refused_packet_is_no_gap(simulate: Simulate) -> None:
    """Three packets of the second message find no receive: one refusal, no negative acknowledgement, all sent again."""
    record = simulate([(0, 1)], [{"bytes": 1000}, {"bytes": 3000}], config(replenish_ns=1_000))
    assert record.run["packets"]["data_refused"] == 1
    assert record.tables["transfers"]["packets_retransmitted"].tolist() == [0, 3]


def test_a_receive_posted_in_time_costs_nothing(simulate: Simulate) -> None:
    """The next message begins to arrive 80 ns after the one before; an application that takes 79 ns keeps up."""
    rows = [{"bytes": 1000}] * 5
    prompt = simulate([(0, 1)], rows, config(replenish_ns=79))
    assert prompt.run["packets"]["data_refused"] == 0
    assert prompt.tables["transfers"]["finish_ps"].tolist() == [ONE_WAY_PS + n * FRAME_PS for n in range(5)]


def test_a_queue_pair_that_is_refused_too_often_fails(simulate: Simulate) -> None:
    """Two retries are two waits of 10 us, and the third refusal ends it; 7 go on until there is one."""
    rows = [{"bytes": 1000}, {"bytes": 1000}]
    failed = simulate([(0, 1)], rows, config(replenish_ns=50_000, retries=2))
    end_ps = ONE_WAY_PS + FRAME_PS + REFUSAL_PS + 2 * (WAIT_PS + ONE_WAY_PS + REFUSAL_PS)
    assert (failed.run["outcome"], failed.run["end_ps"]) == ("stalled", end_ps)
    assert simulate([(0, 1)], rows, config(replenish_ns=50_000)).run["outcome"] == "finished"


def test_rnr_naks_become_a_finding(simulate: Simulate) -> None:
    """It says how long each cost."""
    record = simulate([(0, 1)], [{"bytes": 1000}, {"bytes": 1000}], config(replenish_ns=1_000))
    (finding,) = record.findings
    assert finding.id == "netsim.receiver-not-ready"
    assert finding.actual == "1 RNR NAK, each of which delayed the sender by 10 us"
