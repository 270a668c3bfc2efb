"""Network: the input of an engine. A fabric, the queue pairs on it, and the path of each.

Paths are computed here, once for every queue pair, direction and routing epoch; an engine follows them and hashes
nothing itself. An epoch is a span of time with one routing: the first starts at 0, later ones after faults converge.

Shapes: Q queue pairs, D = 2 directions (0 data, 1 acknowledgements), H hops.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.topology.fabric import Fabric

NO_PORT = -1


@dataclass(frozen=True, kw_only=True)
class QueuePairs:
    """Q reliable connections, each from a source NIC to a destination NIC."""

    source_nic_Q: IntArray
    destination_nic_Q: IntArray
    source_qpn_Q: IntArray  # 24-bit queue-pair numbers
    destination_qpn_Q: IntArray
    source_port_Q: IntArray  # UDP source port, the same in both directions
    priority_Q: IntArray  # 802.1p priority of the data, 0 to 7

    def __len__(self) -> int:
        return len(self.source_nic_Q)


@dataclass(frozen=True, kw_only=True)
class RoutingEpoch:
    """The paths in force from `start_ps` until the next epoch.

    `port_QDH[q, d]` lists the ports a packet of queue pair q leaves through, the source NIC's first, NO_PORT after the
    last. The node behind the last port is the other NIC's host.
    """

    start_ps: int
    port_QDH: NDArray[np.int32]
    down_ports: frozenset[int] = frozenset()  # those that routing leads round


@dataclass(frozen=True, kw_only=True)
class Network:
    """A fabric, its queue pairs and their paths."""

    fabric: Fabric
    queue_pairs: QueuePairs
    epochs: tuple[RoutingEpoch, ...]
