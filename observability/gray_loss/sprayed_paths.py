"""All paths that spraying uses between two NICs, and the share of packets that each is given.

Every switch chooses evenly among its next hops, so a path's share is the product of the chances along it.
"""

from dataclasses import dataclass

from fabrictune.topology.fabric import Fabric
from fabrictune.topology.next_hops import NextHops

MAX_HOPS = 16


@dataclass(frozen=True)
class SprayedPath:
    """The ports that packets leave through, the NIC's first, and the share of packets."""

    ports: tuple[int, ...]
    share: float


def sprayed_paths(fabric: Fabric, hops: NextHops, source: int, destination: int) -> list[SprayedPath]:
    """Return the paths from one NIC to another, of a NIC's first port; none where there is no way."""
    first = int((fabric.port_nic_P == source).argmax())
    exits = {int(fabric.port_node_P[port]): int(port) for port in hops.exit_C2[destination] if port >= 0}
    done, open_paths = [], [SprayedPath((first,), 1.0)]
    for _ in range(MAX_HOPS):
        further = []
        for path in open_paths:
            node = int(fabric.port_node_P[fabric.port_peer_P[path.ports[-1]]])
            if node in exits:
                done.append(SprayedPath((*path.ports, exits[node]), path.share))
                continue
            choices = hops.towards(node, destination)
            further += [SprayedPath((*path.ports, port), path.share / len(choices)) for port in choices]
        open_paths = further
        if not open_paths:
            break
    return done
