"""Checks of a run: what was lost, paused or repeated, and whether that could be told."""

from collections.abc import Callable

import pytest

from fabrictune.foundation.checks import Check, Result
from fabrictune.foundation.records import Finding, RunRecord, Severity
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.queues import PriorityConfig, QueuesConfig
from fabrictune.netsim.config.switch import PfcConfig, WatchdogConfig
from fabrictune.netsim.config.transport import TransportConfig

Simulate = Callable[..., RunRecord]
INCAST = ([(sender, 8) for sender in range(8)], [{"bytes": 200_000, "qp": qp} for qp in range(8)])
PRIORITIES = QueuesConfig(
    priorities=(PriorityConfig(priority=3, lossless=True), PriorityConfig(priority=6)), acknowledgements=6, cnp=6
)
NO_HEADROOM = PfcConfig(buffer_bytes=50_000, xoff_bytes=50_000, headroom_bytes=0)


def check(record: RunRecord, rule: str) -> Check:
    """Return the check of a rule."""
    (found,) = [check for check in record.checks or () if check.rule == rule]
    return found


def finding(record: RunRecord, rule: str) -> Finding:
    """Return the finding of a rule."""
    (found,) = [finding for finding in record.findings if finding.id == rule]
    return found


def test_every_rule_of_a_clean_run_passes(simulate: Simulate) -> None:
    """One transfer alone: nothing is lost, paused, repeated, overtaken or refused."""
    record = simulate([(0, 1)], [{"bytes": 100_000}])
    assert record.findings == ()
    assert {check.rule: (check.result, check.actual) for check in record.checks or ()} == {
        "netsim.pfc-deadlock": (Result.PASSED, "none"),
        "netsim.unfinished-transfers": (Result.PASSED, "all did"),
        "netsim.lossless-drops": (Result.PASSED, "no packet lost"),
        "netsim.dropped-packets": (Result.PASSED, "no packet lost"),
        "netsim.pause-storm": (Result.PASSED, "no port paused"),
        "netsim.paused-switches": (Result.PASSED, "no pause"),
        "netsim.paused-hosts": (Result.PASSED, "no pause"),
        "netsim.spurious-retransmissions": (Result.PASSED, "none"),
        "netsim.reordered-packets": (Result.PASSED, "path choice hash keeps the order"),
        "netsim.receiver-not-ready": (Result.PASSED, "receives are not limited"),
        "netsim.aborted-queue-pairs": (Result.PASSED, "no queue pair failed"),
    }


@pytest.mark.parametrize("queues", [QueuesConfig(), PRIORITIES])
def test_a_lossless_class_that_drops_is_an_error(simulate: Simulate, queues: QueuesConfig) -> None:
    """Without headroom what is on its way when the pause is sent is lost, with priorities and without."""
    config = PacketConfig(queues=queues, pfc=NO_HEADROOM, transport=TransportConfig(timeout_ns=100_000))
    record = simulate(*INCAST, config)
    lost = finding(record, "netsim.lossless-drops")
    num_lost = int(record.tables["ports"]["dropped_packets"].sum())
    assert lost.severity == Severity.ERROR
    assert f"{num_lost:,} of " in lost.actual
    assert check(record, "netsim.dropped-packets").result == Result.PASSED


def test_a_lossy_class_that_drops_is_a_warning_with_its_share(simulate: Simulate) -> None:
    """Without PFC a full buffer drops; no class is lossless."""
    config = PacketConfig(
        pfc=PfcConfig(enabled=False, buffer_bytes=50_000), transport=TransportConfig(timeout_ns=100_000)
    )
    record = simulate(*INCAST, config)
    lost = finding(record, "netsim.dropped-packets")
    num_sent = int(record.tables["transfers"]["packets_sent"].sum())
    assert lost.severity == Severity.WARNING
    assert f" of {num_sent:,} data packets (" in lost.actual
    assert check(record, "netsim.lossless-drops").actual == "no class is lossless"


def test_random_loss_and_full_buffers_cannot_be_told_apart_without_priorities(simulate: Simulate) -> None:
    """Both are one count of a port, so the lossless class has not passed."""
    config = PacketConfig(loss_fraction=0.02, transport=TransportConfig(timeout_ns=50_000))
    record = simulate([(0, 1)], [{"bytes": 400_000}], config)
    assert check(record, "netsim.lossless-drops").result == Result.NOT_RUN
    assert check(record, "netsim.spurious-retransmissions").reason == (
        "packets were lost, so repeats are due, and which are not cannot be told"
    )


def test_pauses_of_hosts_are_told_and_those_of_switches_warned_of(simulate: Simulate) -> None:
    """An incast pauses its senders' NICs; no port of the one switch is paused."""
    record = simulate(*INCAST, PacketConfig(pfc=PfcConfig(buffer_bytes=100_000)))
    paused = finding(record, "netsim.paused-hosts")
    ports = record.tables["ports"]
    assert (paused.severity, paused.entity.split(":")[0][:4]) == (Severity.INFO, "host")
    assert paused.actual.endswith(f"host ports paused: 8, pauses: {int(ports['pauses'].sum())}")
    assert check(record, "netsim.paused-switches").actual == "no pause"


def test_repeats_without_a_loss_are_spurious(simulate: Simulate) -> None:
    """A timeout of 2 us is shorter than the queue in front of the receiver: nothing is lost, and yet sent again."""
    record = simulate(*INCAST, PacketConfig(transport=TransportConfig(timeout_ns=2_000)))
    repeated = int(record.tables["transfers"]["packets_retransmitted"].sum())
    assert repeated > 0
    assert record.tables["ports"]["dropped_packets"].sum() == 0
    assert finding(record, "netsim.spurious-retransmissions").actual.startswith(f"{repeated:,} of ")


def test_a_storm_is_ruled_out_by_the_time_that_ports_were_paused(simulate: Simulate) -> None:
    """No watchdog runs; a port paused for less than 200 ms in all was not paused for 200 ms on end."""
    record = simulate(*INCAST, PacketConfig(pfc=PfcConfig(buffer_bytes=100_000)))
    storm = check(record, "netsim.pause-storm")
    assert storm.result == Result.PASSED
    assert storm.actual.startswith("no port paused for more than ")
    watched = PfcConfig(buffer_bytes=100_000, watchdog=WatchdogConfig(detect_ns=10_000_000))
    assert check(simulate(*INCAST, PacketConfig(queues=PRIORITIES, pfc=watched)), "netsim.pause-storm").subject == (
        "queues paused beyond 10 ms"
    )


def test_a_probe_is_checked_for_samples_left_out(simulate: Simulate) -> None:
    """Only a run with a probe has samples to miss."""
    record = simulate([(0, 1)], [{"bytes": 100_000}], probe=ProbeConfig(interval_ns=1_000, ports="all"))
    assert check(record, "netsim.samples-truncated").result == Result.PASSED
