"""Swift, a window steered by delay: it grows below a target delay and shrinks above it, at most once a round trip.

There are two windows, each under the same rule: one for the delay of the fabric (the round trip without its part in end
hosts), one for the delay of end hosts, smoothed. The smaller one holds. The fabric's target is longer for a path of
more hops, and for a small window, since many flows on one link leave a longer queue by chance alone; that second part
is also what makes flows fair. A window below one packet sends one packet every so many round trips, which is what lets
thousands of flows share one port.

Source: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020:
algorithm 1, windows below a packet (section 3.4), target delay (3.5), end hosts and losses. The paper publishes a base
target (25 us) and a smallest window (0.001 packets) and few other constants: the steps, the range of flow scaling and
the threshold of resets are those of the public htsim model, whose authors call some of them a guess; the share of a
hop, the host's target and weight, and the largest window are ours. The target is a time for every rate, and follows the
path by its hops; the largest window is one that no target reaches.
Left out: the classes of service and their targets; the end host's own pacing timer, for the engine paces a window below
one packet; hops are links, one more than the switches that a TTL counts, which the base target absorbs.
"""

import math
from collections.abc import Mapping
from typing import Any

from fabrictune.cc.interface import Parameter, Status
from fabrictune.cc.link_rules import Link, Rule

FABRIC = 0
ENDPOINT = 1
PS_PER_SECOND = 1e12


def _packets_in_longest_target(link: Link, params: Mapping[str, float]) -> float:
    path_ps = params["base_target_ps"] + link.num_hops * params["hop_scaling_ps"]
    return link.bytes_in(path_ps + params["flow_scaling_range_ps"]) / link.mtu_bytes


PARAMETERS = (
    Parameter(
        name="base_target_ps",
        default=25_000_000,
        low=0,
        high=10**12,
        meaning="target of the fabric's delay for no hop and a large window",
        dtype="i8",
    ),
    Parameter(
        name="hop_scaling_ps",
        default=1_000_000,
        low=0,
        high=10**12,
        meaning="what each link crossed adds to the target",
        dtype="i8",
    ),
    Parameter(
        name="flow_scaling_range_ps",
        default=100_000_000,
        low=0,
        high=10**12,
        meaning="fs_range: the most that a small window adds to the target",
        dtype="i8",
    ),
    Parameter(
        name="flow_scaling_min_packets",
        default=0.1,
        low=1e-6,
        high=1.0,
        meaning="fs_min_cwnd: window at and below which the whole range is added",
    ),
    Parameter(
        name="flow_scaling_max_packets",
        default=100.0,
        low=2.0,
        high=1e6,
        meaning="fs_max_cwnd: window from which on nothing is added",
    ),
    Parameter(
        name="endpoint_target_ps",
        default=100_000_000,
        low=0,
        high=10**12,
        meaning="target of the smoothed delay in end hosts",
        dtype="i8",
    ),
    Parameter(
        name="endpoint_gain",
        default=0.25,
        low=1e-6,
        high=1.0,
        meaning="weight of the newest delay in end hosts; 1 does not smooth",
    ),
    Parameter(
        name="additive_increase_packets",
        default=1.0,
        low=1e-6,
        high=1e3,
        meaning="ai: what a round trip below the target adds to a window",
    ),
    Parameter(
        name="decrease_factor",
        default=0.8,
        low=0.0,
        high=1.0,
        meaning="beta: how much of the delay's excess over the target, as a share of the delay, a cut takes",
    ),
    Parameter(
        name="max_decrease_fraction",
        default=0.5,
        low=0.0,
        high=0.99,
        meaning="max_mdf: no cut takes more; a loss takes as much",
    ),
    Parameter(
        name="min_cwnd_packets",
        default=0.001,
        low=1e-6,
        high=1e6,
        meaning="smallest window; 1 for a sender that cannot pace below one packet a round trip",
    ),
    Parameter(
        name="max_cwnd_packets",
        default=400.0,
        low=1.0,
        high=1e6,
        meaning="largest window; a flow alone at 400 Gbps and its target of 29 us holds 354 packets of 4 KiB",
        rule=Rule(
            value=_packets_in_longest_target,
            text="what the NICs' rate carries in the longest target",
            source="Kumar et al., SIGCOMM 2020, section 3.5, for the target",
        ),
    ),
    Parameter(
        name="retransmit_reset_threshold",
        default=5,
        low=1,
        high=1000,
        meaning="RETX_RESET_THRESHOLD: timeouts in a row after which the window is the smallest",
        dtype="i8",
    ),
)

STATE = (
    ("window_packets", "f8", (2,)),  # of the fabric, of end hosts
    ("decrease_time_ps", "i8", (2,)),
    ("endpoint_delay_ps", "f8"),  # smoothed
    ("rtt_ps", "i8"),  # the last one
    ("num_timeouts", "i8"),  # in a row
)


def on_start(params: Any, flow: Any, now_ps: int) -> int:
    """Start with what the unloaded path holds at line rate, which the paper leaves open."""
    unloaded_packets = flow.line_rate_bps * flow.base_rtt_ps / (8 * PS_PER_SECOND) / flow.mtu_bytes
    flow.rate_bps = flow.line_rate_bps
    flow.rtt_ps = flow.base_rtt_ps
    for window in range(2):
        flow.window_packets[window] = unloaded_packets
        flow.decrease_time_ps[window] = now_ps
    _set_window(params, flow)
    return Status.OK


def on_ack(
    params: Any,
    flow: Any,
    now_ps: int,
    acked_bytes: int,
    rtt_ps: int,
    endpoint_delay_ps: int,
    num_hops: int,
    is_ecn_marked: int,
    telemetry: Any,
) -> int:
    """Hold each delay against its target (algorithm 1, on receiving an ACK)."""
    flow.rtt_ps = rtt_ps
    flow.num_timeouts = 0
    flow.endpoint_delay_ps += params.endpoint_gain * (endpoint_delay_ps - flow.endpoint_delay_ps)
    acked_packets = acked_bytes / flow.mtu_bytes
    fabric_target_ps = target_delay_ps(params, flow.window_packets[FABRIC], num_hops)
    _follow(params, flow, FABRIC, now_ps, acked_packets, rtt_ps - endpoint_delay_ps, fabric_target_ps)
    _follow(params, flow, ENDPOINT, now_ps, acked_packets, flow.endpoint_delay_ps, params.endpoint_target_ps)
    _set_window(params, flow)
    return Status.OK


def on_nack(params: Any, flow: Any, now_ps: int) -> int:
    """Cut for a gap (algorithm 1, fast recovery)."""
    flow.num_timeouts = 0
    _cut_for_loss(params, flow, now_ps)
    return Status.OK


def on_timeout(params: Any, flow: Any, now_ps: int) -> int:
    """Cut for silence, and go down to the smallest window once it lasts (algorithm 1, retransmit timeout)."""
    flow.num_timeouts += 1
    if flow.num_timeouts < params.retransmit_reset_threshold:
        _cut_for_loss(params, flow, now_ps)
        return Status.OK
    for window in range(2):
        flow.window_packets[window] = params.min_cwnd_packets
        flow.decrease_time_ps[window] = now_ps
    _set_window(params, flow)
    return Status.OK


def target_delay_ps(params: Any, window_packets: float, num_hops: int) -> float:
    """Return the target of the fabric's delay (section 3.5): base, hops, and what a small window adds."""
    path_ps: float = params.base_target_ps + num_hops * params.hop_scaling_ps
    return path_ps + flow_scaling_ps(params, window_packets)


def flow_scaling_ps(params: Any, window_packets: float) -> float:
    """Return alpha / sqrt(window) + beta (section 3.5), between 0 and the range."""
    least = 1 / math.sqrt(params.flow_scaling_max_packets)
    alpha_ps = params.flow_scaling_range_ps / (1 / math.sqrt(params.flow_scaling_min_packets) - least)
    scaling_ps: float = alpha_ps * (1 / math.sqrt(window_packets) - least)
    range_ps: float = params.flow_scaling_range_ps
    return min(max(scaling_ps, 0.0), range_ps)


def kept_share(params: Any, delay_ps: float, target_ps: float) -> float:
    """Return what is left of a window whose delay is above its target (algorithm 1)."""
    share: float = min(params.decrease_factor * (delay_ps - target_ps) / delay_ps, params.max_decrease_fraction)
    return 1 - share


def _follow(
    params: Any, flow: Any, window: int, now_ps: int, acked_packets: float, delay_ps: float, target_ps: float
) -> None:
    """Grow a window whose delay is below its target, by ai in a round trip; otherwise shrink it, once in one."""
    before = flow.window_packets[window]
    if delay_ps < target_ps:
        flow.window_packets[window] = before + params.additive_increase_packets * acked_packets / max(before, 1.0)
    elif now_ps - flow.decrease_time_ps[window] >= flow.rtt_ps:
        flow.window_packets[window] = before * kept_share(params, delay_ps, target_ps)
        flow.decrease_time_ps[window] = now_ps


def _cut_for_loss(params: Any, flow: Any, now_ps: int) -> None:
    for window in range(2):
        if now_ps - flow.decrease_time_ps[window] >= flow.rtt_ps:
            flow.window_packets[window] *= 1 - params.max_decrease_fraction
            flow.decrease_time_ps[window] = now_ps
    _set_window(params, flow)


def _set_window(params: Any, flow: Any) -> None:
    for window in range(2):
        floored = max(flow.window_packets[window], params.min_cwnd_packets)
        flow.window_packets[window] = min(floored, max(params.max_cwnd_packets, params.min_cwnd_packets))
    flow.cwnd_bytes = min(flow.window_packets[FABRIC], flow.window_packets[ENDPOINT]) * flow.mtu_bytes
