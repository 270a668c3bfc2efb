"""Host links as an engine reads them: PCIe links and which of them each port's data cross; empty where none limits.

Shapes: P ports, C NICs, L links.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.netsim.config.host import HostConfig
from fabrictune.netsim.engine_inputs.limits import PATH_END
from fabrictune.topology.fabric import NO_NIC, Fabric


def host_links(fabric: Fabric, host: HostConfig) -> dict[str, NDArray[Any]]:
    """Return the arrays of host links: those of NICs first, then those that NICs share."""
    if host.pcie_generation is None:
        return {
            "host_link": np.zeros(0, np.uint32),
            "host_link_read_rate": np.zeros(0, np.int64),
            "host_link_write_rate": np.zeros(0, np.int64),
        }
    shared_C = fabric.num_nics + _shared_links(fabric, host.nics_per_link)
    own_P2 = np.stack([fabric.port_nic_P, shared_C[fabric.port_nic_P]], axis=1)
    link_P2 = np.where(fabric.port_nic_P[:, None] == NO_NIC, PATH_END, own_P2)
    num_links = int(shared_C.max()) + 1
    return {
        "host_link": link_P2.astype(np.uint32).ravel(),
        "host_link_read_rate": np.full(num_links, host.read_rate_bps, np.int64),
        "host_link_write_rate": np.full(num_links, host.write_rate_bps, np.int64),
    }


def _shared_links(fabric: Fabric, nics_per_link: int) -> IntArray:
    """Return a number from 0 of the shared link of each NIC: the first NICs of a host share one, then the next."""
    order_C = np.argsort(fabric.nic_host_C, kind="stable")
    host_C = fabric.nic_host_C[order_C]
    first_of_host_C = np.searchsorted(host_C, host_C)
    place_C = np.arange(fabric.num_nics) - first_of_host_C
    group_C = np.stack([host_C, place_C // nics_per_link], axis=1)
    shared_C = np.empty(fabric.num_nics, np.int64)
    shared_C[order_C] = np.unique(group_C, axis=0, return_inverse=True)[1].ravel()
    return shared_C
