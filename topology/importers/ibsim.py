"""Nets of ibsim: nodes by name, and a line for each cabled port, without GUIDs.

    Switch 36 "leaf1"
    [1]     "node1"[1]      4x

    Hca     2 "node1"
    [1]     "leaf1"[1]

A link stands at one of its ends, or at both. What is behind a port's far end (width, speed, LID, after a space or `#`)
is read where it is a width and a speed.

Source: ibsim, net-examples and ibsim/sim_net.c (parse_netconf).
Left out: GUIDs, ids of vendors, error rates and everything else that configures the simulation.
"""

import re
from dataclasses import replace
from pathlib import Path

from fabrictune.foundation.errors import Mistake, quote
from fabrictune.topology.importers.cabling import Cabling
from fabrictune.topology.importers.ib_subnet import IbNode, IbPort, IbSubnet, lines_of

IBSIM_NET = re.compile(rb'^(?:Switch|Hca|Ca)\s{1,9}\d+\s{1,9}"(?![SHR]-[0-9a-fA-F]{1,16}")', re.MULTILINE)

_NODE = re.compile(r'(Switch|Hca|Ca|Router|Rt)\s+\d+\s+"([^"]+)"\s*(?:#.*|\(.*)?')
_PORT = re.compile(r'\[(\d{1,3})\]\s*"([^"]+)"\s*\[(\d{1,3})\](.*)')
_SPEED = re.compile(r".*?\b(\d+)x([SDQFEHNX]DR(?:10)?)\b.*")
_OTHER = re.compile(r"#.*|\w+=.*|include\b.*|do\b.*|done\b.*|module\b.*|")


def read_ibsim_net(path: Path, cabling: Cabling) -> IbSubnet:
    """Return the nodes and ports of a net."""
    subnet, owner = IbSubnet(cabling=cabling), ""
    peers: list[tuple[IbPort, str]] = []  # ports, and the names of their neighbours
    kind_of: dict[str, str] = {}
    for line, where in lines_of(path):
        if node := _NODE.fullmatch(line):
            owner = node[2]
            kind_of[owner] = "H" if node[1] in ("Hca", "Ca") else "S"
            node_id = f"{kind_of[owner]}-{owner}"
            subnet.nodes.setdefault(node_id, IbNode(id=node_id, description=owner, has_record=True, where=where))
        elif port := _PORT.fullmatch(line):
            if not owner:
                _mistake(cabling, where, "a port before any node", "the line of its node before it")
                continue
            speed = _SPEED.fullmatch(port[4])
            rate_bps = subnet.rate_bps(speed[1], speed[2], where) if speed else None
            here = f"{kind_of[owner]}-{owner}"
            peers.append((_port(here, port, rate_bps, where), port[2]))
        elif not _OTHER.fullmatch(line):
            _mistake(cabling, where, f"the line {quote(line)}", "nodes and lines of their ports")
        subnet.check_size(where, num_more=len(peers))
    _join(subnet, peers, kind_of)
    return subnet


def _join(subnet: IbSubnet, peers: list[tuple[IbPort, str]], kind_of: dict[str, str]) -> None:
    """Add the ports, each once where only one of its ends lists it, with the kinds of their neighbours."""
    seen: set[tuple[str, str]] = set()
    listed = {(port.node_id, port.number) for port, _ in peers}
    for port, name in peers:
        peer_id = f"{kind_of.get(name, 'S')}-{name}"
        subnet.nodes.setdefault(peer_id, IbNode(id=peer_id, description=name, has_record=False, where=port.where))
        joined = replace(port, peer_id=peer_id)
        subnet.ports.append(joined)
        far = peer_id, port.peer_number
        if far not in listed and far not in seen:  # a net lists a link at one of its ends: that is no finding
            seen.add(far)
            subnet.ports.append(
                IbPort(
                    node_id=peer_id,
                    number=port.peer_number,
                    peer_id=port.node_id,
                    peer_number=port.number,
                    rate_bps=port.rate_bps,
                    where=port.where,
                )
            )


def _port(node_id: str, port: re.Match[str], rate_bps: int | None, where: str) -> IbPort:
    return IbPort(node_id=node_id, number=port[1], peer_id="", peer_number=port[3], rate_bps=rate_bps, where=where)


def _mistake(cabling: Cabling, where: str, found: str, allowed: str) -> None:
    cabling.add_mistakes(Mistake(where=where, found=found, allowed=allowed))
