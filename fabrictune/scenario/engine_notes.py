"""Notes of what an engine's settings assume where the answer rests on it."""

from typing import Any

import numpy as np

from fabrictune.cc.interface import CompiledLaw
from fabrictune.foundation.units import format_rate
from fabrictune.netsim.config.fluid import FluidConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.engine_inputs.host_links import host_links
from fabrictune.scenario.laws import NO_LAW
from fabrictune.topology.fabric import NO_NIC, Fabric
from fabrictune.topology.network import NO_PORT, Network

ACKNOWLEDGEMENTS = "acknowledgements have"  # how a note of their traffic class begins
PCIE = "PCIe carries"


def traffic_class_notes(config: Any, network: Network) -> tuple[str, ...]:
    """Return which class acknowledgements have, where ports of the first paths carry both them and data.

    A list of priorities says it, and where no port carries both it changes nothing.
    """
    if not isinstance(config, PacketConfig) or config.queues.priorities:
        return ()
    path_QDH = network.epochs[0].port_QDH
    num_shared = len(np.intersect1d(path_QDH[:, 0], path_QDH[:, 1])) - int((path_QDH == NO_PORT).any())
    if num_shared <= 0:
        return ()
    effect = {
        "control": "a class of their own, sent before data and never paused: times until they arrive are at their "
        "shortest (engine.queues.acknowledgement_class: data has them wait with data)",
        "data": "the class of data: they wait in its queues, and pauses stop them",
    }[config.queues.acknowledgement_class]
    return (f"{ACKNOWLEDGEMENTS} {effect}; ports that carry both: {num_shared}",)


def share_notes(config: Any, law: CompiledLaw | None) -> tuple[str, ...]:
    """Return what times at max-min shares leave out of a law."""
    if not isinstance(config, FluidConfig) or law is None or law.name == NO_LAW.name:
        return ()
    left_out = "what it adds (slow starts, cuts and recoveries, queues) is not in the times"
    said = (
        f"; audits of {100 * config.audits_fraction:.3g} % of the packets run under it"
        if config.audits_fraction
        else ""
    )
    return (f"law {law.name}: flows have their max-min shares from the first byte on; {left_out}{said}",)


def host_link_notes(config: Any, fabric: Fabric) -> tuple[str, ...]:
    """Return where PCIe carries less than the NICs that share a link of it send."""
    if not isinstance(config, PacketConfig) or config.host.pcie_generation is None:
        return ()
    links = host_links(fabric, config.host)
    link_P2 = links["host_link"].reshape(-1, 2).astype(np.int64)
    is_host_P = fabric.port_nic_P != NO_NIC
    rate_P = fabric.port_rate_bps_P[is_host_P]
    demand_L = np.bincount(link_P2[is_host_P, 1], weights=rate_P)  # of shared links; those of NICs have no more
    most_bps, least_bps = int(demand_L.max()), int(links["host_link_write_rate"].min())
    if most_bps <= least_bps:
        return ()
    return (
        f"{PCIE} {format_rate(least_bps)} of payload a link into memory, and NICs with {format_rate(most_bps)} "
        f"share one: hosts are slower than their links (engine.host)",
    )
