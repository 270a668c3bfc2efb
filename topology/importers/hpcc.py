"""Topology text of the RDMA simulators on ns-3: HPCC's form, and SimAI's with servers and NVSwitches.

HPCC: `nodes switches links`, then the switches' numbers, then a line `from to rate delay error-rate` for each link.
SimAI: `nodes gpus-per-server nvswitches switches links gpu-type`, then the numbers of the NVSwitches and those of the
switches, then links alike. The header rules: what follows the stated number of links is not read, which is noted.

Nodes that are no switches are hosts. In SimAI's form they are GPUs: each run of `gpus-per-server` of them is one host
with a NIC for every link of a GPU, whose place in its server is the rail. Links inside a server, those to NVSwitches
among them, are no part of the fabric; they are skipped and noted, and so are error rates.

Source: HPCC's simulation/mix/topology.txt; SimAI's generator, astra-sim-alibabacloud/inputs/topo.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NoReturn

from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import FabricError, Mistake, UnitError, quote
from fabrictune.foundation.units import parse_duration_ps, parse_link_rate_bps
from fabrictune.topology.fabric import NO_RAIL, Fabric, NodeKind
from fabrictune.topology.importers.cabling import Cable, Cabling, End, the_only
from fabrictune.topology.importers.recognition import begins_with

MAX_NODES = 2**18
HEADERS = "nodes switches links, or nodes gpus-per-server nvswitches switches links gpu-type"

_HEADER = re.compile(rb"\A\s*\d+[ \t]+\d+[ \t]+\d+([ \t]+\d+[ \t]+\d+[ \t]+\w+([ \t]+\d+)?)?[ \t]*\r?\n")


def is_hpcc(path: Path) -> bool:
    """Return whether the file begins with one of the two headers."""
    return begins_with(path, _HEADER)


def load_hpcc(paths: Sequence[Path]) -> Fabric:
    """Read one topology; raises InputError with every mistake in it."""
    return _Reader(the_only(paths)).read()


@dataclass(frozen=True, kw_only=True)
class _Header:
    """The counts of the first line."""

    num_nodes: int
    gpus_per_server: int  # 0 where every host is a node
    num_nvswitches: int
    num_switches: int
    num_links: int


class _Reader:
    """Reads one file into a Cabling."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = read_text(path)
        numbered = enumerate(io.StringIO(text), 1)  # one line at a time: a file of short lines is many
        self.lines = ((row, line.split()) for row, line in numbered if not line.isspace())
        self.header_row, words = next(self.lines)
        self.header = self._read_header(words, num_lines=text.count("\n"))
        switches = self._read_switches()
        self.nvswitches = set(switches[: self.header.num_nvswitches])
        self.switches = set(switches[self.header.num_nvswitches :])
        self.cabling = Cabling(path.name.split(".")[0])
        self.num_cabled: dict[tuple[str, str], int] = {}  # links so far by node and the beginning of the port's name
        self.num_inside = 0
        self.num_lossy = 0

    def read(self) -> Fabric:
        self.place_of = self._add_nodes()
        num_links = 0
        for row, words in islice(self.lines, self.header.num_links):
            self._read_link(row, words)
            num_links += 1
        if num_links < self.header.num_links:
            self._mistake(self.header_row, f"{self.header.num_links} links, and {num_links} lines", "a line for each")
        if num_rest := sum(1 for _ in self.lines):
            self.cabling.notes.append(
                f"lines after the {self.header.num_links} links of the header, not read: {num_rest}"
            )
        if self.num_inside:
            self.cabling.notes.append(f"links inside a server, skipped: {self.num_inside}")
        if self.num_lossy:
            self.cabling.notes.append(f"links with an error rate, which is left out: {self.num_lossy}")
        return self.cabling.finish()

    def _read_header(self, words: list[str], num_lines: int) -> _Header:
        """Return the counts of either form, which must not promise more than the file can hold."""
        counts = [_whole(word) for word in (words if len(words) == 3 else words[:5])]
        numbers = [count for count in counts if count is not None]
        if len(words) not in (3, 6, 7) or len(numbers) < len(counts):
            self._refuse(self.header_row, quote(" ".join(words)), HEADERS)
        num_nodes, *of_servers, num_switches, num_links = numbers
        gpus_per_server, num_nvswitches = of_servers or (0, 0)
        header = _Header(
            num_nodes=num_nodes,
            gpus_per_server=gpus_per_server,
            num_nvswitches=num_nvswitches,
            num_switches=num_switches,
            num_links=num_links,
        )
        if header.num_nodes > MAX_NODES:
            found, next_step = f"{header.num_nodes} nodes", "give a part of the network"
            self._refuse(self.header_row, found, f"at most {MAX_NODES}", next_step)
        if header.num_links > num_lines:
            self._refuse(self.header_row, f"{header.num_links} links, and {num_lines} lines", "a line for each")
        if header.num_nodes > 2 * header.num_links:
            found = f"{header.num_nodes} nodes and {header.num_links} links"
            self._refuse(self.header_row, found, "at most two nodes for each link, since every node is cabled")
        return header

    def _read_switches(self) -> list[int]:
        """Return the switches' numbers, which stand on one line or on several."""
        num_switches = self.header.num_nvswitches + self.header.num_switches
        switches: dict[int, None] = {}
        while len(switches) < num_switches:
            row, words = next(self.lines, (self.header_row, []))
            for word in words:
                number = _whole(word)
                if number is None or number >= self.header.num_nodes or number in switches:
                    self._refuse(row, f"the switch {quote(word)}", f"each once, from 0 to {self.header.num_nodes - 1}")
                switches[number] = None
            if not words:
                break
        if len(switches) != num_switches:
            self._refuse(
                self.header_row, f"{num_switches} switches, and the numbers of {len(switches)}", "one for each"
            )
        return list(switches)

    def _add_nodes(self) -> dict[int, tuple[str, int]]:
        """Add hosts and switches; returns each number's node, and its rail or NO_RAIL."""
        per_server = self.header.gpus_per_server
        place_of: dict[int, tuple[str, int]] = {}
        where = f"{self.path}:{self.header_row}"
        inside = self.switches | self.nvswitches
        for place, number in enumerate(number for number in range(self.header.num_nodes) if number not in inside):
            server, rail = divmod(place, per_server) if per_server else (number, NO_RAIL)
            place_of[number] = f"host{server}", rail
            self.cabling.add_node(f"host{server}", NodeKind.HOST, where=where)
        for number in sorted(self.switches):
            place_of[number] = f"switch{number}", NO_RAIL
            self.cabling.add_node(f"switch{number}", NodeKind.SWITCH, where=where)
        return place_of

    def _read_link(self, row: int, words: list[str]) -> None:
        numbers = [_whole(word) for word in words[:2]]
        if len(words) not in (4, 5) or None in numbers:
            self._mistake(row, quote(" ".join(words)), "from to rate delay error-rate")
            return
        first, second = (number for number in numbers if number is not None)
        if max(first, second) >= self.header.num_nodes:
            self._mistake(row, f"a link to the node {max(first, second)}", f"0 to {self.header.num_nodes - 1}")
            return
        if {first, second} & self.nvswitches or self._is_inside(first, second):
            self.num_inside += 1
            return
        self.num_lossy += words[4:] not in ([], ["0"], ["0.0"], ["0.000000"])
        rails = {self.place_of[first][1], self.place_of[second][1]} - {NO_RAIL}
        where = f"{self.path}:{row}"
        try:
            rate_bps = parse_link_rate_bps(words[2], where=where)
            delay_ps = parse_duration_ps(words[3], where=where)
        except UnitError as error:
            self.cabling.add_mistakes(*error.mistakes)
            return
        self.cabling.cables.append(
            Cable(
                ends=(self._end(first), self._end(second)),
                rate_bps=rate_bps,
                delay_ps=delay_ps,
                where=where,
                rail=min(rails, default=NO_RAIL),
            )
        )

    def _is_inside(self, first: int, second: int) -> bool:
        """Return whether two GPUs of one server are joined."""
        return first != second and self.place_of[first][0] == self.place_of[second][0]

    def _end(self, number: int) -> End:
        """Return a new port of a node: `port3` of a switch, `nic0` of a host, `gpu5-nic0` of a GPU."""
        node, rail = self.place_of[number]
        kind = "port" if number in self.switches else "nic" if rail == NO_RAIL else f"gpu{rail}-nic"
        count = self.num_cabled.get((node, kind), 0)
        self.num_cabled[node, kind] = count + 1
        return node, f"{kind}{count}"

    def _mistake(self, row: int, found: str, allowed: str) -> None:
        self.cabling.add_mistakes(Mistake(where=f"{self.path}:{row}", found=found, allowed=allowed))

    def _refuse(self, row: int, found: str, allowed: str, next_step: str = "") -> NoReturn:
        raise FabricError(Mistake(where=f"{self.path}:{row}", found=found, allowed=allowed, next_step=next_step))


def _whole(word: str) -> int | None:
    """Return a whole number of at most nine digits, None for anything else."""
    return int(word) if word.isascii() and word.isdigit() and len(word) <= 9 else None
