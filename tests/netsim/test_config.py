"""Settings that make no sense are refused by name."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.netsim.config.nic import NicConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.queues import BufferConfig, PriorityConfig, QueuesConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig, TrimmingConfig
from fabrictune.netsim.config.transport import CnpConfig, RnrConfig, TransportConfig

TRIMS = TrimmingConfig(enabled=True)
SELECTIVE = TransportConfig(reliability="selective-repeat")
NO_PFC = PfcConfig(enabled=False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PacketConfig(mtu_bytes=0), "mtu: 0 B\n  allowed: 1 B or more"),
        (lambda: PacketConfig(mtu_bytes=65_536), "mtu: 65618 B on the wire\n  allowed: up to 65535 B with overhead"),
        (lambda: PacketConfig(wire_overhead_bytes=-1), "wire_overhead: -1 B\n  allowed: 0 B or more"),
        (lambda: PacketConfig(ack_bytes=0), "ack: 0 B\n  allowed: 1 B or more"),
        (lambda: PacketConfig(ack_every_packets=0), "ack_every: 0 packets\n  allowed: 1 to 2147483647"),
        (lambda: PacketConfig(ack_every_packets=10**17), f"ack_every: {10**17} packets\n  allowed: 1 to 2147483647"),
        (lambda: PacketConfig(telemetry_bytes=2**31), "telemetry: 2147483648 B\n  allowed: 0 to 65535 B"),
        (lambda: PacketConfig(time_limit_ns=0), "time_limit: 0 ns\n  allowed: 1 to 100000000000000 ns"),
        (lambda: CnpConfig(interval_ns=-1), "cnp.interval: -1 ns\n  allowed: 0 to 100000000000000 ns"),
        (lambda: TransportConfig(retries=-1), "transport.retries: -1\n  allowed: 0 to 7"),
        (lambda: TransportConfig(window_packets=0), "transport.window: 0\n  allowed: 1 to 1048576"),
        (
            lambda: TransportConfig(reorder_window_ns=-1),
            "transport.reorder_window: -1 ns\n  allowed: 0 to 100000000000000 ns",
        ),
        (lambda: RnrConfig(receives=0), "transport.rnr.receives: 0\n  allowed: 1 to 1048576"),
        (lambda: RnrConfig(replenish_ns=-1), "transport.rnr.replenish: -1 ns\n  allowed: 0 to 100000000000000 ns"),
        (lambda: RnrConfig(timer_code=32), "transport.rnr.timer_code: 32\n  allowed: 0 to 31"),
        (lambda: RnrConfig(retries=8), "transport.rnr.retries: 8\n  allowed: 0 to 7"),
        (
            lambda: NicConfig(drain_rate_bps=-1),
            "nic.drain_rate: -1 bps\n  allowed: above 0, up to 1000000000000000 bps",
        ),
        (
            lambda: NicConfig(slow_hosts=("host0",)),
            "nic.slow_hosts: slow hosts without a drain rate\n  allowed: both or neither",
        ),
        (lambda: NicConfig(receive_buffer_bytes=0), "nic.receive_buffer: 0 B\n  allowed: 1 to 1073741824 B"),
        (lambda: NicConfig(xoff_bytes=-1), "nic.xoff: -1 B\n  allowed: 0 to 1073741824 B"),
        (
            lambda: NicConfig(endpoint_jitter_ns=10**10),
            "nic.endpoint_jitter: 10000000000 ns\n  allowed: 0 to 1000000000 ns",
        ),
        (lambda: PacketConfig(skip_precision_fraction=0), "skip_precision: 0\n  allowed: above 0, up to 1"),
        (lambda: PacketConfig(nvlink_rate_bps=0), "nvlink_rate: 0 bps\n  allowed: above 0, up to 1000000000000000 bps"),
        (lambda: PacketConfig(loss_fraction=1.5), "loss: 1.5\n  allowed: 0 to 1"),
        (lambda: PacketConfig(loss_fraction=float("nan")), "loss: nan\n  allowed: 0 to 1"),
        (lambda: EcnConfig(kmin_bytes=5, kmax_bytes=5), "ecn.kmax: 5 B\n  allowed: above 5, up to 1000000000000000 B"),
        (lambda: EcnConfig(pmax_fraction=2.0), "ecn.pmax: 2.0\n  allowed: 0 to 1"),
        (lambda: PfcConfig(xoff_bytes=-1), "pfc.xoff: -1 B\n  allowed: 0 to 1073741824 B"),
        (lambda: PfcConfig(response_ns=10**7), "pfc.response: 10000000 ns\n  allowed: 0 to 1 ms"),
        (
            lambda: BufferConfig(headroom_pool_bytes=5),
            "buffer.headroom_pool: 5 B without a shared buffer\n  allowed: only with buffer.size",
        ),
        (lambda: TrimmingConfig(threshold_bytes=0), "trimming.threshold: 0 B\n  allowed: 1 to 1073741824 B"),
        (lambda: TrimmingConfig(trimmed_bytes=0), "trimming.trimmed: 0 B\n  allowed: 1 to 65535 B"),
        (
            lambda: PacketConfig(trimming=TRIMS),
            "trimming: transport.reliability go-back-n\n  allowed: selective-repeat",
        ),
        (
            lambda: PacketConfig(trimming=TRIMS, transport=SELECTIVE),
            "trimming: pfc.enabled true\n  allowed: pfc.enabled false: what waits too long is trimmed",
        ),
        (
            lambda: PacketConfig(
                trimming=TRIMS,
                transport=SELECTIVE,
                pfc=NO_PFC,
                queues=QueuesConfig(priorities=(PriorityConfig(),)),
            ),
            "trimming: trimming.priority None\n  allowed: one of the lossy priorities [3]",
        ),
        (
            lambda: PacketConfig(
                trimming=replace(TRIMS, last_hop_threshold_bytes=4000), transport=SELECTIVE, pfc=NO_PFC
            ),
            "trimming.last_hop_threshold: 4000 B\n  allowed: 4178 B, a full packet on the wire, or more",
        ),
        (lambda: ProbeConfig(interval_ns=0), "probe.interval: 0 ns\n  allowed: 1 to 100000000000000 ns"),
        (lambda: ProbeConfig(num_busiest=0), "probe.num_busiest: 0\n  allowed: 1 to 2147483647"),
    ],
)
def test_impossible_settings_are_refused_by_name(make: Callable[[], object], message: str) -> None:
    """The message names the setting as a scenario file does."""
    with pytest.raises(InputError) as error:
        make()
    assert str(error.value) == message
