"""Estimate of a run's work, by hand: packets, links and samples."""

import warnings

import pytest

from fabrictune.foundation.errors import FabrictuneWarning
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.engine_inputs.inputs import EngineInputs, make_engine_inputs
from fabrictune.netsim.memory import estimated_bytes
from fabrictune.netsim.work import estimated_work, least_time_ps, warn_of_long_run
from tests.netsim.conftest import compiled, network_of, one_switch, traffic_of

NETWORK = network_of(one_switch(3), [(0, 2), (1, 2)])


def inputs_of(num_bytes: int, config: PacketConfig | None = None, probe: ProbeConfig | None = None) -> EngineInputs:
    rows = [{"bytes": num_bytes}, {"bytes": num_bytes, "qp": 1}]
    return make_engine_inputs(
        NETWORK, traffic_of(rows), compiled("none"), config or PacketConfig(), seed=0, probe=probe
    )


def test_packets_cross_each_link_with_their_acknowledgement() -> None:
    """Two messages of 3 packets over 2 links: 12 packets over links, and 12 acknowledgements; 6 at one for two."""
    assert estimated_work(inputs_of(3 * 4096)).packet_hops == 24
    assert estimated_work(inputs_of(3 * 4096, PacketConfig(ack_every_packets=2))).packet_hops == 18


def test_a_time_limit_ends_the_work_too() -> None:
    """Two messages of 1 MB to one NIC take 160 us at 100 Gb/s; after 16 us a tenth is done."""
    whole, tenth = (inputs_of(10**6, PacketConfig(time_limit_ns=limit)) for limit in (None, 16_000))
    assert least_time_ps(whole) == 160e6
    assert estimated_work(tenth).packet_hops == pytest.approx(estimated_work(whole).packet_hops / 10)


def test_samples_come_at_every_interval() -> None:
    """160 us at 1 us are 160 samples of each of 3 ports and 2 queue pairs, as long as they are kept."""
    probe = ProbeConfig(interval_ns=1_000, ports="all")
    inputs = inputs_of(10**6, probe=probe)
    probed = len(inputs["probed_port"]) + len(inputs["probed_flow"])
    assert estimated_work(inputs).samples == 160 * probed
    assert estimated_bytes(inputs) > estimated_bytes(inputs_of(10**6))


@pytest.mark.parametrize(
    ("num_bytes", "mtu_bytes", "found"),
    [
        (
            10**9,
            1,
            r"a run of about 8e\+09 packets over links and 0 probe samples: 14 minutes or more; a larger engine",
        ),
        (10**13, 4096, r"packets over links and 0 probe samples: 33 minutes or more"),
        (10**10, 4096, ""),
    ],
)
def test_a_long_run_is_warned_of_with_its_time(num_bytes: int, mtu_bytes: int, found: str) -> None:
    """2 messages of 10^9 packets over 2 links, and as many acknowledgements, at 10^7 a second are 800 s."""
    inputs = inputs_of(num_bytes, PacketConfig(mtu_bytes=mtu_bytes))
    if found:
        with pytest.warns(FabrictuneWarning, match=found):
            warn_of_long_run(inputs)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_of_long_run(inputs)
