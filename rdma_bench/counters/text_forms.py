"""Counters in text: the output of one command, or of several, as a shell session or a script saves it.

A command line that names a device (`ethtool -S eth2`) says whose the lines below it are, and so do the heads that some
tools print.

    ethtool -S eth2               name: value, also without its head, as grep leaves it
    perfquery, perfquery -x       Name:......value below `# Port counters: Lid 134 port 1`
    rdma statistic show link      link mlx5_0/1 name value name value ...
    grep . .../hw_counters/*      path:value, below /sys/class/infiniband or /sys/class/net
    mlnx_qos -i eth2              settings of priorities

Source: ethtool, stats.c; rdma-core, infiniband-diags/perfquery.c; iproute2, rdma/stat.c.
Left out: counters of single queue pairs (`rdma statistic qp show`) and of single queues (`[0]: rx_packets: 1`).
"""

import re
from collections.abc import Iterable
from pathlib import Path

from fabrictune.rdma_bench.counters.mlnx_qos import QosReader
from fabrictune.rdma_bench.counters.readings import MAX_COUNTERS, Reading, Value, whole_number
from fabrictune.rdma_bench.counters.sysfs import COUNTER_FOLDERS, NO_COUNTERS, place_of

_COMMAND = re.compile(
    r"(?:[^:]{0,80}[#$>]|\++) (?:sudo )?(?:ethtool|mlnx_qos|perfquery|rdma|cat|grep)\b(.*)|"
    r"(?:ethtool|mlnx_qos|perfquery)( -.*)"
)
_DEVICE_OPTION = re.compile(r" (?:-S|--statistics|-i|-C|--Ca|--interface)[ =]+(\S+)")
_SYSFS = re.compile(r"(\S*[^/\s]/[^/:\s]\S*?):\s*(.*)")
_PERFQUERY_HEAD = re.compile(r"#\s*Port\s+(extended\s+)?counters:\s+Lid\s+(\d+)\s+port\s+(\d+).*", re.IGNORECASE)
_PERFQUERY_LINE = re.compile(r"(\w+):\.{2,}\s*(\S+)")
_RDMA_LINK = re.compile(r"link\s+([\w.:-]+/\d+)\s+(.*)")
_NAMED = re.compile(r"((?:\[\d+\]:? *)?[A-Za-z][\w.\[\]-]*)\s*:\s*(\S+)")
_TITLE = re.compile(r"(?:[\w() /.-]+:|```\w*)\s*")
_SELECTIONS = ("PortSelect", "CounterSelect", "CounterSelect2")


def read_lines(lines: Iterable[str], path: Path) -> Reading:
    """Return the counters in the lines of a file."""
    reader = _LineReader(path)
    for number, line in enumerate(lines, start=1):
        if line.strip():
            reader.read(line.strip(), f"{path}:{number}")
    return reader.reading.finish()


class _LineReader:
    """Reads lines, and keeps in mind whose device they are of."""

    def __init__(self, path: Path) -> None:
        self.reading = Reading(path=path)
        self.device = ""
        self.is_extended: bool | None = None
        self.qos = QosReader(self.reading.settings)

    def read(self, line: str, where: str) -> None:
        """Read one line."""
        if head := _PERFQUERY_HEAD.fullmatch(line):
            self.device, self.is_extended = f"lid{head[2]}/{head[3]}", bool(head[1])
        elif command := _COMMAND.fullmatch(line):
            device = _DEVICE_OPTION.search(command[1] or command[2] or "")
            self.device, self.is_extended = device[1] if device else "", None
        elif counter := _PERFQUERY_LINE.fullmatch(line):
            if counter[1] not in _SELECTIONS:
                self._add(counter[1], counter[2], line, where)
        elif link := _RDMA_LINK.fullmatch(line):
            self.device = link[1]
            words = link[2].split()
            for name, text in zip(words[::2], words[1::2], strict=False):
                self._add(name, text, f"{name} {text}", where)
        elif path := _SYSFS.fullmatch(line):
            self._add_path(path[1], path[2], line, where)
        elif not self.qos.read(line, self.device):
            self._read_named(line, where)

    def _read_named(self, line: str, where: str) -> None:
        """Read `name: value`, or leave the line out."""
        if named := _NAMED.fullmatch(line):
            self._add(named[1], named[2], line, where)
        elif not _TITLE.fullmatch(line):
            self.reading.leave_out(line, where)

    def _add(self, name: str, text: str, line: str, where: str) -> None:
        value = whole_number(text)
        if value is None:
            self.reading.leave_out(line, where)
        else:
            extended = self.is_extended
            self.reading.add(Value(device=self.device, name=name, value=value, where=where, is_extended=extended))

    def _add_path(self, path: str, text: str, line: str, where: str) -> None:
        device, folder, name = place_of(path)
        if folder.split("/")[-1] in COUNTER_FOLDERS and name not in NO_COUNTERS:
            self.device, self.is_extended = device, None
            self._add(name, text, line, where)
        elif device and len(self.reading.settings) < MAX_COUNTERS:
            self.reading.settings[device, f"{folder}/{name}".strip("/")] = text
        else:
            self.reading.leave_out(line, where)
