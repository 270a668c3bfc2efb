"""Runs made for what exact skip must see and random ones seldom have.

Each is a few pairs under one or two ToRs, under a law of constant rate and window, so that it repeats at once.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.faults import LinkDown
from fabrictune.netsim.config.host import HostConfig
from fabrictune.netsim.config.nic import NicConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.queues import BufferConfig, PriorityConfig, QueuesConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.config.transport import CnpConfig, TransportConfig
from fabrictune.netsim.faults.timeline import fault_intervals
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network
from tests.skip.runs import MTU_BYTES, Run, make_trace

INCAST = ((1, 0), (2, 0), (3, 0))
ALWAYS_MARKED = EcnConfig(kmin_bytes=2_000, kmax_bytes=2_001, pmax_fraction=1.0)
PLAIN = PacketConfig(mtu_bytes=MTU_BYTES, ecn=EcnConfig(enabled=False))


def run_of(
    law: str,
    pairs: tuple[tuple[int, int], ...],
    config: PacketConfig = PLAIN,
    *,
    num_packets: int = 4_000,
    priorities: tuple[int, ...] | None = None,
    probe_ns: int | None = None,
    capture: CaptureConfig | None = None,
    cable_mm: int = 2_000,
) -> Run:
    """Return a run in which each pair has one message, those of later pairs a little shorter."""
    fabric = build_clos(
        ClosSpec(
            num_hosts=4,
            hosts_per_tor_set=4,
            nics_per_host=1,
            tiers=2,
            nic_rate_bps=400 * 10**9,
            uplink_rate_bps=400 * 10**9,
            downlink_split=1,
            uplinks_per_tor=1,
            host_cable_mm=cable_mm,
        )
    )
    source_Q, destination_Q = np.array(pairs).T
    queue_pairs = make_queue_pairs(source_Q, destination_Q)
    if priorities is not None:
        queue_pairs = replace(queue_pairs, priority_Q=np.array(priorities))
    size = len(pairs)
    bytes_N = (num_packets - 7 * np.arange(size)) * MTU_BYTES + 100
    return Run(
        network=build_network(fabric, queue_pairs, HashSpec()),
        traffic=make_trace(np.arange(size), bytes_N, np.zeros(size, np.int64), [[]] * size),
        config=config,
        law=law,
        seed=0,
        probe=None if probe_ns is None else ProbeConfig(interval_ns=probe_ns, ports="all", all_flows=True),
        capture=capture,
    )


def _going_down(run: Run) -> Run:
    """Return the run with the link to the first pair's destination down for a microsecond."""
    fabric = run.network.fabric
    label = fabric.port_label(int(run.network.epochs[0].port_QDH[0, 0, 1]))
    fault = LinkDown(link=label, at_ns=90_000, until_ns=91_000)
    return replace(run, faults=fault_intervals(fabric, [fault], run.config))


def _queues(*rules: tuple[int, int, bool]) -> QueuesConfig:
    return QueuesConfig(
        priorities=tuple(
            PriorityConfig(priority=number, weight=weight, lossless=lossless) for number, weight, lossless in rules
        )
    )


PAUSING = replace(PLAIN, pfc=PfcConfig(enabled=True, buffer_bytes=300_000))
MARKING = replace(PLAIN, ecn=ALWAYS_MARKED, cnp=CnpConfig(interval_ns=50_000))
SELECTIVE = TransportConfig(reliability="selective-repeat", window_packets=100)
TWO = _queues((2, 1, True), (5, 3, True))

# Notifications gather for as long as each takes to handle, and a timer ends every wait: not one state comes again.
NEVER_SKIPPED = ("marks, handled later",)

TARGETS: dict[str, Callable[[], Run]] = {
    "pauses in a cycle": partial(run_of, "none", INCAST, PAUSING, num_packets=12_000),
    "pauses in a cycle, probed": partial(run_of, "none", INCAST, PAUSING, num_packets=12_000, probe_ns=400_000),
    "pauses in a cycle, slow frames": partial(
        run_of,
        "none",
        INCAST,
        replace(PAUSING, pfc=replace(PAUSING.pfc, response_ns=2_000)),
        num_packets=12_000,
    ),
    "pauses in a cycle, by priority": partial(
        run_of, "none", INCAST, replace(PAUSING, queues=_queues((3, 0, True))), num_packets=12_000, priorities=(3, 3, 3)
    ),
    "pauses in a cycle, by priority, slow frames": partial(
        run_of,
        "none",
        INCAST,
        replace(PAUSING, pfc=replace(PAUSING.pfc, response_ns=2_000), queues=_queues((3, 0, True))),
        num_packets=12_000,
        priorities=(3, 3, 3),
    ),
    "pauses in a cycle, shared buffer": partial(
        run_of,
        "none",
        INCAST,
        replace(
            PAUSING,
            pfc=PfcConfig(enabled=True, buffer_bytes=100_000, headroom_bytes=30_000),
            queues=_queues((3, 0, True)),
            buffer=BufferConfig(size_bytes=2_000_000),
        ),
        num_packets=12_000,
        priorities=(3, 3, 3),
    ),
    "marks": partial(run_of, "narrow", INCAST, MARKING),
    "marks, often": partial(run_of, "narrow", INCAST, replace(MARKING, cnp=CnpConfig(interval_ns=100))),
    "marks, by priority": partial(
        run_of, "narrow", INCAST, replace(MARKING, queues=_queues((3, 0, True))), priorities=(3, 3, 3)
    ),
    "marks, few acknowledgements": partial(run_of, "narrow", INCAST, replace(MARKING, ack_every_packets=3)),
    "marks, handled later": partial(
        run_of, "narrow", INCAST, replace(MARKING, cnp=CnpConfig(interval_ns=100, handling_delay_ns=40_000))
    ),
    "paced": partial(run_of, "paced", ((0, 1), (2, 1), (0, 3)), PLAIN),
    "few acknowledgements": partial(run_of, "paced", ((0, 1), (2, 1)), replace(PLAIN, ack_every_packets=5)),
    "weights at a host": partial(
        run_of,
        "none",
        ((0, 1), (0, 2)),
        replace(PLAIN, queues=TWO),
        priorities=(2, 5),
        cable_mm=10,
    ),
    "weights at a switch": partial(
        run_of, "narrow", ((0, 3), (1, 3), (2, 3)), replace(PLAIN, queues=TWO), priorities=(2, 5, 5)
    ),
    "selective repeat": partial(run_of, "narrow", ((0, 1), (2, 1)), replace(PLAIN, transport=SELECTIVE)),
    "selective repeat, few acknowledgements": partial(
        run_of, "narrow", ((0, 1), (2, 1)), replace(PLAIN, transport=SELECTIVE, ack_every_packets=3)
    ),
    "selective repeat, then losses": lambda: _going_down(
        run_of("narrow", ((0, 1), (2, 1)), replace(PLAIN, transport=replace(SELECTIVE, timeout_ns=50_000)))
    ),
    "late answers": partial(run_of, "narrow", ((0, 1), (2, 1)), replace(PLAIN, nic=NicConfig(endpoint_delay_ns=3_000))),
    "slow hosts": partial(
        run_of,
        "narrow",
        ((0, 1), (2, 1), (1, 3)),
        replace(
            PLAIN,
            nic=NicConfig(
                drain_rate_bps=100 * 10**9, receive_buffer_bytes=200_000, xoff_bytes=20_000, endpoint_delay_ns=200
            ),
        ),
    ),
    "PCIe": partial(
        run_of, "narrow", ((0, 1), (2, 3)), replace(PLAIN, host=HostConfig(pcie_generation=4, pcie_lanes=8))
    ),
    "PCIe, both ways": partial(
        run_of,
        "narrow",
        ((0, 1), (1, 0), (2, 1)),
        replace(
            PLAIN,
            host=HostConfig(pcie_generation=4, pcie_lanes=8),
            nic=NicConfig(drain_rate_bps=300 * 10**9, receive_buffer_bytes=200_000, xoff_bytes=100_000),
        ),
    ),
    "captured in hosts that take at one instant": partial(
        run_of,
        "narrow",
        ((0, 1), (2, 3)),
        replace(
            PLAIN,
            nic=NicConfig(drain_rate_bps=100 * 10**9, receive_buffer_bytes=200_000, xoff_bytes=100_000),
        ),
        capture=CaptureConfig(at="receiver", max_packets=4_000),
    ),
    "captured": partial(run_of, "narrow", INCAST, MARKING, capture=CaptureConfig(at="receiver", max_packets=4_000)),
}
