"""Pauses by priority: required headroom, duration, and head-of-line blocking.

Headroom: host 0 sends to host 1 in a low priority, while host 2 keeps that port busy in a high one, so nothing of host
0's frames leaves the switch. Host 3 keeps the port back to host 0 busy, so that a pause waits for the frame on it; how
long depends on when host 3 began, its phase.
"""

from functools import cache, partial

from fabrictune.conformance.netsim.one_switch import FULL_FRAME_BYTES, GBPS, MTU_BYTES, SwitchFlow, run_flows
from fabrictune.foundation.cases import Case, around, exactly
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.queues import PriorityConfig, QueuesConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.headroom import PAUSE_FRAME_BYTES, QUANTUM_BITS, pfc_headroom_bytes, pfc_response_ps

LOW, HIGH = 3, 6
QUEUES = QueuesConfig(
    priorities=(PriorityConfig(priority=LOW, lossless=True), PriorityConfig(priority=HIGH, lossless=True))
)
RATE_BPS = 100 * GBPS
FRAME_PS = FULL_FRAME_BYTES * 8 * 10**12 // RATE_BPS
CABLE_MM = 120_000  # so that the worst wait is met in more than half of all phases, and not in a sliver of them
CABLE_PS = 5 * CABLE_MM
NUM_PHASES = 8
XOFF_FRAMES = 10
MOST_QUANTA = 65_535
NUM_SENDERS = 4  # that share a port with the victim's host
BUFFERED_PACKETS = 30


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*_headroom(), *_expiry(), *_victims())


def _headroom() -> tuple[Case, ...]:
    exact_bytes = worst_headroom_bytes()
    annex_bytes = pfc_headroom_bytes(rate_bps=RATE_BPS, delay_ps=CABLE_PS, full_frame_bytes=FULL_FRAME_BYTES)
    source = "closed form: frames that begin before the pause is obeyed, after the longest wait for the port; {}"
    return (
        Case(
            name="netsim.pfc-worst-headroom",
            source=source.format("what the headroom holds at most, over all phases"),
            unit="bytes",
            **exactly(exact_bytes),
            run=lambda: max(_worst(phase, annex_bytes)[0] for phase in range(NUM_PHASES)),
        ),
        Case(
            name="netsim.pfc-worst-headroom-drops",
            source=source.format("with exactly so much nothing is lost in any phase"),
            unit="packets",
            **exactly(0),
            run=lambda: sum(_worst(phase, exact_bytes)[1] for phase in range(NUM_PHASES)),
        ),
        Case(
            name="netsim.pfc-worst-headroom-short-drops",
            source=source.format("with one MTU and a byte less something is, in one phase or more"),
            unit="phases",
            expected=1,
            low=1,
            high=NUM_PHASES,
            run=lambda: sum(_worst(phase, exact_bytes - MTU_BYTES - 1)[1] > 0 for phase in range(NUM_PHASES)),
        ),
        Case(
            name="netsim.pfc-annex-over-worst-headroom",
            source="IEEE 802.1Qbb annex O is not below the engine's worst case, and above it by less than a frame",
            unit="of the worst case",
            expected=1.0,
            low=1.0,
            high=1 + FULL_FRAME_BYTES / exact_bytes,
            run=lambda: annex_bytes / exact_bytes,
        ),
    )


def _expiry() -> tuple[Case, ...]:
    return tuple(
        Case(
            name=f"netsim.pfc-pause-expiry-{rate_gbps}g",
            source="IEEE 802.1Qbb: 65,535 quanta of 512 bit times, where nobody renews or ends the pause",
            unit="us",
            **around(MOST_QUANTA * QUANTUM_BITS * 1e6 / (rate_gbps * GBPS), 1e-6),
            run=partial(_expired_after_us, rate_gbps),
        )
        for rate_gbps in (100, 400)
    )


def _victims() -> tuple[Case, ...]:
    source = f"{NUM_SENDERS} hosts share a port and are paused for it; the flow of one of them to an idle host {{}}"
    margin = 1 / BUFFERED_PACKETS
    return (
        Case(
            name="netsim.pfc-victim-same-priority",
            source=source.format("goes in turn with its other one, and is held as much"),
            unit="of the other flow's rate",
            **around(1.0, margin),
            run=lambda: _victim_and_other(LOW)[0] / _victim_and_other(LOW)[1],
        ),
        Case(
            name="netsim.pfc-victim-own-priority",
            source=source.format("has, in a priority of its own, all that the other leaves"),
            unit="of the host's rate, both flows together",
            **around(1.0, margin),
            run=lambda: sum(_victim_and_other(HIGH)),
        ),
    )


def worst_headroom_bytes() -> int:
    """Return the bytes that arrive after the last frame below the threshold, if the pause waits as long as it can.

    The pause is obeyed after just less than a frame, its own time, the cable and the response. Until then host 0 begins
    frames one behind the other, the first when the last frame below the threshold had left it: a frame and a cable ago.
    """
    pause_ps = PAUSE_FRAME_BYTES * 8 * 10**12 // RATE_BPS
    begun_ps = 2 * FRAME_PS + pause_ps + 2 * CABLE_PS + pfc_response_ps(RATE_BPS)
    return (
        (begun_ps - 2) // FRAME_PS * FULL_FRAME_BYTES
    )  # the wait, and each beginning, are short of it by a picosecond


def _config(headroom_bytes: int, **pfc: object) -> PacketConfig:
    xoff_bytes = XOFF_FRAMES * FULL_FRAME_BYTES
    return PacketConfig(
        queues=QUEUES,
        ecn=EcnConfig(enabled=False),
        ack_every_packets=10**6,
        pfc=PfcConfig(xoff_bytes=xoff_bytes, headroom_bytes=headroom_bytes, **pfc),  # type: ignore[arg-type]
    )


@cache
def _worst(phase: int, headroom_bytes: int) -> tuple[float, float]:
    """Return what the headroom held at most, and how many packets were lost."""
    begin_ps = 2 * FRAME_PS
    flows = (
        SwitchFlow(source=0, destination=1, num_bytes=40 * MTU_BYTES, priority=LOW, start_ps=begin_ps),
        SwitchFlow(source=2, destination=1, num_bytes=80 * MTU_BYTES, priority=HIGH),
        SwitchFlow(
            source=3, destination=0, num_bytes=80 * MTU_BYTES, priority=LOW, start_ps=FRAME_PS * phase // NUM_PHASES
        ),
    )
    queues = run_flows(flows, RATE_BPS, _config(headroom_bytes), cable_mm=CABLE_MM).tables["queues"]
    return float(queues["max_headroom_bytes"].max()), float(queues["input_dropped_packets"].sum())


def _expired_after_us(rate_gbps: int) -> float:
    starved_bytes = 6 * 10**6  # of the other priority, 480 us of 100 Gb/s
    flows = (
        SwitchFlow(source=0, destination=1, num_bytes=40 * MTU_BYTES, priority=LOW, start_ps=10**6),
        SwitchFlow(source=2, destination=1, num_bytes=starved_bytes, priority=HIGH),
    )
    config = _config(40 * FULL_FRAME_BYTES, quanta=MOST_QUANTA, refresh=False)
    queues = run_flows(flows, rate_gbps * GBPS, config).tables["queues"]
    return float(queues["paused_ps"].max()) / 1e6


@cache
def _victim_and_other(priority: int) -> tuple[float, float]:
    """Return at what share of the rate host 1 sends to the idle host in a priority, and to the crowded one."""
    flows = [
        SwitchFlow(source=source, destination=0, num_bytes=10**9, priority=LOW) for source in range(1, NUM_SENDERS + 1)
    ]
    flows.append(SwitchFlow(source=1, destination=NUM_SENDERS + 1, num_bytes=10**9, priority=priority))
    run_ns = 5_000_000
    config = PacketConfig(
        queues=QUEUES,
        wire_overhead_bytes=0,
        ack_bytes=1,
        ecn=EcnConfig(enabled=False),
        pfc=PfcConfig(xoff_bytes=BUFFERED_PACKETS * MTU_BYTES, headroom_bytes=200_000),
        time_limit_ns=run_ns,
    )
    sent_N = run_flows(flows, RATE_BPS, config).tables["transfers"]["packets_sent"]
    share_N = sent_N * MTU_BYTES * 8e9 / run_ns / RATE_BPS
    return float(share_N[-1]), float(share_N[0])
