"""Faults of links are named by the counters of their ports, and a healthy testbed has none."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from fabrictune.testbed import testbed
from fabrictune.testbed.counters import LinkReading
from fabrictune.testbed.links import check_links, link_use
from fabrictune.testbed.plan import plan_testbed
from fabrictune.testbed.shaping import change_rate, discard, heal, set_link
from fabrictune.testbed.streams import Stream, streams
from fabrictune.testbed.watching import watch_links
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.lookup import find_port
from tests.patience import patience
from tests.real.namespaces import require_namespaces

FABRIC = plan_testbed(
    build_clos(ClosSpec(num_hosts=3, hosts_per_tor_set=3, nics_per_host=1, tiers=2, uplinks_per_tor=1)),
    rate_bps=8_000_000,
)
NIC, PEER = (find_port(FABRIC, name, where="") for name in ("host0:nic0", "tor0:down0.0"))


def readings(*sent_bytes: int, waiting: int = 1, drops: int = 0, changes: int = 0) -> list[LinkReading]:
    """Return readings a second apart of one busy port; what changed has changed by the last of them."""
    zeros_P = np.zeros(FABRIC.num_ports, np.int64)
    is_nic_P = np.arange(FABRIC.num_ports) == NIC
    found = []
    for second, number in enumerate(sent_bytes):
        is_last = second == len(sent_bytes) - 1
        found.append(
            LinkReading(
                time_s_P=np.full(FABRIC.num_ports, float(second)),
                sent_bytes_P=is_nic_P * number,
                sent_packets_P=is_nic_P * (number // 1000),
                waiting_bytes_P=is_nic_P * waiting,
                queue_drops_P=zeros_P,
                receive_drops_P=(np.arange(FABRIC.num_ports) == PEER) * drops * is_last,
                carrier_changes_P=(is_nic_P | (np.arange(FABRIC.num_ports) == PEER)) * changes * is_last,
            )
        )
    return found


def named(found: Sequence[LinkReading]) -> list[tuple[str, str]]:
    report = check_links(link_use(FABRIC, found))
    return [(finding.id.removeprefix("testbed.link-"), finding.entity) for finding in report.findings]


def test_a_port_that_is_waited_for_sends_at_its_rate() -> None:
    """8 Mbps are 1 MB a second: five windows of 0.4 MB are slow, four are too few, and one of 0.91 clears the port."""
    slow = [400_000 * second for second in range(6)]
    assert named(readings(*slow)) == [("slow", FABRIC.link_label(NIC))]
    assert named(readings(*slow[:-1])) == []
    assert named(readings(*slow, slow[-1] + 910_000)) == []
    assert named(readings(*slow, waiting=0)) == []


def test_a_queue_that_fills_and_empties_is_not_slow() -> None:
    """Bursts of 0.3 and 0.6 MB in turn: the queue was seen waiting, and cannot have waited throughout."""
    assert named(readings(0, 300_000, 900_000, 1_200_000, 1_800_000, 2_100_000)) == []


def test_what_is_lost_and_what_went_down_is_not_called_slow() -> None:
    """Three packets of 2,000 are a loss, two are not; with either the port's rate is not its own."""
    link = FABRIC.link_label(NIC)
    slow = [400_000 * second for second in range(6)]
    assert named(readings(*slow, drops=2)) == [("slow", link)]
    assert named(readings(*slow, drops=3)) == [("loss", link)]
    assert named(readings(*slow, changes=2)) == [("flap", FABRIC.link_label(min(NIC, PEER)))]


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[testbed.Testbed]:
    """Give a testbed of three hosts that send in a ring."""
    require_namespaces()
    ring = [Stream(source_nic=nic, destination_nic=(nic + 1) % 3) for nic in range(3)]
    folder: Path = tmp_path_factory.mktemp("testbed")
    with testbed.temporary_testbed(FABRIC, "busy", folder, with_ssh=False) as made, streams(made.built, ring):
        watch_links(made.built, duration_s=0.5, interval_s=0.1)  # until every stream is under way
        yield made


@pytest.mark.real
@pytest.mark.parametrize("fault", ["none", "slow", "loss", "flap"])
def test_a_planted_fault_is_named_and_nothing_else(busy: testbed.Testbed, fault: str) -> None:
    """At half its rate, with one packet of ten lost, or down for a moment; nothing on a healthy testbed."""
    expected = [] if fault == "none" else [(fault, FABRIC.link_label(min(NIC, PEER) if fault == "flap" else NIC))]
    if fault == "slow":
        change_rate(busy.built, NIC, 4_000_000)
    if fault == "loss":
        discard(busy.built, NIC, 0.1)
    ends_s = time.monotonic() + patience(10)
    try:
        seen = watch_links(busy.built, duration_s=0.2, interval_s=0.1)
        if fault == "flap":
            set_link(busy.built, NIC, "down")
            set_link(busy.built, NIC, "up")
        seen = [*seen, *watch_links(busy.built, duration_s=2.0, interval_s=0.2)]
        while named(seen) != expected and time.monotonic() < ends_s:  # a busy machine may leave no five windows steady
            assert not named(seen), "another link, or another fault"
            seen = watch_links(busy.built, duration_s=2.0, interval_s=0.2)
    finally:
        heal(busy.built, NIC)
    assert named(seen) == expected
