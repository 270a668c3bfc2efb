"""What packages claim together: collectives expanded on a fabric and run in the engine, against their closed forms."""

from functools import partial

from cc.compiling import compile_law
from cc.loading import load_law
from collectives.bounds import ring_all_reduce_ps
from collectives.expansion import ExpansionSpec, expand
from collectives.jobs import data_parallel_step
from foundation.cases import Case, around
from foundation.layout import ParallelLayout
from netsim.config.packet import PacketConfig
from netsim.packet import run
from topology.builders.clos import ClosSpec, build_clos
from topology.fabric import Fabric
from topology.hashing import HashSpec
from topology.placement import place
from topology.routing import build_network

_BITS_PER_BYTE = 8
_PS_PER_S = 10**12
_BAND = 0.03
_JOBS = ((2, 2_000_000), (8, 8_000_000), (8, 512_000), (16, 32_000_000), (32, 32_000_000))  # ranks, bytes a rank


def cases() -> tuple[Case, ...]:
    """Return every case of this package."""
    return tuple(
        Case(
            name=f"validate.ring-all-reduce-{num_ranks}-ranks-{num_bytes // 1000}-KB",
            source="closed form: 2(n - 1)/n * S / rate + 2(n - 1) * latency, one non-blocking switch, law none",
            unit="ps",
            **around(_bound_ps(num_ranks, num_bytes), _BAND),
            run=partial(_simulated_ps, num_ranks, num_bytes),
        )
        for num_ranks, num_bytes in _JOBS
    )


def _fabric(num_ranks: int) -> Fabric:
    """Return one host a rank, all on one switch: no two messages of a ring share a link."""
    return build_clos(
        ClosSpec(num_hosts=num_ranks, hosts_per_tor_set=num_ranks, nics_per_host=1, tiers=2, downlink_split=1)
    )


def _bound_ps(num_ranks: int, num_bytes: int) -> float:
    """Return the closed form on `_fabric`.

    A link carries a packet's payload and headers one way, and an acknowledgement of the packets that come the other
    way. A message's last packet is sent twice, by the NIC and by the switch, over two cables.
    """
    config, fabric = PacketConfig(), _fabric(num_ranks)
    rate_bps, delay_ps = int(fabric.port_rate_bps_P[0]), int(fabric.port_delay_ps_P[0])
    share = config.mtu_bytes / (config.full_frame_bytes + config.ack_bytes / config.ack_every_packets)
    packet_ps = config.full_frame_bytes * _BITS_PER_BYTE * _PS_PER_S / rate_bps
    return ring_all_reduce_ps(num_ranks, num_bytes, rate_bps * share, 2 * delay_ps + packet_ps)


def _simulated_ps(num_ranks: int, num_bytes: int) -> float:
    layout = ParallelLayout(dp=num_ranks)
    fabric = _fabric(num_ranks)
    placement = place(layout, fabric, "contiguous", gpus_per_host=1)
    queue_pairs, traffic = expand(data_parallel_step(layout, num_bytes), placement, fabric, ExpansionSpec())
    network = build_network(fabric, queue_pairs, HashSpec())
    record = run(network, traffic, compile_law(load_law("none")), PacketConfig())
    return float(record.tables["transfers"]["finish_ps"].max())
