"""InfiniBand subnets as lists of ports: `ibnetdiscover -p` and `iblinkinfo`, with and without -l.

    CA   134  1 0x0002c90000000020 4x EDR - SW  1719 10 0x0002c90000000010 ( 'node1 mlx5_0' - 'leaf1' )

    Switch: 0x0002c90000000010 leaf1:
            1719   10[  ] ==( 4X 25.78125 Gbps Active/  LinkUp)==>  134  1[  ] "node1 mlx5_0" ( )

Ports of an adapter have GUIDs of their own and no node's: those of one description are one adapter unless two of them
have the same number. iblinkinfo names a neighbour by its LID, which is looked up among the ports listed; one that is
not listed, as in a part of the output, goes by its description. Where no head tells switches from adapters (-l), a GUID
with several ports is a switch, and of one port the description tells. The speed printed is that of a lane.

Source: rdma-core, infiniband-diags/ibnetdiscover.c (dump_ports_report) and iblinkinfo.c (print_port).
Left out, and counted: ports that are down or without a neighbour.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from fabrictune.foundation.errors import Mistake, quote
from fabrictune.topology.importers.cabling import Cabling
from fabrictune.topology.importers.ib_subnet import LANE_RATE_BPS, IbNode, IbPort, IbSubnet, lines_of

PORTS_REPORT = re.compile(rb"^(?:SW|CA|RT|\?\?)\s{1,9}\d+\s{1,9}\d+ 0x[0-9a-fA-F]{16} ", re.MULTILINE)
LINK_INFO = re.compile(rb"==\([^\n]{0,80}\)==>")

_END = r"(SW|CA|RT|\?\?)\s+(\d+)\s+(\d+) 0x([0-9a-fA-F]{16})"
_REPORTED = re.compile(rf"{_END} (\S+?)x (\S+)(?: - {_END} \( '(.*?)' - '(.*)' \)|\s+'.*')?")
_HEAD = re.compile(r"(Switch|CA|Router|Ca|Hca): (?:0x([0-9a-fA-F]{1,16}) )?(.*):")
_LISTED = re.compile(r'(?:0x([0-9a-fA-F]{1,16})\s+)?(?:"([^"]*)"\s+)?(\d+)\s+(\d+)\[[ \d]*\] ==\((.*?)\)==>\s*(.*)')
_FAR = re.compile(r"(?:0x([0-9a-fA-F]{1,16})\s+)?(\d+)\s+(\d+)\[[ \d]*\] \"([^\"]*)\" \((.*)\)\s*")
_STATE = re.compile(r"\s*(\d+)X\s+([\d.]+) Gbps (\(FDR10\))?\s*(\w+)/\s*(\w+).*")
_ADAPTER = re.compile(r"\S+ (?:mlx|HCA|hfi|qib|mthca|ib|roce|ocrdma|bnxt)\S*|MT\d+ ConnectX.*", re.IGNORECASE)
_SPEED_OF_LANE = {
    "2.5": "SDR",
    "5.0": "DDR",
    "10.0": "QDR",
    "14.0625": "FDR",
    "25.78125": "EDR",
    "53.125": "HDR",
    "106.25": "NDR",
    "212.5": "XDR",
}
MAX_SKEW = 0.01  # of a speed that was printed with fewer digits


@dataclass(frozen=True, kw_only=True, slots=True)
class _End:
    """A port as one line has it."""

    kind: str  # S, H or R; "" where the line does not tell
    guid: str  # of the port, or of its switch; "" where the line does not tell
    lid: str
    number: str
    description: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """A port and its neighbour."""

    here: _End
    there: _End
    rate_bps: int | None
    where: str


class _List:
    """Lines of ports, and what is left out of them."""

    def __init__(self, path: Path, cabling: Cabling) -> None:
        self.path = path
        self.subnet = IbSubnet(cabling=cabling)
        self.lines: list[_Line] = []
        self.num_unlinked = 0

    def add(self, line: _Line) -> None:
        """Add a port that has a neighbour; raises FabricError for more than can be used."""
        self.lines.append(line)
        self.subnet.check_size(line.where, num_more=len(self.lines))

    def mistake(self, where: str, line: str) -> None:
        """Note the mistake of a line that is none of such a list."""
        found, allowed = f"the line {quote(line)}", "lines of ports, as ibnetdiscover -p or iblinkinfo prints them"
        self.subnet.cabling.add_mistakes(Mistake(where=where, found=found, allowed=allowed))

    def finish(self) -> IbSubnet:
        """Return the nodes and ports of the lines."""
        if self.num_unlinked:
            note = f"{self.path}: ports that are down or without a neighbour, left out: {self.num_unlinked}"
            self.subnet.cabling.notes.append(note)
        nodes = _Nodes(self.lines)
        for line in self.lines:
            here, there = nodes.id_of(line.here), nodes.id_of(line.there)
            self.subnet.nodes.setdefault(here, nodes.node(line.here, line.where, has_record=True))
            if not self.subnet.nodes[here].has_record:
                self.subnet.nodes[here] = replace(self.subnet.nodes[here], has_record=True)
            self.subnet.nodes.setdefault(there, nodes.node(line.there, line.where, has_record=False))
            self.subnet.ports.append(
                IbPort(
                    node_id=here,
                    number=line.here.number,
                    peer_id=there,
                    peer_number=line.there.number,
                    rate_bps=line.rate_bps,
                    where=line.where,
                )
            )
        return self.subnet


class _Nodes:
    """The nodes that ports belong to."""

    def __init__(self, lines: list[_Line]) -> None:
        ends = [end for line in lines for end in (line.here, line.there)]
        numbers: dict[str, set[str]] = {}
        for end in ends:
            if end.guid:
                numbers.setdefault(end.guid, set()).add(end.number)
        self.switches = {guid for guid, known in numbers.items() if len(known) > 1}
        self.by_lid = {end.lid: end for end in reversed(ends) if end.guid and end.lid != "0"}
        self.by_description: dict[str, set[str]] = {}
        for end in ends:
            if end.guid:
                self.by_description.setdefault(end.description, set()).add(end.guid)
        self.adapter_of = self._adapters(ends)

    def _adapters(self, ends: list[_End]) -> dict[str, str]:
        """Return, for the GUID of each adapter's port, that of the adapter's first."""
        of_description: dict[str, dict[str, str]] = {}  # GUID by number
        shared: set[str] = set()
        for end in ends:
            if end.guid and end.description and self.kind(end) == "H":
                known = of_description.setdefault(end.description, {}).setdefault(end.number, end.guid)
                shared |= {end.description} if known != end.guid else set()
        return {
            guid: min(guids.values())
            for description, guids in of_description.items()
            if description not in shared
            for guid in guids.values()
        }

    def kind(self, end: _End) -> str:
        """Return S, H or R, by the line, by the number of ports, or by the description."""
        if end.kind:
            return end.kind
        return "H" if end.guid not in self.switches and _ADAPTER.fullmatch(end.description) else "S"

    def id_of(self, end: _End) -> str:
        """Return the node of a port."""
        known = self._known(end)
        kind = self.kind(known)
        if not known.guid:
            return f"{kind}-{known.description or known.lid}"
        return f"{kind}-{self.adapter_of.get(known.guid, known.guid) if kind == 'H' else known.guid}"

    def node(self, end: _End, where: str, *, has_record: bool) -> IbNode:
        """Return the node of a port, as this line describes it."""
        return IbNode(id=self.id_of(end), description=self._known(end).description, has_record=has_record, where=where)

    def _known(self, end: _End) -> _End:
        """Return the port of that LID, or one of its description, where the line has no GUID."""
        if end.guid:
            return end
        if end.lid in self.by_lid:
            return self.by_lid[end.lid]
        guids = self.by_description.get(end.description, set())
        return replace(end, guid=next(iter(guids))) if len(guids) == 1 else end


def read_ports_report(path: Path, cabling: Cabling) -> IbSubnet:
    """Return what `ibnetdiscover -p` printed."""
    ports = _List(path, cabling)
    for line, where in lines_of(path):
        found = _REPORTED.fullmatch(line)
        if not found:
            if line and not line.startswith("#"):
                ports.mistake(where, line)
        elif not found[7]:
            ports.num_unlinked += 1
        else:
            rate_bps = None if "?" in found[5] + found[6] else ports.subnet.rate_bps(found[5], found[6], where)
            here = _reported(found.group(1, 2, 3, 4), found[11])
            there = _reported(found.group(7, 8, 9, 10), found[12])
            ports.add(_Line(here=here, there=there, rate_bps=rate_bps, where=where))
    return ports.finish()


def _reported(words: tuple[str, ...], description: str) -> _End:
    kind, lid, number, guid = words
    letter = {"SW": "S", "CA": "H", "RT": "R"}.get(kind, "")
    return _End(kind=letter, guid=guid.lower(), lid=lid, number=number, description=description)


def read_link_info(path: Path, cabling: Cabling) -> IbSubnet:
    """Return what `iblinkinfo` printed."""
    ports, head = _List(path, cabling), ("", "", "")
    for line, where in lines_of(path):
        if found := _HEAD.fullmatch(line):
            kind = {"Switch": "S", "Router": "R"}.get(found[1], "H")
            head = kind, (found[2] or "").rjust(16, "0").lower() if found[2] else "", found[3]
        elif port := _LISTED.fullmatch(line):
            _add_listed(ports, port, head, where)
        elif line and not line.startswith("#"):
            ports.mistake(where, line)
    return ports.finish()


def _add_listed(ports: _List, port: re.Match[str], head: tuple[str, str, str], where: str) -> None:
    """Add a line of iblinkinfo; what does not stand in it stands in the head of its node."""
    kind, guid_of_node, description_of_node = head if port[2] is None else ("", "", "")
    far, state = _FAR.fullmatch(port[6]), _STATE.fullmatch(port[5])
    if not far or (not far[4] and far[2] == "0") or (state and state[4] == "Down"):
        ports.num_unlinked += 1
        return
    here = _End(
        kind=kind,
        guid=_guid(port[1]) or guid_of_node,
        lid=port[3],
        number=port[4],
        description=description_of_node if port[2] is None else port[2].strip(),
    )
    there = _End(kind="", guid=_guid(far[1]), lid=far[2], number=far[3], description=far[4].strip())
    rate_bps = ports.subnet.rate_bps(state[1], _speed(state[2], bool(state[3])), where) if state else None
    ports.add(_Line(here=here, there=there, rate_bps=rate_bps, where=where))


def _guid(text: str | None) -> str:
    return text.rjust(16, "0").lower() if text else ""


def _speed(gbps: str, is_fdr10: bool) -> str:
    """Return the speed of a lane, whatever digits it was printed with; the text itself where there is none."""
    if is_fdr10:
        return "FDR10"
    try:
        value = float(gbps)
    except ValueError:
        return gbps
    near = [name for text, name in _SPEED_OF_LANE.items() if abs(float(text) - value) <= MAX_SKEW * value]
    return near[0] if near and near[0] in LANE_RATE_BPS else gbps
