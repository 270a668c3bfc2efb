"""Facts of the kernel's files, by their paths: one table for all drivers, and what single drivers add.

Source: Linux, Documentation/ABI/stable/sysfs-class-infiniband, testing/sysfs-class-net, infiniband/core/sysfs.c (the
texts of state and rate), mlx5/core/lib (cc_params); mlnx-tools and DOCA's "Explicit Congestion Notification" (ecn).
What bnxt_re has below configfs is read by its names, which differ by release.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fabrictune.fleet.collect.node_reading import NodeReading, Section
from fabrictune.fleet.facts.fact import Fact, Value, numbers_text

Read = Callable[[str], Value | None]


def _text(text: str) -> Value | None:
    return text or None


def _number(text: str) -> Value | None:
    match = re.match(r"\s*(-?\d{1,15}(?:\.\d{1,6})?)", text)
    return float(match[1]) if match else None


def _after_number(text: str) -> Value | None:
    """Return `ACTIVE` of `4: ACTIVE`."""
    return text.partition(":")[2].strip() or None


def _dscp_of_tos(text: str) -> Value | None:
    match = re.fullmatch(r"\s*(\d{1,3})\s*", text)
    return float(int(match[1]) >> 2) if match and int(match[1]) < 256 else None


@dataclass(frozen=True)
class PathRule:
    """What the files of one pattern mean; the pattern's group `device` is whose they are."""

    pattern: re.Pattern[str]
    name: str
    read: Read
    vendor: str = ""  # "" for all


def _rule(pattern: str, name: str, read: Read, vendor: str = "") -> PathRule:
    return PathRule(re.compile(pattern), name, read, vendor)


_RDMA = r"/sys/class/infiniband/(?P<device>[^/]+)"
_NET = r"/sys/class/net/(?P<device>[^/]+)"
PATH_RULES: tuple[PathRule, ...] = (
    _rule(rf"{_RDMA}/fw_ver", "rdma.firmware", _text),
    _rule(rf"{_RDMA}/board_id", "rdma.board", _text),
    _rule(rf"{_RDMA}/hca_type", "rdma.model", _text),
    _rule(rf"{_RDMA}/ports/1/state", "rdma.state", _after_number),
    _rule(rf"{_RDMA}/ports/1/phys_state", "rdma.physical_state", _after_number),
    _rule(rf"{_RDMA}/ports/1/rate", "rdma.rate_gbps", _number),
    _rule(rf"{_RDMA}/ports/1/link_layer", "rdma.link_layer", _text),
    _rule(rf"{_RDMA}/device/current_link_speed", "pcie.gts", _number),
    _rule(rf"{_RDMA}/device/current_link_width", "pcie.width", _number),
    _rule(rf"{_RDMA}/device/max_link_speed", "pcie.max_gts", _number),
    _rule(rf"{_RDMA}/device/max_link_width", "pcie.max_width", _number),
    _rule(rf"{_RDMA}/device/numa_node", "pcie.numa_node", _number),
    _rule(r"/sys/kernel/config/rdma_cm/(?P<device>[^/]+)/ports/1/default_roce_tos", "nic.cm_dscp", _dscp_of_tos),
    _rule(rf"{_NET}/mtu", "nic.mtu", _number),
    _rule(rf"{_NET}/operstate", "nic.state", _text),
    _rule(rf"{_NET}/qos/trust", "nic.trust", _text, "mlx5"),
    _rule(rf"{_NET}/ecn/[^/]*np/cnp_dscp", "nic.cnp_dscp", _number, "mlx5"),
    _rule(r"/sys/kernel/debug/mlx5/(?P<device>[^/]+)/cc_params/np_cnp_dscp", "nic.cnp_dscp", _number, "mlx5"),
    _rule(r"/sys/kernel/config/bnxt_re/(?P<device>[^/]+)/ports/1/cc/cnp_dscp", "nic.cnp_dscp", _number, "bnxt_re"),
    _rule(r"/sys/kernel/config/bnxt_re/(?P<device>[^/]+)/ports/1/cc/roce_dscp", "nic.cm_dscp", _number, "bnxt_re"),
)
_CC_PARAMETER = re.compile(r"/sys/kernel/debug/mlx5/(?P<device>[^/]+)/cc_params/(?P<name>\w+)")
_ECN_ENABLED = re.compile(rf"{_NET}/ecn/[^/]*(?P<end>[rn]p)/enable/(?P<priority>\d)")
_GID = re.compile(rf"{_RDMA}/ports/1/(?P<part>gids|gid_attrs/types|gid_attrs/ndevs)/(?P<index>\d+)")
VENDOR_OF_DRIVER: Mapping[str, str] = {  # by the module of the PCI function
    "mlx5_core": "mlx5",
    "bnxt_en": "bnxt_re",
    "ice": "irdma",
    "i40e": "irdma",
    "idpf": "irdma",
}
_VENDOR_OF_NAME = (("mlx5_", "mlx5"), ("bnxt_re", "bnxt_re"), ("irdma", "irdma"), ("rxe", "rxe"), ("siw", "siw"))


def sysfs_facts(reading: NodeReading) -> Iterator[Fact]:
    """Yield the facts of a node's files, by the names that its kernel has for the devices."""
    gids: dict[tuple[str, str, str], str] = {}
    ecn: dict[tuple[str, str], set[int]] = {}
    places: dict[str, str] = {}
    for section in reading.sections:
        if section.kind == "link":
            yield from _link_facts(reading, section)
        elif section.kind == "file" and section.name.startswith("/sys/"):
            text = section.lines[0].strip() if section.lines else ""
            if match := _GID.fullmatch(section.name):
                gids[match["device"], match["part"], match["index"]] = text
                places.setdefault(match["device"], reading.where(section))
            elif match := _ECN_ENABLED.fullmatch(section.name):
                priorities = ecn.setdefault((match["device"], match["end"]), set())
                priorities |= {int(match["priority"])} if text == "1" else set()
                places.setdefault(match["device"], reading.where(section))
            else:
                yield from _file_facts(reading, section, text)
    for (device, end), priorities in ecn.items():
        name = "nic.ecn_reaction" if end == "rp" else "nic.ecn_notification"
        value = numbers_text(priorities)
        yield Fact(node=reading.name, device=device, name=name, value=value, where=places[device])
    yield from _gid_facts(reading.name, gids, places)


def vendor_of(device: str, driver: str = "") -> str:
    """Return the vendor's RDMA driver of a device, by its PCI driver or by its name; "" where neither tells."""
    by_name = next((vendor for prefix, vendor in _VENDOR_OF_NAME if device.startswith(prefix)), "")
    return VENDOR_OF_DRIVER.get(driver, by_name)


def _file_facts(reading: NodeReading, section: Section, text: str) -> Iterator[Fact]:
    for rule in PATH_RULES:
        match = rule.pattern.fullmatch(section.name)
        value = rule.read(text) if match else None
        if match and value is not None:
            yield Fact(
                node=reading.name, device=match["device"], name=rule.name, value=value, where=reading.where(section)
            )
    match = _CC_PARAMETER.fullmatch(section.name)
    value = _number(text) if match else None
    if match and value is not None:
        name = f"nic.cc.{match['name']}"
        yield Fact(node=reading.name, device=match["device"], name=name, value=value, where=reading.where(section))


def _link_facts(reading: NodeReading, section: Section) -> Iterator[Fact]:
    end = section.lines[0].rsplit("/", 1)[-1] if section.lines else ""
    parts = section.name.split("/")
    if len(parts) > 5 and parts[3] == "infiniband" and end:
        name, value = ("rdma.vendor", vendor_of(parts[4], end)) if parts[-1] == "driver" else ("rdma.pci", end)
        if value:
            yield Fact(node=reading.name, device=parts[4], name=name, value=value, where=reading.where(section))


def _gid_facts(node: str, gids: Mapping[tuple[str, str, str], str], places: Mapping[str, str]) -> Iterator[Fact]:
    """Yield each RDMA device's interface, and how many addresses of RoCE v2 over IPv4 it has."""
    of_device: dict[str, int] = {}
    interface: dict[str, str] = {}
    for (device, part, index), gid in gids.items():
        if part == "gids":
            is_ipv4 = gid.startswith("0000:0000:0000:0000:0000:ffff:")
            is_v2 = gids.get((device, "gid_attrs/types", index)) == "RoCE v2"
            of_device[device] = of_device.get(device, 0) + (is_ipv4 and is_v2)
        elif part == "gid_attrs/ndevs" and gid:
            interface.setdefault(device, gid)
    for device, number in of_device.items():
        yield Fact(node=node, device=device, name="rdma.roce_v2_gids", value=float(number), where=places[device])
    for device, name in interface.items():
        yield Fact(node=node, device=device, name="rdma.netdev", value=name, where=places[device])
