"""SONiC minigraphs (`minigraph.xml`), one file a switch or several, joined by the links they name.

PngDec lists links with the device and port at both ends, and devices with their types. A link's rate is its
`Bandwidth`, else the `Speed` that DeviceInfos gives the switch's own port. A device is a host or a switch by the same
rules as in `config_db.json`, and its name is compared without case, as SONiC does. Links of management, console and mux
cables, and those inside a chassis, are left out and counted in a note; so are devices that no link reaches.

Source: SONiC, src/sonic-config-engine/minigraph.py (parse_png, parse_device, parse_deviceinfo).
Left out: aliases (a minigraph names ports by the vendor's alias, and port_config.ini, which translates them, is another
file), cable lengths (a minigraph has none), and everything that is not cabling.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from fabrictune.foundation.errors import FabricError, Mistake, quote
from fabrictune.foundation.xml_documents import Element, load_xml
from fabrictune.topology.draft import DEFAULT_RATE_BPS
from fabrictune.topology.fabric import UNKNOWN_TIER, Fabric, NodeKind
from fabrictune.topology.importers.adjacencies import Adjacency, join_adjacencies
from fabrictune.topology.importers.cabling import Cabling, End
from fabrictune.topology.importers.recognition import begins_with
from fabrictune.topology.importers.sonic import TIER_OF_TYPE, is_speed, kind_of

ROOT = "DeviceMiniGraph"
LINK_TYPES = ("DeviceInterfaceLink", "UnderlayInterfaceLink")  # the others are no cables of the fabric

_HEAD = re.compile(rb"<DeviceMiniGraph[\s>]")


def is_minigraph(path: Path) -> bool:
    """Return whether the file begins as a minigraph does."""
    return begins_with(path, _HEAD)


def load_minigraph(paths: Sequence[Path], *, default_rate_bps: int = DEFAULT_RATE_BPS) -> Fabric:
    """Read the minigraphs of one or several switches; raises InputError with every mistake in them."""
    cabling = Cabling("minigraph")
    names = _Names()
    switches = [_Switch(path, cabling, names) for path in paths]
    if not all(switch.name for switch in switches):
        raise FabricError(*cabling.mistakes)  # of files that are no minigraphs there is no more to say
    for switch in switches:
        switch.add_own_node()
    adjacencies = [adjacency for switch in switches for adjacency in switch.adjacencies()]
    cabling.name = switches[0].name if len(switches) == 1 else f"minigraph-{len(switches)}-switches"
    reporters = {switch.name for switch in switches}
    join_adjacencies(cabling, adjacencies, reporters=reporters, default_rate_bps=default_rate_bps)
    return cabling.finish()


class _Names:
    """Device names as they are first spelled; SONiC compares them without case."""

    def __init__(self) -> None:
        self.first_spelling: dict[str, str] = {}

    def of(self, text: str) -> str:
        name = text.strip('" \t\r\n')  # some generators put names between quotation marks
        return self.first_spelling.setdefault(name.lower(), name)


class _Switch:
    """One minigraph: the switch it is for, and the devices and speeds in it."""

    def __init__(self, path: Path, cabling: Cabling, names: _Names) -> None:
        self.document = load_xml(path)
        self.root = self.document.root
        self.cabling = cabling
        self.names = names
        self.name = names.of(self.root.text_of("Hostname")) if self.root.tag == ROOT else ""
        if not self.name:
            self._mistake(self.root, "no minigraph of a switch", f"<{ROOT}> with a <Hostname>")
        self.type_of = dict(self._types())
        self.rate_bps_of = dict(self._rates_bps())

    def add_own_node(self) -> None:
        """Add the switch, of which there may be only one file."""
        where = self.document.where(next(self.root.each("Hostname")))
        if self.name in self.cabling.nodes:
            found = f"the switch {self.name!r} a second time (first at {self.cabling.nodes[self.name].where})"
            self.cabling.add_mistakes(Mistake(where=where, found=found, allowed="one file for each switch"))
        tier = TIER_OF_TYPE.get(self.type_of.get(self.name, ""), UNKNOWN_TIER)
        self.cabling.add_node(self.name, NodeKind.SWITCH, where=where, tier=tier)

    def adjacencies(self) -> Iterator[Adjacency]:
        """Yield the links of the fabric, the switch's own end first; their devices are added on the way."""
        left_out: Counter[str] = Counter()
        linked = {self.name}
        for link in self.root.each("PngDec", "DeviceInterfaceLinks", "DeviceLinkBase"):
            link_type = link.text_of("ElementType")
            if link.text_of("ChassisInternal").lower() == "true":
                left_out["links inside a chassis"] += 1
            elif link_type not in LINK_TYPES:
                left_out[f"links of type {link_type or 'unknown'}"] += 1
            elif ends := self._ends(link):
                linked.update(node for node, _ in ends)
                yield self._adjacency(link, *ends)
        left_out["devices without a link"] = len(self.type_of.keys() - linked)
        self.cabling.notes.extend(
            f"{self.document.path}: {what}, left out: {number}" for what, number in left_out.items() if number
        )

    def _ends(self, link: Element) -> tuple[End, End] | None:
        """Return both ends of a link, the switch's own first, or None where one is missing."""
        start, end = (
            (self.names.of(link.text_of(f"{side}Device")), link.text_of(f"{side}Port")) for side in ("Start", "End")
        )
        if not all((*start, *end)):
            allowed = "StartDevice, StartPort, EndDevice and EndPort"
            self._mistake(link, "a link without both of its ends", allowed)
            return None
        return (end, start) if end[0] == self.name else (start, end)

    def _adjacency(self, link: Element, here: End, there: End) -> Adjacency:
        where = self.document.where(link)
        for node, _ in (here, there):
            device_type = self.type_of.get(node, "")
            tier = TIER_OF_TYPE.get(device_type, UNKNOWN_TIER)
            self.cabling.add_node(node, kind_of(node, device_type), where=where, tier=tier)
        rate_bps = self._speed_bps(link, "Bandwidth")
        if rate_bps is None and here[0] == self.name:
            rate_bps = self.rate_bps_of.get(here[1])
        return Adjacency(here=here, there=there, where=where, rate_bps=rate_bps)

    def _types(self) -> Iterator[tuple[str, str]]:
        for device in self.root.each("PngDec", "Devices", "Device"):
            name = self.names.of(device.text_of("Hostname"))
            if name:
                yield name, device.text_of("ElementType") or device.attributes.get("type", "")
            else:
                self._mistake(device, "a device without a name", "a <Hostname>")

    def _rates_bps(self) -> Iterator[tuple[str, int]]:
        """Yield the rates of the switch's own ports."""
        for info in self.root.each("DeviceInfos", "DeviceInfo"):
            if info.text_of("HwSku") == self.root.text_of("HwSku"):
                for port in info.each("EthernetInterfaces", "EthernetInterface"):
                    rate_bps = self._speed_bps(port, "Speed")
                    if rate_bps is not None:
                        yield port.text_of("InterfaceName"), rate_bps

    def _speed_bps(self, element: Element, tag: str) -> int | None:
        """Return the speed that a child gives, None where it gives none."""
        for child in element.each(tag):
            if is_speed(child.text):
                return int(child.text) * 10**6
            if child.text:
                found, allowed = f"a speed of {quote(child.text)}", 'megabits a second, such as "400000"'
                self._mistake(child, found, allowed)
        return None

    def _mistake(self, element: Element, found: str, allowed: str) -> None:
        self.cabling.add_mistakes(Mistake(where=self.document.where(element), found=found, allowed=allowed))
