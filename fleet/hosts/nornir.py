"""Nornir's SimpleInventory: `hosts.yaml`, hosts by name with hostname, port and username; groups beside it.

Source: Nornir, "Inventory"; containerlab writes one for each lab (`nornir-simple-inventory.yml`).
Left out: passwords and connection options, which are never read.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fabrictune.fleet.hosts.host import FleetHost, make_host
from fabrictune.foundation.documents import Document, load_yaml
from fabrictune.foundation.errors import InputError, Mistake

KEYS = ("hostname", "port", "username", "password", "platform", "groups", "data", "connection_options")
MAX_GROUPS_DEEP = 16


def is_nornir_tree(tree: Any) -> bool:
    """Return whether values of a YAML file are hosts by name."""
    return (
        isinstance(tree, dict)
        and bool(tree)
        and all(isinstance(body, dict) and set(body) <= set(KEYS) for body in tree.values())
        and any("hostname" in body or "groups" in body for body in tree.values())
    )


def read_nornir(document: Document) -> Iterator[FleetHost]:
    """Yield the hosts of a file, with what `groups.yaml` and `defaults.yaml` beside it give; raises InputError."""
    groups, defaults = (_beside(document.path, name) for name in ("groups.yaml", "defaults.yaml"))
    for name, body in document.tree.items():
        where = document.where(name)
        inherited = list(_group_bodies(groups, body.get("groups"), where, 0))
        values = {
            key: next((one[key] for one in (body, *inherited, defaults) if one.get(key) not in (None, "")), None)
            for key in ("hostname", "port", "username")
        }
        if any(isinstance(value, dict | list) for value in values.values()):
            raise InputError(Mistake(where=where, found="a mapping or a list", allowed="hostname, port and username"))
        yield make_host(name, where=where, address=values["hostname"], user=values["username"], port=values["port"])


def _group_bodies(groups: Mapping[str, Any], names: Any, where: str, depth: int) -> Iterator[Mapping[str, Any]]:
    if names is not None and not isinstance(names, list):
        raise InputError(Mistake(where=where, found="groups that are no list", allowed="a list of names"))
    for name in names or () if depth < MAX_GROUPS_DEEP else ():
        body = groups.get(str(name))
        if isinstance(body, dict):
            yield body
            yield from _group_bodies(groups, body.get("groups"), where, depth + 1)


def _beside(path: Path, name: str) -> Mapping[str, Any]:
    file = path.with_name(name)
    tree = load_yaml(file).tree if file.is_file() and file != path else {}
    return tree if isinstance(tree, dict) else {}
