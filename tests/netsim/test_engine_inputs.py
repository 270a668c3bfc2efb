"""What the engine is given, and what it is spared."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.cc.interface import NEVER
from fabrictune.foundation.errors import InputError, RouteError, TraceError
from fabrictune.netsim import _engine
from fabrictune.netsim.config.nic import NicConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.switch import PfcConfig
from fabrictune.netsim.config.transport import CreditsConfig, RnrConfig, TransportConfig
from fabrictune.netsim.engine_inputs.inputs import EngineInputs, make_engine_inputs
from fabrictune.netsim.memory import estimated_bytes, fitting, require_memory
from fabrictune.topology.network import Network, RoutingEpoch
from tests.netsim.conftest import Rows, compiled, network_of, one_switch, traffic_of


def lowered(
    rows: Rows, config: PacketConfig | None = None, *, probe: ProbeConfig | None = None, network: Network | None = None
) -> EngineInputs:
    ready = network or network_of(one_switch(3), [(0, 2), (1, 2)])
    return make_engine_inputs(ready, traffic_of(rows), compiled("dcqcn"), config or PacketConfig(), seed=0, probe=probe)


def test_the_base_round_trip_is_an_empty_network_s() -> None:
    """4,178 B twice and 86 B twice at 80 ps a byte, and four cables of 10 ns."""
    inputs = lowered([{"bytes": 1}])
    assert inputs["flow"]["base_rtt_ps"].tolist() == [2 * (4178 + 86) * 80 + 4 * 10_000] * 2
    assert inputs["flow"]["num_hops"].tolist() == [2, 2]
    assert (inputs["flow"]["deadline_ps"] == NEVER).all()


def test_transfers_say_how_many_and_which_they_wait_for() -> None:
    """Rows 1 and 2 wait for row 0, row 2 for row 1 as well."""
    inputs = lowered([{"bytes": 1}, {"bytes": 1, "waits": [0]}, {"bytes": 1, "waits": [0, 1]}])
    transfers = inputs.all_transfers()
    assert transfers["num_dependencies"].tolist() == [0, 1, 2]
    assert transfers["dependency_row"].tolist() == [0, 0, 1]
    assert inputs.totals.num_dependencies == 3


def test_thresholds_follow_from_buffer_and_headroom() -> None:
    """2 m at 100 Gb/s: headroom 250 + 25,216 + 2 * 4,178 + 84 = 33,906 B of 1 MB; the pause leaves a frame earlier."""
    inputs = lowered([{"bytes": 1}])
    host_ports = inputs["port_is_host"] == 1
    xoff = 1_000_000 - 33_906
    assert set(inputs["ingress_limit"][host_ports]) == {1_000_000}
    assert set(inputs["pause_above"][host_ports]) == {xoff - 4178}
    assert set(inputs["resume_below"][host_ports]) == {xoff * 4 // 5}


def test_without_pfc_the_whole_buffer_is_used() -> None:
    """Nothing pauses, and what does not fit is dropped."""
    inputs = lowered([{"bytes": 1}], PacketConfig(pfc=PfcConfig(enabled=False, buffer_bytes=50_000)))
    assert set(inputs["pause_above"]) == set(inputs["ingress_limit"]) == {50_000}


def test_a_buffer_smaller_than_its_headroom_is_refused() -> None:
    """33,906 B of headroom do not fit into 20 KB."""
    with pytest.raises(InputError, match=r"pfc: 20000 B of buffer, \d+ B of headroom.*\n.*\n.*raise pfc.buffer"):
        lowered([{"bytes": 1}], PacketConfig(pfc=PfcConfig(buffer_bytes=20_000)))


def test_a_queue_pair_that_is_not_there_is_refused() -> None:
    """The engine would read beyond its table."""
    with pytest.raises(TraceError, match=r"row 1: queue pair 2\n  allowed: a row of the network's 2 queue pairs"):
        lowered([{"bytes": 1}, {"bytes": 1, "qp": 2}])


def test_broken_paths_are_refused() -> None:
    """A path must begin at a NIC, name ports that exist, and join."""
    network = network_of(one_switch(3), [(0, 2), (1, 2)])
    port_QDH = network.epochs[0].port_QDH
    for breach in (port_QDH[:, :, ::-1], port_QDH + 1000, np.roll(port_QDH, 1, axis=0)[:, ::-1] * 0):
        broken = replace(network, epochs=(RoutingEpoch(start_ps=0, port_QDH=breach.astype(np.int32)),))
        with pytest.raises(RouteError, match="a path that does not run from NIC to NIC"):
            lowered([{"bytes": 1}], network=broken)


def test_routing_epochs_follow_one_another_from_the_start() -> None:
    """Two at once would leave it open which paths are in force."""
    network = network_of(one_switch(3), [(0, 2), (1, 2)])
    later = replace(network, epochs=network.epochs * 2)
    with pytest.raises(RouteError, match=r"network: routing epochs from \[0, 0\] ps on"):
        lowered([{"bytes": 1}], network=later)


def test_the_busiest_ports_are_those_on_most_paths() -> None:
    """Both queue pairs leave the switch for NIC 2; that port is on two paths, the NICs' own on one each."""
    probe = ProbeConfig(interval_ns=1000, num_busiest=1)
    inputs = lowered([{"bytes": 1}], probe=probe)
    network = network_of(one_switch(3), [(0, 2), (1, 2)])
    assert inputs["probed_port"].tolist() == [int(network.epochs[0].port_QDH[0, 0, 1])]


def test_the_base_round_trip_includes_the_least_time_in_the_host() -> None:
    """4,178 B at 40 Gb/s are 835.6 ns, and 2 us until the answer; jitter comes on top."""
    nic = NicConfig(drain_rate_bps=40 * 10**9, slow_hosts=("host2",), endpoint_delay_ns=2_000, endpoint_jitter_ns=9_000)
    network = network_of(one_switch(3), [(0, 2), (0, 1)])
    bare, slow = (lowered([{"bytes": 1}], PacketConfig(nic=one), network=network) for one in (NicConfig(), nic))
    in_host_ps = slow["flow"]["base_rtt_ps"] - bare["flow"]["base_rtt_ps"]
    assert in_host_ps.tolist() == [2_000_000 + 4178 * 200, 2_000_000]


def test_memory_counts_what_slow_hosts_remember() -> None:
    """Of two queue pairs and one transfer: a queue of receives each, a random stream each, one sum of round trips.

    The one packet and its acknowledgement have a time each; arrays beside packets are twice as long, and grow twofold.
    """
    rows: Rows = [{"bytes": 4096}]
    plain = estimated_bytes(lowered(rows))
    rnr = PacketConfig(transport=TransportConfig(rnr=RnrConfig(receives=5)))
    assert estimated_bytes(lowered(rows, rnr)) - plain == 2 * (_engine.BYTES_PER_RECEIVE_QUEUE + 8)
    delayed = PacketConfig(nic=NicConfig(endpoint_delay_ns=1))
    in_hosts = 2 * _engine.BYTES_PER_ENDPOINT + _engine.BYTES_PER_ROUND_TRIPS + 2 * 8 * 2 * 2
    assert estimated_bytes(lowered(rows, delayed)) - plain == in_hosts


def test_memory_counts_what_packets_say_of_credit() -> None:
    """The one packet and its acknowledgement have 8 B more each, beside what queue pairs and the ports' grants keep.

    Arrays beside packets are twice as long, and grow twofold.
    """
    plain, credited = (
        lowered(
            [{"bytes": 4096}],
            PacketConfig(
                transport=TransportConfig(reliability="selective-repeat", credits=CreditsConfig(enabled=is_credited))
            ),
        )
        for is_credited in (False, True)
    )
    given = sum(array.nbytes for array in credited.arrays.values()) - sum(a.nbytes for a in plain.arrays.values())
    pairs = len(credited["credit_window"]) * _engine.BYTES_PER_CREDITED_PAIR
    ports = len(credited["grant_rate"]) * _engine.BYTES_PER_GRANT_PACER
    beside_packets = 2 * 8 * 2 * 2
    assert estimated_bytes(credited) - estimated_bytes(plain) == 2 * given + pairs + ports + beside_packets


def test_a_run_beyond_the_machine_s_memory_is_refused() -> None:
    """The estimate counts packets that buffers and wires can hold, no more than the traffic has."""
    few, many = (lowered([{"bytes": size}], PacketConfig(skip="off")) for size in (4096, 10**12))
    assert estimated_bytes(few) < estimated_bytes(many) < 10**8
    assert estimated_bytes(many, uses_telemetry=True) > 3 * estimated_bytes(many)  # 193 B with each packet of 48
    require_memory(few, available_bytes=10**8)
    with pytest.raises(InputError, match=r"a run that may need .* of memory"):
        require_memory(many, available_bytes=1000)


def test_a_run_that_fits_without_exact_skip_goes_without() -> None:
    """A default refuses no run; what is asked for in bounded skip stays, and is refused."""
    exact, off = (lowered([{"bytes": 10**12}], PacketConfig(skip=skip)) for skip in ("exact", "off"))
    room = (estimated_bytes(exact), estimated_bytes(off))
    assert fitting(exact, available_bytes=room[0]) is exact
    assert exact.settings["skips_repeats"]
    fitted = fitting(exact, available_bytes=room[1])
    assert fitted.settings == off.settings
    assert fitted.not_searched == "memory is too small to look for what repeats"
    with pytest.raises(InputError, match="of memory"):
        fitting(exact, available_bytes=room[1] - 1)
    with pytest.raises(InputError, match="of memory"):
        fitting(lowered([{"bytes": 10**12}], PacketConfig(skip="bounded")), available_bytes=room[1])


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"bytes": 1, "start_ps": 2**62}, f"a start of {2**62} ps (1 such transfers)"),
        ({"bytes": 1, "delay_ps": 2**63 - 1}, f"a delay of {2**63 - 1} ps (1 such transfers)"),
    ],
)
def test_times_beyond_the_clock_are_refused(row: dict[str, int], found: str) -> None:
    """64 bits hold 106 days; a start near their end wrapped around, and the run finished before it began."""
    network, traffic = network_of(one_switch(2), [(0, 1)]), traffic_of([row])
    with pytest.raises(TraceError) as raised:
        make_engine_inputs(network, traffic, compiled("none"), PacketConfig(), seed=0, probe=None)
    assert str(raised.value) == f"traffic trace, row 0: {found}\n  allowed: up to {2**62 - 1} ps, 53 days"
