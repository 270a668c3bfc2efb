"""LLDP neighbours in the JSON of switches: EOS, NX-OS and Junos, short or in detail.

    EOS    show lldp neighbors | json           {"lldpNeighbors": [{"port", "neighborDevice", "neighborPort"}]}
    EOS    show lldp neighbors detail | json    {"lldpNeighbors": {PORT: {"lldpNeighborInfo": [...]}}}
    NX-OS  show lldp neighbors [detail] | json  {"TABLE_nbor": {"ROW_nbor": [...]}}, "TABLE_nbor_detail" alike
    Junos  show lldp neighbors | display json   {"lldp-neighbors-information": [{"lldp-neighbor-information": [...]}]}

Source: Arista eAPI, Cisco NX-API CLI and Junos CLI references.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fabrictune.foundation.documents import Document
from fabrictune.topology.importers.lldp_switch_tables import body_of, full_port_name
from fabrictune.topology.importers.lldpctl import Interface

SWITCH_JSON = re.compile(rb'"lldpNeighbors"|"lldp-neighbors-information"|"TABLE_nbor(?:_detail)?"')
_NXOS = {
    "l_port_id": "port",
    "chassis_id": "chassis",
    "port_id": "far port",
    "sys_name": "device",
    "port_desc": "description",
    "capability": "capability",
    "enabled_capability": "capability",
}
_JUNOS = {
    "lldp-local-port-id": "port",
    "lldp-local-interface": "port",
    "lldp-remote-chassis-id": "chassis",
    "lldp-remote-port-id": "far port",
    "lldp-remote-port-description": "description",
    "lldp-remote-system-name": "device",
}
MAX_DEPTH = 8


def is_switch_json(tree: Any) -> bool:
    """Return whether a JSON value is that of a switch's command."""
    return isinstance(tree, dict) and any(_find(tree, key) is not None for key in _ROOTS)


def switch_interfaces(document: Document) -> Iterator[Interface]:
    """Yield the neighbours that a document lists."""
    eos, junos = _find(document.tree, "lldpNeighbors"), _find(document.tree, "lldp-neighbors-information")
    nxos = _find(document.tree, "TABLE_nbor") or _find(document.tree, "TABLE_nbor_detail")
    if eos is not None:
        yield from _eos(document, eos)
    elif junos is not None:
        for row in _rows(junos):
            for entry in _rows(row.get("lldp-neighbor-information")):
                yield _interface(
                    document, {name: _data(entry.get(key)) for key, name in _JUNOS.items() if key in entry}
                )
    else:
        for row in _rows(nxos):
            for key in ("ROW_nbor", "ROW_nbor_detail"):
                for entry in _rows(row.get(key)):
                    values = {name: _text(entry.get(key)) for key, name in _NXOS.items() if key in entry}
                    if "device" not in values:  # of the short form, whose chassis is the neighbour's name
                        values["device"] = values.pop("chassis", "")
                    yield _interface(document, values)


def _eos(document: Document, neighbours: Any) -> Iterator[Interface]:
    if isinstance(neighbours, list):
        for entry in _rows(neighbours):
            names = {"port": "port", "neighborDevice": "device", "neighborPort": "far port"}
            yield _interface(document, {name: _text(entry.get(key)) for key, name in names.items()})
        return
    for port, body in neighbours.items() if isinstance(neighbours, dict) else ():
        for entry in _rows(body.get("lldpNeighborInfo") if isinstance(body, dict) else None):
            far = entry.get("neighborInterfaceInfo")
            far = far if isinstance(far, dict) else {}
            capabilities = entry.get("systemCapabilities")
            enabled = (
                [key.title() for key, is_on in capabilities.items() if is_on] if isinstance(capabilities, dict) else []
            )
            yield _interface(
                document,
                {
                    "port": port,
                    "device": _text(entry.get("systemName")),
                    "chassis": _text(entry.get("chassisId")),
                    "far port": _text(far.get("interfaceId_v2") or far.get("interfaceId")).strip('"'),
                    "type": "MAC" if far.get("interfaceIdType") == "macAddress" else "",
                    "description": _text(far.get("interfaceDescription")),
                    "capability": ", ".join(enabled),
                },
            )


def _interface(document: Document, values: Mapping[str, str]) -> Interface:
    return Interface(full_port_name(values.get("port", "")), body_of(values), str(document.path))


def _rows(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, or the one in its place."""
    return [row for row in (value if isinstance(value, list) else [value]) if isinstance(row, dict)]


def _data(value: Any) -> str:
    """Return the text of Junos' [{"data": text}]."""
    rows = _rows(value)
    return _text(rows[0].get("data")) if rows else _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _find(tree: Any, key: str) -> Any:
    """Return what stands under a key, at any of the first levels; None where nothing does."""
    level = [tree]
    for _ in range(MAX_DEPTH):
        for entry in level:
            if isinstance(entry, dict) and key in entry:
                return entry[key]
        level = [
            inner
            for entry in level
            if isinstance(entry, dict | list)
            for inner in (entry.values() if isinstance(entry, dict) else entry[:1])
        ][:100]
    return None


_ROOTS = ("lldpNeighbors", "lldp-neighbors-information", "TABLE_nbor", "TABLE_nbor_detail")
