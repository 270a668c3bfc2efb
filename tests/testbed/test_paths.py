"""A flow's path, as the kernel says it, is the one whose ports count its packets, and loses those that they lose."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.testbed.connections import SentData, read_connections
from fabrictune.testbed.counters import link_counters
from fabrictune.testbed.paths import kernel_paths
from fabrictune.testbed.plan import plan_testbed
from fabrictune.testbed.shaping import discard
from fabrictune.testbed.streams import Stream, streams
from fabrictune.testbed.testbed import temporary_testbed
from fabrictune.testbed.watching import watch_links
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from tests.real.namespaces import require_namespaces

SPEC = ClosSpec(num_hosts=4, hosts_per_tor_set=2, nics_per_host=1, tiers=2, uplinks_per_tor=4, downlink_split=1)
FABRIC = plan_testbed(build_clos(SPEC), rate_bps=8_000_000)
MOST_ACKS = 0.05  # of the bytes of a stream


@pytest.mark.real
def test_each_stream_is_counted_on_its_path_and_nowhere_else(tmp_path: Path) -> None:
    """From host 0 and 1 to host 2 and 3, by four spines: what is not on a path of data carries acknowledgements."""
    require_namespaces()
    wanted = [Stream(source_nic=nic, destination_nic=nic + 2) for nic in (0, 1)]
    with (
        temporary_testbed(FABRIC, "paths", tmp_path, with_ssh=False) as made,
        streams(made.built, wanted),
        link_counters(made.built) as counters,
    ):
        before = counters.read()
        watch_links(made.built, duration_s=1.0, interval_s=0.5)
        sent_P = counters.read().sent_bytes_P - before.sent_bytes_P
        sent = read_connections(made.built)
        flows = [flow for flow, data in sent.items() if data.acknowledged_bytes]
        paths = kernel_paths(made.built, flows)
    assert {(flow.source_nic, flow.destination_nic) for flow in flows} == {(0, 2), (1, 3)}
    assert all(len(path) == 4 for path in paths.values())
    carries_P = np.isin(np.arange(FABRIC.num_ports), [port for path in paths.values() for port in path])
    assert sent_P[carries_P].min() > 0
    assert sent_P[~carries_P].max() < MOST_ACKS * sent_P[carries_P].min()


@pytest.mark.real
def test_packets_that_a_link_loses_are_counted_by_the_connection_that_sent_them(tmp_path: Path) -> None:
    """A fifth of host 0's packets is lost at its ToR; those of host 1 arrive."""
    require_namespaces()
    wanted = [Stream(source_nic=nic, destination_nic=nic + 2) for nic in (0, 1)]
    with temporary_testbed(FABRIC, "losses", tmp_path, with_ssh=False) as made:
        discard(made.built, FABRIC.first_port(0), 0.2)
        with streams(made.built, wanted):
            sent: dict[int, SentData] = {}
            while not (len(sent) == 2 and sent[0].num_lost >= 8 and sent[1].num_packets >= 100):
                watch_links(made.built, duration_s=0.2, interval_s=0.1)
                found = read_connections(made.built)
                sent = {flow.source_nic: data for flow, data in found.items() if data.num_packets}
    assert 0.05 < sent[0].num_lost / sent[0].num_packets < 0.5
    assert sent[1].num_lost < sent[0].num_lost / 2  # sent again where this machine was late
