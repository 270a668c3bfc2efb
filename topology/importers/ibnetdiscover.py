"""InfiniBand subnets as `ibnetdiscover` prints them: one record a node, one line a cabled port.

Lists of ports (`ibnetdiscover -p`, `iblinkinfo`) and nets of ibsim are read by `ib_port_lists` and `ibsim`.

    Switch  41 "S-0002c90000000010"    # "leaf1" base port 0 lid 5 lmc 0
    [1]     "H-0002c90000000020"[1](2c90000000020)    # "node1 mlx5_0" lid 7 4xHDR s=4 w=2 v=4 e=4

Width times speed is the rate, in the nominal figures that ibstat prints (4xHDR is 200 Gbps; SDR, DDR and QDR carry 80 %
of theirs). A link that both of its nodes tell of is one link; that they differ in rate, of which the lower is taken, or
that one of them is silent, is a finding. What nodes are called is said in `ib_subnet`.

Source: rdma-core, infiniband-diags/ibnetdiscover.c and man/common/sec_topology-file.rst.
Left out: chassis (a switch in one is a switch), LIDs, and the output of --diff.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from fabrictune.foundation.errors import Mistake, quote
from fabrictune.foundation.foreign_files import read_head
from fabrictune.topology.draft import DEFAULT_RATE_BPS
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.importers.cabling import Cabling, the_only
from fabrictune.topology.importers.ib_port_lists import LINK_INFO, PORTS_REPORT, read_link_info, read_ports_report
from fabrictune.topology.importers.ib_subnet import IbNode, IbPort, IbSubnet, lines_of
from fabrictune.topology.importers.ibsim import IBSIM_NET, read_ibsim_net
from fabrictune.topology.importers.recognition import HEAD_BYTES

_ID = r'"([SHR]-[0-9a-fA-F]{1,16})"'  # switch, host channel adapter or router, and its GUID
_PORT_NUMBER = r"\[(\d{1,3})\](?:\[ext \d+\])?"
_GUID = r"(?:\([0-9a-fA-F]+\)\s*)?"
_HEAD = re.compile(rf"^(?:Switch|Ca|Rt)\s+\d+\s+{_ID}".encode(), re.MULTILINE)
_RECORD = re.compile(rf'(?:Switch|Ca|Rt)\s+\d+\s+{_ID}\s*(?:#\s*"(.*)".*)?')
_PORT = re.compile(rf"{_PORT_NUMBER}\s*{_GUID}{_ID}{_PORT_NUMBER}\s*{_GUID}(?:#(.*))?")
_REMARK = re.compile(r'[^"]*"([^"]*)"(?:\s+lid\s+\d+\s+(\d+x[A-Z]\w*))?.*')  # the neighbour's description, the rate
_OTHER_LINE = re.compile(r"#.*|\w+=.*|Chassis \d+.*|Non-Chassis Nodes|Hostname:.*|")

_OTHER_FORMS: tuple[tuple[re.Pattern[bytes], Callable[[Path, Cabling], IbSubnet]], ...] = (
    (PORTS_REPORT, read_ports_report),
    (LINK_INFO, read_link_info),
    (IBSIM_NET, read_ibsim_net),
)


def is_ibnetdiscover(path: Path) -> bool:
    """Return whether the beginning of the file has a record of a node, or a line of a port in any of the forms."""
    head = read_head(path, HEAD_BYTES)
    return any(form.search(head) for form in (_HEAD, *(form for form, _ in _OTHER_FORMS)))


def load_ibnetdiscover(paths: Sequence[Path], *, default_rate_bps: int = DEFAULT_RATE_BPS) -> Fabric:
    """Read the output of one command, or one net; raises InputError with every mistake in it."""
    path = the_only(paths)
    cabling = Cabling(path.name.split(".")[0])
    head = read_head(path, HEAD_BYTES)
    read = next((read for form, read in _OTHER_FORMS if form.search(head)), _read_records)
    return read(path, cabling).fabric(default_rate_bps=default_rate_bps)


def _read_records(path: Path, cabling: Cabling) -> IbSubnet:
    reader = _Reader(path, cabling)
    reader.subnet.nodes |= {id_: peer for id_, peer in reader.peers.items() if id_ not in reader.subnet.nodes}
    return reader.subnet


class _Reader:
    """Reads records of nodes and lines of their ports."""

    def __init__(self, path: Path, cabling: Cabling) -> None:
        self.subnet = IbSubnet(cabling=cabling)
        self.owner: str | None = None  # of the port lines that follow
        self.is_repeated = False  # the owner's record stood before: a chassis lists its switches twice
        self.peers: dict[str, IbNode] = {}  # as their neighbours tell of them
        for line, where in lines_of(path):
            self._read_line(line, where)
            self.subnet.check_size(where)

    def _read_line(self, line: str, where: str) -> None:
        if record := _RECORD.fullmatch(line):
            self.owner = _node_id(record[1])
            self.is_repeated = self.owner in self.subnet.nodes
            node = IbNode(id=self.owner, description=record[2] or "", has_record=True, where=where)
            self.subnet.nodes.setdefault(self.owner, node)
        elif port := _PORT.fullmatch(line):
            self._read_port(port, where)
        elif not _OTHER_LINE.fullmatch(line):
            self._mistake(where, f"the line {quote(line)}", "records of nodes and lines of their ports")

    def _read_port(self, line: re.Match[str], where: str) -> None:
        if self.owner is None:
            self._mistake(where, "a port before any node", "the record of its node before it")
        elif not self.is_repeated:
            remark = _REMARK.fullmatch(line[4] or "")
            peer_id = _node_id(line[2])
            description = remark[1] if remark else ""
            self.peers.setdefault(peer_id, IbNode(id=peer_id, description=description, has_record=False, where=where))
            width, _, speed = (remark[2] or "").partition("x") if remark else ("", "", "")
            port = IbPort(
                node_id=self.owner,
                number=line[1],
                peer_id=peer_id,
                peer_number=line[3],
                rate_bps=self.subnet.rate_bps(width, speed, where) if width else None,
                where=where,
            )
            self.subnet.ports.append(port)

    def _mistake(self, where: str, found: str, allowed: str) -> None:
        self.subnet.cabling.add_mistakes(Mistake(where=where, found=found, allowed=allowed))


def _node_id(text: str) -> str:
    return text[0] + text[1:].lower()
