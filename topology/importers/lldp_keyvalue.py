"""lldpctl's neighbours as `lldpctl -f keyvalue` prints them: `lldp.eth0.chassis.name=spine1`, a value a line.

A neighbour begins with its `via`; an interface with several has its keys again. A value that goes on in further lines,
as descriptions do, is cut after its first.

Source: lldpd, src/client/kv_writer.c.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fabrictune.topology.importers.lldpctl import Interface

KEYVALUE = re.compile(rb"\A(?:\s*\n)?lldp\.\S+?\.\w+=", re.MULTILINE)
_LINE = re.compile(r"lldp\.(.+?)\.(via|rid|age|chassis\.[\w.-]+|port\.[\w.-]+|[a-z][\w.-]*)=(.*)")
_IDS = ("mac", "ifname", "local", "ip", "ifalias")


def keyvalue_interfaces(text: str, path: Path) -> Iterator[Interface]:
    """Yield the interfaces, each with the object that lldpctl's JSON would have."""
    interface: Interface | None = None
    for number, line in enumerate(io.StringIO(text), start=1):
        found = _LINE.fullmatch(line.rstrip())
        if not found:
            continue
        name, key, value = found[1], found[2], found[3]
        if key == "via" or interface is None or interface.name != name:
            if interface is not None:
                yield interface
            interface = Interface(name, {"chassis": {}, "port": {}}, f"{path}:{number}")
        _add(interface.body, key.split("."), value)
    if interface is not None:
        yield interface


def _add(body: dict[str, Any], keys: list[str], value: str) -> None:
    section = body.get(keys[0])
    if not isinstance(section, dict) or len(keys) < 2:
        return
    if keys[1] in _IDS and len(keys) == 2:
        section.setdefault("id", {"type": keys[1], "value": value})
    elif keys[1] in ("name", "descr"):
        section[keys[1]] = value
    elif keys[2:] == ["enabled"]:
        section.setdefault("capability", []).append({"type": keys[1], "enabled": value == "on"})
