"""Queues: waiting times, scheduling of priorities, and sharing of buffers."""

from functools import partial

import numpy as np

from fabrictune.conformance.netsim.one_switch import (
    FULL_FRAME_BYTES,
    GBPS,
    HOST_DELAY_PS,
    MTU_BYTES,
    SwitchFlow,
    run_flows,
    wire_bytes,
    without_law,
)
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.cases import Case, around
from fabrictune.foundation.seeds import stream
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.queues import BufferConfig, PriorityConfig, QueuesConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig

RATE_BPS = 100 * GBPS
FRAME_PS = FULL_FRAME_BYTES * 8 * 10**12 // RATE_BPS
LOADS = (0.5, 0.8)
NUM_ARRIVALS, NUM_SOURCES = 200_000, 64
SOURCE_RATE = 10  # times that of the port where they meet, so that packets of one source may come almost together
LOW, HIGH = 1, 6
URGENT_BYTES = 1_000_000
ALPHA, BUFFER_BYTES, NUM_QUEUES = 1 / 8, 32_000_000, 8


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*_waiting(), *_shares(), _threshold())


def _waiting() -> tuple[Case, ...]:
    return tuple(
        Case(
            name=f"netsim.waiting-time-load-{load:g}",
            source=f"M/D/1 (Pollaczek, Khinchine): load / (2 - 2 load); the mean of {NUM_ARRIVALS} packets",
            unit="of a packet's time",
            **around(load / (2 - 2 * load), 0.05),  # three deviations of that mean at the higher load
            run=partial(_mean_wait, load),
        )
        for load in LOADS
    )


def _shares() -> tuple[Case, ...]:
    alone_us = (wire_bytes(URGENT_BYTES) * 8 * 10**12 // RATE_BPS + FRAME_PS + 2 * HOST_DELAY_PS) / 1e6
    return (
        Case(
            name="netsim.weighted-priorities",
            source="deficit round robin (SIGCOMM'95): weights 3 and 1 of a full port, within a round",
            unit="of the bytes",
            **around(0.75, 0.01),
            run=_heavier_share,
        ),
        Case(
            name="netsim.strict-priority-finish",
            source="closed form: a message of higher priority takes as long as alone, and a frame at each port at most",
            unit="us",
            expected=alone_us,
            low=alone_us,
            high=alone_us + 2 * FRAME_PS / 1e6,
            run=_urgent_finish_us,
        ),
    )


def _threshold() -> Case:
    expected = ALPHA * BUFFER_BYTES / (1 + NUM_QUEUES * ALPHA)
    return Case(
        name="netsim.dynamic-threshold-share",
        source="Choudhury, Hahne (ToN 1998): alpha B / (1 + n alpha) for each of n queues; alpha 1/8, 32 MB, n = 8",
        unit="bytes",
        expected=expected,
        low=expected - 2 * FULL_FRAME_BYTES,
        high=expected + 2 * FULL_FRAME_BYTES,
        run=_full_queue_bytes,
    )


def _mean_wait(load: float) -> float:
    """Return the mean time in a queue fed by many sources at random instants, in times of a packet."""
    from fabrictune.netsim.packet import run
    from fabrictune.netsim.workloads.table import one_message_each
    from fabrictune.topology.draft import FabricDraft
    from fabrictune.topology.hashing import HashSpec
    from fabrictune.topology.routing import build_network

    draft = FabricDraft("many sources, one sink")
    switch = draft.add_switch("switch")
    for number in range(NUM_SOURCES + 1):
        rate_bps = RATE_BPS * (SOURCE_RATE if number else 1)
        host = draft.add_host(f"host{number}")
        draft.add_link((host, "nic0"), (switch, f"down{number}"), rate_bps=rate_bps, delay_ps=HOST_DELAY_PS)
    dice = stream(0, "conformance", "waiting times")
    packet_ps = MTU_BYTES * 8 * 10**12 // RATE_BPS
    start_ps_N = np.cumsum(dice.exponential(packet_ps / load, NUM_ARRIVALS)).astype(np.int64)
    source_N = dice.integers(1, NUM_SOURCES + 1, NUM_ARRIVALS)
    pairs, traffic = one_message_each(source_N, np.zeros_like(source_N), MTU_BYTES, start_ps_N=start_ps_N)
    config = PacketConfig(
        wire_overhead_bytes=0,
        ack_bytes=1,
        ecn=EcnConfig(enabled=False),
        pfc=PfcConfig(enabled=False, buffer_bytes=2**28),
    )
    record = run(build_network(draft.finish(), pairs, HashSpec()), traffic, without_law(), config)
    transfers = record.tables["transfers"]
    unloaded_ps = packet_ps + packet_ps // SOURCE_RATE + 2 * HOST_DELAY_PS
    wait_ps_N: IntArray = transfers["finish_ps"] - transfers["start_ps"] - unloaded_ps
    return float(wait_ps_N.mean()) / packet_ps


def _heavier_share() -> float:
    rules = (
        PriorityConfig(priority=LOW, weight=1, lossless=True),
        PriorityConfig(priority=HIGH, weight=3, lossless=True),
    )
    flows = [
        SwitchFlow(source=1 + (priority == HIGH), destination=0, num_bytes=10**8, priority=priority)
        for priority in (LOW, HIGH)
    ]
    config = _config(*rules, time_limit_ns=2_000_000)
    queues = run_flows(flows, RATE_BPS, config).tables["queues"]
    sent_bytes_PC = queues["tx_bytes"].reshape(-1, len(rules))
    low_bytes, high_bytes = sent_bytes_PC[sent_bytes_PC.sum(axis=1).argmax()]
    return float(high_bytes / (low_bytes + high_bytes))


def _urgent_finish_us() -> float:
    rules = (PriorityConfig(priority=LOW, lossless=True), PriorityConfig(priority=HIGH, lossless=True))
    start_ps = 50_000_000
    flows = [
        SwitchFlow(source=1, destination=0, num_bytes=10**7, priority=LOW),
        SwitchFlow(source=2, destination=0, num_bytes=10**7, priority=LOW),
        SwitchFlow(source=1, destination=0, num_bytes=URGENT_BYTES, priority=HIGH, start_ps=start_ps),
    ]
    record = run_flows(flows, RATE_BPS, _config(*rules))
    return float(record.tables["transfers"]["finish_ps"][2] - start_ps) / 1e6


def _full_queue_bytes() -> float:
    """Return what each of the full queues held at most, on average."""
    senders = np.arange(NUM_QUEUES, 3 * NUM_QUEUES)
    flows = [
        SwitchFlow(source=int(sender), destination=int(sender) % NUM_QUEUES, num_bytes=10**8) for sender in senders
    ]
    config = _config(
        PriorityConfig(priority=3, alpha=ALPHA), buffer=BufferConfig(size_bytes=BUFFER_BYTES), time_limit_ns=400_000
    )
    queues = run_flows(flows, RATE_BPS, config).tables["queues"]
    return float(np.sort(queues["max_queue_bytes"])[-NUM_QUEUES:].mean())


def _config(
    *rules: PriorityConfig, buffer: BufferConfig | None = None, time_limit_ns: int | None = None
) -> PacketConfig:
    return PacketConfig(
        queues=QueuesConfig(priorities=rules),
        buffer=buffer or BufferConfig(),
        ecn=EcnConfig(enabled=False),
        time_limit_ns=time_limit_ns,
    )
