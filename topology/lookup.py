"""Lookup of nodes and ports by the names that people write: `agg0-3`, `tor0-5:up0`, `tor0-5:up0 -> agg0-0:down5`."""

from collections.abc import Sequence

import numpy as np

from fabrictune.foundation.errors import InputError, Mistake, nearest_name, quote
from fabrictune.topology.fabric import Fabric

ARROW = "->"
_LIST_LINKS = "`fabrictune topo show FILE --links` lists the links of a fabric"


def find_node(fabric: Fabric, name: str, *, where: str) -> int:
    """Return the node of that name; raises InputError with the nearest name there is."""
    if name not in fabric.node_name_N:
        raise _unknown("node", name, fabric.node_name_N, where)
    return fabric.node_name_N.index(name)


def find_port(fabric: Fabric, name: str, *, where: str) -> int:
    """Return the port that a link's name begins at; raises InputError with the nearest name there is."""
    begin, arrow, end = (part.strip() for part in name.partition(ARROW))
    node_name, colon, port_name = begin.rpartition(":")
    if not colon:
        raise InputError(
            Mistake(
                where=where,
                found=quote(name),
                allowed="NODE:PORT, the port that packets leave through, such as tor0:up0",
                next_step=_LIST_LINKS,
            )
        )
    node = find_node(fabric, node_name, where=where)
    port_of_name = {fabric.port_name_P[port]: port for port in np.nonzero(fabric.port_node_P == node)[0].tolist()}
    if port_name not in port_of_name:
        raise _unknown(f"port of {node_name}", port_name, tuple(port_of_name), where)
    port = port_of_name[port_name]
    if arrow and end != fabric.port_label(int(fabric.port_peer_P[port])):
        raise InputError(Mistake(where=where, found=quote(name), allowed=fabric.link_label(port)))
    return port


def _unknown(what: str, name: str, names: Sequence[str], where: str) -> InputError:
    return InputError(
        Mistake(
            where=where,
            found=f"unknown {what} {quote(name)}",
            nearest=nearest_name(name, names),
            next_step=_LIST_LINKS,
        )
    )
