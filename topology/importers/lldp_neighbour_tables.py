"""One device's LLDP table in any form: lldpctl's text, JSON, json0 and keyvalue, and the JSON of switches."""

from collections.abc import Iterable
from pathlib import Path

from fabrictune.foundation.documents import parse_json
from fabrictune.foundation.errors import Mistake, quote
from fabrictune.topology.importers.cabling import Cabling
from fabrictune.topology.importers.lldp_keyvalue import KEYVALUE, keyvalue_interfaces
from fabrictune.topology.importers.lldp_switch_json import is_switch_json, switch_interfaces
from fabrictune.topology.importers.lldpctl import (
    TEXT_TITLE,
    Chassis,
    Interface,
    NeighbourTable,
    json_interfaces,
    local_chassis,
    neighbours_of,
    text_interfaces,
)


def read_neighbour_table(text: str, path: Path, cabling: Cabling) -> NeighbourTable:
    """Return the table that a text holds; raises InputError for JSON that is broken."""
    chassis: Chassis | None = None
    interfaces: Iterable[Interface] = ()
    if text.lstrip().startswith("{"):
        document = parse_json(text, path)
        if is_switch_json(document.tree):
            interfaces = switch_interfaces(document)
        else:
            chassis = local_chassis(document.tree)
            interfaces = json_interfaces(document, cabling)
    elif TEXT_TITLE in text:
        interfaces = text_interfaces(text, path)
    elif KEYVALUE.match(text[:8192].encode()):
        interfaces = keyvalue_interfaces(text, path)
    else:
        found = f"the text {quote(text.strip())}"
        allowed = "what lldpctl prints, as text, json, json0 or keyvalue, or a switch's table of neighbours"
        cabling.add_mistakes(Mistake(where=str(path), found=found, allowed=allowed))
    return NeighbourTable(chassis=chassis, neighbours=tuple(neighbours_of(interfaces, cabling)))
