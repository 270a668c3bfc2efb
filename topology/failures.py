"""A fabric after something in it has failed: the same nodes and NICs, without the links that are gone.

Nodes keep their numbers and with them their hash seeds, and NICs theirs, so that a flow that did not cross what failed
may still go another way only because its switch has fewer equal-cost ports to choose among: what a plain ECMP group
does when a member leaves.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from foundation.errors import FabricError, Mistake
from topology.fabric import NO_NIC, Fabric, IntArray
from topology.naming import find_node, find_port

MAX_SHOWN = 10


def without(fabric: Fabric, failed: Sequence[str], *, where: str = "failed") -> Fabric:
    """Return the fabric without these switches and links, named `node` or `node:port`.

    Raises InputError for a name that is none, and FabricError where a NIC would be left without a link.
    """
    is_down_P = np.zeros(fabric.num_ports, bool)
    for name in failed:
        if ":" in name:
            is_down_P[find_port(fabric, name, where=where)] = True
        else:
            is_down_P |= fabric.port_node_P == find_node(fabric, name, where=where)
    is_down_P |= is_down_P[fabric.port_peer_P]
    up_P = np.nonzero(~is_down_P)[0]
    _refuse_lonely_nics(fabric, up_P, where)
    number_P = np.cumsum(~is_down_P) - 1
    return replace(
        fabric,
        name=f"{fabric.name} without {', '.join(failed)}",
        port_name_P=tuple(fabric.port_name_P[port] for port in up_P.tolist()),
        port_node_P=fabric.port_node_P[up_P],
        port_peer_P=number_P[fabric.port_peer_P[up_P]],
        port_rate_bps_P=fabric.port_rate_bps_P[up_P],
        port_delay_ps_P=fabric.port_delay_ps_P[up_P],
        port_nic_P=fabric.port_nic_P[up_P],
    )


def _refuse_lonely_nics(fabric: Fabric, up_P: IntArray, where: str) -> None:
    nic_X = fabric.port_nic_P[up_P]
    lonely = np.nonzero(np.bincount(nic_X[nic_X != NO_NIC], minlength=fabric.num_nics) == 0)[0]
    if len(lonely):
        shown = ", ".join(fabric.nic_label(nic) for nic in lonely[:MAX_SHOWN].tolist())
        raise FabricError(
            Mistake(
                where=where,
                found=f"{len(lonely)} NICs left without a link: {shown}{', ...' if len(lonely) > MAX_SHOWN else ''}",
                allowed="failures that leave every NIC a way out",
                next_step="fail an aggregation or core switch, or attach NICs to two ToRs",
            )
        )
