"""Facts of commands' outputs, by the command: ethtool, mlnx_qos, dcb, ibv_devinfo, lspci, nvidia-smi, Slurm, FRR.

A reader gets the lines of one output and yields device, name, value and line. What a line does not say is left out, and
nothing is guessed.

Source: ethtool, ethtool.c and netlink/{fec,pause}.c; mlnx-tools, python/mlnx_qos; iproute2, dcb/dcb_{pfc,app}.c;
rdma-core, libibverbs/examples/devinfo.c; pciutils, ls-ecaps.c (ACSCtl); Slurm, `scontrol show config`; FRR,
`show bgp summary json` and `show bfd peers json`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fabrictune.fleet.collect.node_reading import NodeReading
from fabrictune.fleet.facts.fact import Fact, Value, numbers_text
from fabrictune.rdma_bench.counters.mlnx_qos import QosReader

Found = tuple[str, str, Value, int]  # device, name, value, line
Reader = Callable[[Sequence[str], str], Iterator[Found]]  # of lines, and the device in the command

_FIELD = re.compile(r"\s*([\w /.()-]+?)\s*:\s*(\S.*?)\s*")
_PLAIN_FIELDS: Mapping[str, Mapping[str, tuple[str, str]]] = {  # command: label: name, and what its value looks like
    "ethtool": {
        "Speed": ("nic.speed_gbps", r"(\d{1,9})Mb/s"),
        "Auto-negotiation": ("nic.autonegotiation", r"(on|off)"),
        "Link detected": ("nic.link", r"(yes|no)"),
    },
    "ethtool -i": {
        "driver": ("nic.driver", r"(\S+)"),
        "firmware-version": ("nic.firmware", r"(\S.*)"),
    },
    "ethtool -a": {"RX": ("nic.pause_rx", r"(on|off)"), "TX": ("nic.pause_tx", r"(on|off)")},
    "ethtool --show-fec": {
        "Active FEC encoding": ("nic.fec", r"(\S.*)"),
        "Active FEC encodings": ("nic.fec", r"(\S.*)"),
    },
}
_SLURM = {
    "SlurmdTimeout": "job.slurmd_timeout_s",
    "KillWait": "job.kill_wait_s",
    "InactiveLimit": "job.inactive_limit_s",
    "MessageTimeout": "job.slurm_message_timeout_s",
}


def command_facts(reading: NodeReading) -> Iterator[Fact]:
    """Yield the facts of the outputs that have a reader."""
    for section in reading.sections:
        if section.kind != "command":
            continue
        for prefix, read in READERS:
            if section.name == prefix or section.name.startswith(f"{prefix} "):
                device = section.name.removeprefix(prefix).strip()
                for owner, name, value, line in read(section.lines, device):
                    where = reading.where(section, line)
                    yield Fact(node=reading.name, device=owner, name=name, value=value, where=where)
                break


def _plain(command: str) -> Reader:
    def read(lines: Sequence[str], device: str) -> Iterator[Found]:
        for number, line in enumerate(lines):
            match = _FIELD.fullmatch(line)
            known = _PLAIN_FIELDS[command].get(match[1]) if match else None
            value = re.fullmatch(known[1], match[2]) if match and known else None
            if known and value:
                yield device, known[0], int(value[1]) / 1000 if known[0].endswith("_gbps") else value[1], number

    return read


def _mlnx_qos(lines: Sequence[str], device: str) -> Iterator[Found]:
    settings: dict[tuple[str, str], str] = {}
    reader, line_of = QosReader(settings), dict[str, int]()
    for number, line in enumerate(lines):
        if reader.read(line.rstrip(), device):
            for _, key in settings:
                line_of.setdefault(key, number)
    if trust := settings.get((device, "Priority trust state")):
        yield device, "nic.trust", trust, line_of["Priority trust state"]
    if mode := settings.get((device, "DCBX mode")):
        yield device, "nic.dcbx", mode, line_of["DCBX mode"]
    key = "PFC of priorities 0 to 7"
    if enabled := settings.get((device, key)):
        pfc = [priority for priority, flag in enumerate(enabled.split()) if flag == "1"]
        yield device, "nic.pfc", numbers_text(pfc), line_of[key]
    pairs: list[tuple[int, int]] = []
    for (_, name), text in settings.items():
        if name.startswith("DSCP of priority "):
            pairs += [(int(dscp), int(name[-1])) for dscp in text.split(",") if dscp.isdecimal() and len(dscp) < 3]
    if pairs:
        first = next(name for _, name in settings if name.startswith("DSCP of"))
        yield device, "nic.dscp_priorities", _pairs_text(pairs), line_of[first]


def _dcb_pfc(lines: Sequence[str], device: str) -> Iterator[Found]:
    tree = _json(lines)
    enabled = tree.get("prio-pfc") if isinstance(tree, dict) else None
    flags = enabled.items() if isinstance(enabled, dict) else enumerate(enabled) if isinstance(enabled, list) else ()
    pfc = [int(priority) for priority, flag in flags if flag in (True, "on", 1) and str(priority).isdecimal()]
    if enabled is not None:
        yield _named_device(device), "nic.pfc", numbers_text(priority for priority in pfc if priority < 8), 0


def _dcb_app(lines: Sequence[str], device: str) -> Iterator[Found]:
    tree = _json(lines)
    rows = tree.get("dscp-prio") if isinstance(tree, dict) else None
    entries = rows.items() if isinstance(rows, dict) else rows if isinstance(rows, list) else ()
    pairs = []
    for row in entries:
        values = [str(value) for value in row] if isinstance(row, list | tuple) else []
        if len(values) == 2 and all(value.isdecimal() and len(value) < 3 for value in values):
            pairs.append((int(values[0]), int(values[1])))
    if pairs:
        yield _named_device(device), "nic.dscp_priorities", _pairs_text(pairs), 0
        yield _named_device(device), "nic.trust", "dscp", 0


def _ibv_devinfo(lines: Sequence[str], _: str) -> Iterator[Found]:
    device = ""
    for number, line in enumerate(lines):
        name, _, value = (part.strip() for part in line.partition(":"))
        if name == "hca_id":
            device = value
        elif device and name == "active_mtu" and (match := re.match(r"(\d{3,5})\b", value)):
            yield device, "rdma.active_mtu", float(match[1]), number


def _lspci(lines: Sequence[str], _: str) -> Iterator[Found]:
    """Yield how many PCIe bridges redirect requests between their ports to the root, and the first of them."""
    found, total, function, first_line = list[str](), 0, "", 0
    for number, line in enumerate(lines):
        if line[:1].strip():
            function = line
        elif "ACSCtl:" in line and re.search(r"PCI bridge", function):
            total += 1
            if re.search(r"ReqRedir\+|CmpltRedir\+", line):
                first_line = first_line or number
                found.append(function.split()[0])
    if total:
        yield "", "host.acs_bridges", float(len(found)), first_line


def _gpu_topology(lines: Sequence[str], _: str) -> Iterator[Found]:
    """Yield of each GPU how near its nearest NIC is: PIX, PXB, PHB, NODE or SYS."""
    nearness = ("PIX", "PXB", "PHB", "NODE", "SYS", "SOC")
    columns: list[str] = []
    for number, line in enumerate(lines):
        words = re.sub(r"\x1b\[[0-9;]*m", "", line).split()
        if not columns and words[:1] and re.fullmatch(r"GPU\d+", words[0]) and len(words) > 1 and words[1] != "X":
            columns = words
        elif columns and words and re.fullmatch(r"GPU\d+", words[0]):
            cells = dict(zip(columns, words[1:], strict=False))
            ways = [way for name, way in cells.items() if re.match(r"mlx5_|NIC\d|bnxt_re|irdma", name)]
            known = [way for way in nearness if way in ways]
            if known:
                yield words[0], "gpu.nearest_nic", known[0], number


def _gpu_list(lines: Sequence[str], _: str) -> Iterator[Found]:
    for number, line in enumerate(lines):
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 4:
            device = f"GPU{number}"
            yield device, "gpu.model", cells[0], number
            yield device, "gpu.driver", cells[1], number
            if cells[2].isdecimal() and cells[3].isdecimal() and len(cells[2] + cells[3]) < 5:
                yield device, "gpu.pcie_generation", float(cells[2]), number
                yield device, "gpu.max_pcie_generation", float(cells[3]), number


def _slurm(lines: Sequence[str], _: str) -> Iterator[Found]:
    for number, line in enumerate(lines):
        name, _, value = (part.strip() for part in line.partition("="))
        match = re.match(r"(\d{1,7})(?:\s*(?:sec|min)\b|$)", value)
        if name in _SLURM and match:
            yield "", _SLURM[name], float(match[1]) * (60 if "min" in value else 1), number


def _bgp(lines: Sequence[str], _: str) -> Iterator[Found]:
    tree = _json(lines)
    unicast = tree.get("ipv4Unicast") if isinstance(tree, dict) else None
    peers = unicast.get("peers") if isinstance(unicast, dict) else None
    for address, row in peers.items() if isinstance(peers, dict) else ():
        if isinstance(row, dict) and isinstance(row.get("state"), str):
            yield str(address), "switch.bgp_state", row["state"], 0


def _bfd(lines: Sequence[str], _: str) -> Iterator[Found]:
    tree = _json(lines)
    for row in tree if isinstance(tree, list) else ():
        if not isinstance(row, dict) or not isinstance(row.get("peer"), str):
            continue
        interval, multiplier = row.get("receive-interval"), row.get("remote-detect-multiplier", 3)
        if _is_small(interval) and _is_small(multiplier):
            yield row["peer"], "switch.bfd_detection_s", interval * multiplier / 1000, 0


READERS: tuple[tuple[str, Reader], ...] = (  # by what the command begins with; the first that fits
    ("ethtool -i", _plain("ethtool -i")),
    ("ethtool -a", _plain("ethtool -a")),
    ("ethtool --show-fec", _plain("ethtool --show-fec")),
    ("ethtool -S", lambda _lines, _device: iter(())),  # counters
    ("ethtool", _plain("ethtool")),
    ("mlnx_qos -i", _mlnx_qos),
    ("dcb -j pfc show dev", _dcb_pfc),
    ("dcb -j app show dev", _dcb_app),
    ("ibv_devinfo", _ibv_devinfo),
    ("lspci -vvv", _lspci),
    ("nvidia-smi topo -m", _gpu_topology),
    ("nvidia-smi --query-gpu=name,driver_version,pcie.link.gen.current,pcie.link.gen.max", _gpu_list),
    ("scontrol show config", _slurm),
    ("vtysh -c show bgp summary json", _bgp),
    ("vtysh -c show bfd peers json", _bfd),
)


def _json(lines: Sequence[str]) -> Any:
    try:
        return json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return None


def _is_small(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**7


def _named_device(device: str) -> str:
    return device.split()[-1] if device else ""


def _pairs_text(pairs: Sequence[tuple[int, int]]) -> str:
    return ",".join(f"{dscp}={priority}" for dscp, priority in sorted(set(pairs)))
