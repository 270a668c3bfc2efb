"""Lower bounds of completion times, and the ratios that htsim publishes.

htsim's transports receive sprayed packets in any order and hear of losses from the switches. So they are held against
selective repeat with a reorder window that no run outlasts.
"""

from functools import partial

import numpy as np

from fabrictune.conformance.netsim.one_switch import GBPS
from fabrictune.foundation.cases import Case
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.topology.fabric import Fabric

RATE_BPS = 100 * GBPS
MESSAGE_BYTES = 2_000_000
CABLE_MM = 200_000  # 1 us a link
SEED = 1
_CONFIG = PacketConfig(wire_overhead_bytes=0)
_SPRAYED = PacketConfig(
    wire_overhead_bytes=0,
    path_choice=PathChoiceConfig(mode="spray"),
    transport=TransportConfig(reliability="selective-repeat", reorder_window_ns=1_000_000),
)
_HTSIM = "Broadcom/csg-htsim, validate.txt: {} at 100 Gb/s; lower bound: the fullest host's bytes over its rate"


def cases() -> tuple[Case, ...]:
    """Return the cases."""

    def bound(name: str, what: str, load_bytes: int, limit_us: int, run: partial[float]) -> Case:
        bound_us = load_bytes * 8e6 / RATE_BPS
        return Case(
            name=f"netsim.htsim-{name}",
            source=_HTSIM.format(what),
            unit="us",
            expected=bound_us,
            low=bound_us,
            high=limit_us,
            run=run,
        )

    def incast(senders: int, message_bytes: int, limit_us: int, *, radix: int) -> Case:
        what = f"{senders}:1 incast of {message_bytes // 1000} KB, {limit_us} us"
        run = partial(_finish_us, radix, [*range(1, senders + 1)], [0] * senders, message_bytes)
        return bound(f"incast-{senders}-to-1", what, senders * message_bytes, limit_us, run)

    def permutation(num_hosts: int, radix: int) -> Case:
        what = f"permutation of {num_hosts} hosts, 2 MB, one path a flow, 1300 us"
        run = partial(_permutation_us, radix, _CONFIG)
        return bound(f"permutation-{num_hosts}-one-path", what, MESSAGE_BYTES, 1300, run)

    def sprayed(num_hosts: int, limit_us: int, radix: int) -> Case:
        what = f"permutation of {num_hosts} hosts, 2 MB, sprayed, {limit_us} us"
        run = partial(_permutation_us, radix, _SPRAYED)
        return bound(f"permutation-{num_hosts}-sprayed", what, MESSAGE_BYTES, limit_us, run)

    one_way = partial(_finish_us, 4, [0], [15], MESSAGE_BYTES)
    both_ways = partial(_finish_us, 4, [0, 15], [15, 0], MESSAGE_BYTES)
    return (
        bound("single-flow", "single flow of 2 MB, 180 to 190 us", MESSAGE_BYTES, 190, one_way),
        bound("bidirectional", "2 MB both ways, 190 us", MESSAGE_BYTES, 190, both_ways),
        incast(15, MESSAGE_BYTES, 2500, radix=4),
        incast(128, MESSAGE_BYTES, 23_000, radix=16),
        incast(1024, 100_000, 8950, radix=18),
        permutation(16, 4),
        permutation(1024, 16),
        sprayed(16, 210, 4),
        sprayed(1024, 220, 16),
    )


def _permutation_us(radix: int, config: PacketConfig) -> float:
    from fabrictune.netsim.workloads.permutation import PermutationSpec, make_permutation

    pairs, _ = make_permutation(PermutationSpec(message_bytes=MESSAGE_BYTES), _fabric(radix), SEED)
    source, destination = pairs.source_nic_Q.tolist(), pairs.destination_nic_Q.tolist()
    return _finish_us(radix, source, destination, MESSAGE_BYTES, config)


def _finish_us(
    radix: int, source: list[int], destination: list[int], message_bytes: int, config: PacketConfig = _CONFIG
) -> float:
    """Return when the last of the messages between hosts of a fat tree has arrived."""
    from fabrictune.cc.compiler import compile_law
    from fabrictune.cc.laws import load_law
    from fabrictune.netsim.packet import run
    from fabrictune.netsim.workloads.table import one_message_each
    from fabrictune.topology.hashing import HashSpec
    from fabrictune.topology.routing import build_network

    pairs, traffic = one_message_each(np.array(source), np.array(destination), message_bytes)
    network = build_network(_fabric(radix), pairs, HashSpec())
    record = run(network, traffic, compile_law(load_law("none")), config, seed=SEED)
    return float(record.tables["transfers"]["finish_ps"].max()) / 1e6


def _fabric(radix: int) -> Fabric:
    from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree

    return build_fat_tree(FatTreeSpec(radix=radix, link_rate_bps=RATE_BPS, cable_mm=CABLE_MM))
