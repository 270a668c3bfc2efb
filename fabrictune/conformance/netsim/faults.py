"""Faults: cost of a flap, bit errors, a slow port and a failed switch, and recovery by rerouting.

On two hosts under one switch by closed forms; a failed switch on four ToRs, by topology's max-min shares of the paths
that are left.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np

from fabrictune.conformance.netsim.four_tors import BUFFERED_PACKETS, LOSSLESS, ring_of_tors, run_messages
from fabrictune.conformance.netsim.one_switch import FULL_FRAME_BYTES, GBPS, HOST_DELAY_PS, MTU_BYTES, run_incast
from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.cases import Case, around, exactly
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.retransmission import CONNECTX_6
from fabrictune.netsim.config.faults import BitErrors, Fault, Flap, SlowPort, SwitchDown
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.transport import TransportConfig

_RATE_BPS = 100 * GBPS
_FRAME_PS = FULL_FRAME_BYTES * 8 * 10**12 // _RATE_BPS
_ACK_PS = PacketConfig().ack_bytes * 8 * 10**12 // _RATE_BPS
_ROUND_TRIP_PS = 2 * _FRAME_PS + 2 * _ACK_PS + 4 * HOST_DELAY_PS
_LINK = "host0:nic0"  # the receiver's
_TIMEOUT_NS = 100_000
_STANDARD = TransportConfig(timeout_exponent=8)
_ADAPTIVE = TransportConfig(timers=CONNECTX_6)

_FAIL_NS, _CONVERGENCE_NS, _RUN_NS = 10_000_000, 100_000, 22_000_000
_SETTLING_NS = 2_000_000
_PROBE_NS = 500_000


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*_budgets(), *_flaps(), *_rates(), *_reroutes())


def _budgets() -> tuple[Case, ...]:
    """A flap ends a queue pair exactly if it is down when the last retransmission reaches the link."""

    def longest(name: str, transport: TransportConfig) -> Case:
        last_ps = sum(transport.waits_ps[:-1]) + _FRAME_PS + HOST_DELAY_PS
        return Case(
            name=f"netsim.longest-flap-survived-{name}",
            source="InfiniBand 9.7.6: until the last retransmission, behind all waits but one",
            unit="ns",
            **exactly(float(last_ps // 1000)),
            run=partial(_longest_flap_ns, transport),
        )

    def aborted(name: str, transport: TransportConfig) -> Case:
        return Case(
            name=f"netsim.flap-aborts-at-the-budget-{name}",
            source="InfiniBand 9.7.6, foundation/retransmission.py: a flap of the whole budget; the sum of all waits",
            unit="ns",
            **exactly(transport.budget_ps / 1e3),
            run=partial(_abort_ns, transport),
        )

    named = (("eight-waits", _STANDARD), ("adaptive-t14", _ADAPTIVE))
    return tuple(make(name, transport) for name, transport in named for make in (longest, aborted))


def _flaps() -> tuple[Case, ...]:
    """A packet alone waits for its timer; a stream shows the gap as soon as it gets through again."""
    return (
        Case(
            name="netsim.flap-costs-the-next-retransmission",
            source="closed form: a packet lost to a flap of two and a half timeouts comes with the third",
            unit="ns",
            **exactly(3.0 * _TIMEOUT_NS),
            run=lambda: _cost_of_a_flap_ns(1, at_ns=0, down_ns=5 * _TIMEOUT_NS // 2),
        ),
        Case(
            name="netsim.flap-in-a-stream-costs-its-length-and-a-round-trip",
            source="closed form: the first packet to get through shows the gap, and all is sent again",
            unit="ns",
            expected=150_000 + _ROUND_TRIP_PS / 1e3,
            low=150_000.0,
            high=150_000 + (2 * _ROUND_TRIP_PS + 2 * _FRAME_PS) / 1e3,
            run=lambda: _cost_of_a_flap_ns(2_000, at_ns=200_000, down_ns=150_000),
        ),
    )


def _rates() -> tuple[Case, ...]:
    """A slow port is never idle; bit errors lose a packet by all of its bits."""
    num_packets, slow_bps = 2_000, _RATE_BPS // 4
    slow_ps = num_packets * FULL_FRAME_BYTES * 8 * 10**12 // slow_bps + _FRAME_PS + 2 * HOST_DELAY_PS
    slow = SlowPort(port="tor0:down0", at_ns=0, rate_bps=slow_bps)
    return (
        Case(
            name="netsim.slow-port-is-the-bound",
            source="closed form: every frame at the slow port's rate, behind the first one's way to it",
            unit="us",
            **exactly(slow_ps / 1e6),
            run=lambda: _finish_ps(num_packets, (slow,)) / 1e6,
        ),
        *(
            Case(
                name=f"netsim.bit-error-goodput-{ber:g}",
                source="renewal: 1 - (1 - BER)**bits of packets lost, each for a round trip, twice for a timeout",
                unit="share of the rate",
                **around(_goodput_share(ber), 0.02),
                run=partial(_measured_share, ber),
            )
            for ber in (1e-7, 1e-6)
        ),
    )


def _reroutes() -> tuple[Case, ...]:
    """One of four aggregation switches fails."""

    def rerouted(when: str, extreme: str, choose: Callable[[FloatArray], float]) -> Case:
        return Case(
            name=f"netsim.rates-{when}-a-switch-fails-{extreme}",
            source=f"topology/fairness.py on the paths {when} the failure: the {extreme} flow over its fair rate",
            unit="of the fair rate",
            **around(1.0, 1 / BUFFERED_PACKETS),
            run=lambda: choose(_rate_shares()[when]),
        )

    extremes = (("slowest", lambda shares: float(shares.min())), ("fastest", lambda shares: float(shares.max())))
    return tuple(rerouted(when, *extreme) for when in ("before", "after") for extreme in extremes)


def _longest_flap_ns(transport: TransportConfig) -> float:
    """Return the longest flap, in whole nanoseconds from the start, that a message of one packet survives."""
    survived_ns, fatal_ns = 0, transport.budget_ps // 1000
    while fatal_ns - survived_ns > 1:
        middle_ns = (survived_ns + fatal_ns) // 2
        record = _run_flap(1, transport, at_ns=0, down_ns=middle_ns)
        if record.run["outcome"] == "finished":
            survived_ns = middle_ns
        else:
            fatal_ns = middle_ns
    return float(survived_ns)


def _abort_ns(transport: TransportConfig) -> float:
    record = _run_flap(1, transport, at_ns=0, down_ns=transport.budget_ps // 1000)
    return float(record.tables["aborts"]["time_ps"][0]) / 1e3


def _cost_of_a_flap_ns(num_packets: int, *, at_ns: int, down_ns: int) -> float:
    transport = TransportConfig(timeout_ns=_TIMEOUT_NS)
    flapping = _run_flap(num_packets, transport, at_ns=at_ns, down_ns=down_ns)
    return (int(flapping.tables["transfers"]["finish_ps"][0]) - _finish_ps(num_packets)) / 1e3


def _finish_ps(num_packets: int, faults: tuple[Fault, ...] = ()) -> int:
    record = run_incast(1, num_packets * MTU_BYTES, _RATE_BPS, PacketConfig(), faults=faults)
    return int(record.tables["transfers"]["finish_ps"][0])


def _goodput_share(ber: float) -> float:
    """Return the share of the rate with errors on the first of two links; a gap is answered once."""
    lost = -np.expm1(8 * FULL_FRAME_BYTES * np.log1p(-ber))
    repeated = np.ceil(_ROUND_TRIP_PS / _FRAME_PS) + 1
    waited = lost * _TIMEOUT_NS * 1000 / _FRAME_PS
    return float(MTU_BYTES / FULL_FRAME_BYTES / (1 + lost / (1 - lost) * (repeated + waited)))


def _measured_share(ber: float) -> float:
    num_packets = 40_000
    config = PacketConfig(transport=TransportConfig(timeout_ns=_TIMEOUT_NS))
    errors = BitErrors(link="host1:nic0", at_ns=0, ber_fraction=ber)
    record = run_incast(1, num_packets * MTU_BYTES, _RATE_BPS, config, faults=(errors,))
    return num_packets * MTU_BYTES * 8e12 / _RATE_BPS / float(record.tables["transfers"]["acknowledged_ps"][0])


@cache
def _rate_shares() -> dict[str, FloatArray]:
    """Return what each flow got of its max-min fair rate before the failure and after it, once things have settled."""
    from fabrictune.netsim.faults.timeline import changes, down_ports, fault_intervals
    from fabrictune.topology.failures import follow_failures
    from fabrictune.topology.fairness import max_min_rates
    from fabrictune.topology.hashing import HashSpec

    network, fault = ring_of_tors(0), SwitchDown(switch="agg0-0", at_ns=_FAIL_NS)
    config = replace(LOSSLESS, time_limit_ns=_RUN_NS, transport=TransportConfig(timeout_exponent=6))
    states = down_ports(changes(network.fabric, fault_intervals(network.fabric, [fault], config)))
    network = follow_failures(network, HashSpec(seed=0), states, delay_ps=_CONVERGENCE_NS * 1000)
    probe = ProbeConfig(interval_ns=_PROBE_NS, all_flows=True)
    samples = run_messages(network, 10**9, config, faults=[fault], probe=probe).tables["flow_samples"]
    acked_TQ = samples["acknowledged_packets"].reshape(-1, len(network.queue_pairs))
    spans = {"before": (_SETTLING_NS, _FAIL_NS), "after": (_FAIL_NS + _SETTLING_NS, _RUN_NS - _PROBE_NS)}
    shares = {}
    for (when, (begin_ns, end_ns)), epoch in zip(spans.items(), network.epochs, strict=True):
        gained_Q = acked_TQ[end_ns // _PROBE_NS] - acked_TQ[begin_ns // _PROBE_NS]
        got_bps_Q = gained_Q * MTU_BYTES * 8 / ((end_ns - begin_ns) * 1e-9)
        shares[when] = got_bps_Q / max_min_rates(epoch.port_QDH[:, 0], network.fabric.port_rate_bps_P)
    return shares


def _run_flap(num_packets: int, transport: TransportConfig, *, at_ns: int, down_ns: int) -> RunRecord:
    flap = Flap(link=_LINK, at_ns=at_ns, down_ns=down_ns)
    return run_incast(1, num_packets * MTU_BYTES, _RATE_BPS, PacketConfig(transport=transport), faults=(flap,))
