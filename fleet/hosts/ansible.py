"""Ansible inventories, as INI or YAML: hosts of groups with the variables that say how they are reached.

Groups give their variables to their hosts and to the groups below them; a host's own come first. Ranges of names
(`gpu[01:64]`) count as Ansible counts them. Variables with Jinja templates are refused where they say how to reach a
host: nothing is evaluated. Containerlab writes such a file for each lab (`ansible-inventory.yml`).

Source: Ansible, "How to build your inventory", and "Connecting to hosts: behavioral inventory parameters".
Left out: vault values, dynamic inventories, `host_vars` and `group_vars` folders.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabrictune.fleet.hosts.host import MAX_HOSTS, FleetHost, make_host
from fabrictune.foundation.documents import Document
from fabrictune.foundation.errors import InputError, Mistake, quote

ALL = "all"
MAX_DEPTH = 32  # of groups in groups, in YAML
MAX_GROUPS = 500  # below one group whose variables are followed
_SECTION = re.compile(r"\[([^\]:]+)(?::(\w+))?\]\s*(?:[#;].*)?")
_RANGE = re.compile(r"\[(\w+):(\w+)(?::(\d+))?\]")
_JUMP = re.compile(r"-J\s*(\S+)|ProxyJump[= ](\S+)")
_VARIABLES = {  # of a host: what says the same
    "address": ("ansible_host", "ansible_ssh_host"),
    "user": ("ansible_user", "ansible_ssh_user"),
    "port": ("ansible_port", "ansible_ssh_port"),
    "key_file": ("ansible_ssh_private_key_file", "ansible_private_key_file"),
}

Variables = dict[str, Any]


@dataclass
class _Group:
    hosts: dict[str, tuple[Variables, str]] = field(default_factory=dict)  # each with its place
    children: dict[str, None] = field(default_factory=dict)
    variables: Variables = field(default_factory=dict)


Groups = dict[str, _Group]


def read_ansible_ini(text: str, path: Path) -> Iterator[FleetHost]:
    """Yield the hosts of an INI inventory; raises InputError."""
    groups: Groups = {"ungrouped": _Group()}
    section, kind = "ungrouped", ""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped, where = line.strip(), f"{path}:{number}"
        if not stripped or stripped[0] in "#;":
            continue
        if stripped.startswith("["):
            match = _SECTION.fullmatch(stripped)
            if match is None or (match[2] or "") not in ("", "vars", "children"):
                allowed = "[group], [group:vars] or [group:children]"
                raise InputError(Mistake(where=where, found=quote(stripped), allowed=allowed))
            section, kind = match[1], match[2] or ""
            groups.setdefault(section, _Group())
        elif kind == "children":
            groups[section].children[stripped.split()[0]] = None
            groups.setdefault(stripped.split()[0], _Group())
        elif kind == "vars":
            name, _, value = stripped.partition("=")
            groups[section].variables[name.strip()] = value.strip().strip("\"'")
        else:
            _add_ini_host(groups[section], stripped, where)
    return _hosts(groups)


def read_ansible_yaml(document: Document) -> Iterator[FleetHost]:
    """Yield the hosts of a YAML inventory; raises InputError."""
    groups: Groups = {}
    for name, body in document.tree.items():
        _add_yaml_group(groups, document, name, body, (name,))
    return _hosts(groups)


def is_ansible_tree(tree: Any) -> bool:
    """Return whether values of a YAML file are groups of an inventory."""
    parts = ("hosts", "children", "vars")
    return (
        isinstance(tree, dict)
        and bool(tree)
        and all(body is None or (isinstance(body, dict) and set(body) <= set(parts)) for body in tree.values())
        and any(isinstance(body, dict) and {"hosts", "children"} & set(body) for body in tree.values())
    )


def _add_ini_host(group: _Group, line: str, where: str) -> None:
    try:
        name, *settings = shlex.split(line, comments=True)
    except ValueError as error:
        raise InputError(Mistake(where=where, found=f"{quote(line)} ({error})", allowed="name key=value ...")) from None
    variables = dict(setting.partition("=")[::2] for setting in settings)
    for expanded in _expanded(name, where):
        group.hosts[expanded] = dict(variables), where


def _add_yaml_group(groups: Groups, document: Document, name: str, body: Any, keys: tuple[str, ...]) -> None:
    group = groups.setdefault(name, _Group())
    parts = {part: (body or {}).get(part) or {} for part in ("hosts", "children", "vars")}
    for part, inner in parts.items():
        if not isinstance(inner, dict) or len(keys) > 2 * MAX_DEPTH:
            found = "not a mapping" if not isinstance(inner, dict) else "groups in too many groups"
            raise InputError(Mistake(where=document.where(*keys, part), found=found, allowed="a mapping by name"))
    group.variables.update(parts["vars"])
    for host, variables in parts["hosts"].items():
        where = document.where(*keys, "hosts", host)
        for expanded in _expanded(host, where):
            group.hosts[expanded] = dict(variables) if isinstance(variables, dict) else {}, where
    for child, inner in parts["children"].items():
        group.children[child] = None
        if inner is not None and not isinstance(inner, dict):
            where = document.where(*keys, "children", child)
            raise InputError(Mistake(where=where, found="not a mapping", allowed="hosts, children and vars"))
        _add_yaml_group(groups, document, child, inner, (*keys, "children", child))


def _hosts(groups: Mapping[str, _Group]) -> Iterator[FleetHost]:
    """Yield every host once, with its variables: its own, those of its groups from the nearest on, those of all."""
    values: dict[str, Variables] = {}
    places: dict[str, str] = {}
    common = groups[ALL].variables if ALL in groups else {}
    for name in groups:
        for host, variables, where in _members(groups, name, {}, set()):
            values.setdefault(host, dict(common)).update(variables)
            places.setdefault(host, where)
        if len(values) > MAX_HOSTS:
            raise InputError(Mistake(where="inventory", found=f"more than {MAX_HOSTS:,} hosts"))
    for group in groups.values():  # a host's own come before all
        for host, (variables, _) in group.hosts.items():
            values[host].update(variables)
    for host, variables in values.items():
        yield _host(host, variables, places[host])


def _members(
    groups: Mapping[str, _Group], name: str, inherited: Variables, seen: set[str]
) -> Iterator[tuple[str, Variables, str]]:
    """Yield the hosts of a group and of those below it, each with the variables of the groups on the way."""
    seen.add(name)
    group = groups[name]
    variables = {**inherited, **group.variables}
    for host, (_, where) in group.hosts.items():
        yield host, variables, where
    for child in group.children if len(seen) < MAX_GROUPS else ():
        if child not in seen:
            yield from _members(groups, child, variables, seen)


def _host(name: str, variables: Mapping[str, Any], where: str) -> FleetHost:
    found = {
        part: next((variables[one] for one in names if variables.get(one) not in (None, "")), None)
        for part, names in _VARIABLES.items()
    }
    for part, value in found.items():
        if isinstance(value, dict | list) or "{{" in str(value):
            shown = quote(str(value))
            step = "write the value itself: nothing in an inventory is evaluated"
            raise InputError(Mistake(where=where, found=f"{part} {shown} of {name}", next_step=step))
    match = _JUMP.search(str(variables.get("ansible_ssh_common_args") or ""))
    return make_host(name, where=where, jump=(match[1] or match[2]).strip("'\"") if match else None, **found)


def _expanded(name: str, where: str) -> list[str]:
    """Return the names of a range such as `gpu[01:64]` or `rack[a:c]`."""
    match = _RANGE.search(name)
    if match is None:
        return [name]
    first, last, step = match[1], match[2], int(match[3] or 1)
    if first.isdecimal() and last.isdecimal() and len(first) < 10 and len(last) < 10 and step:
        numbers = range(int(first), int(last) + 1, step)
        middles = [f"{number:0{len(first)}d}" for number in numbers] if len(numbers) <= MAX_HOSTS else []
    elif len(first) == len(last) == 1 and step:
        middles = [chr(number) for number in range(ord(first), ord(last) + 1, step)]
    else:
        middles = []
    if not middles:
        raise InputError(Mistake(where=where, found=quote(name), allowed="a range such as gpu[01:64] or rack[a:c]"))
    rest = _expanded(name[match.end() :], where)
    if len(middles) * len(rest) > MAX_HOSTS:
        raise InputError(Mistake(where=where, found=f"{quote(name)}: more than {MAX_HOSTS:,} hosts"))
    return [f"{name[: match.start()]}{middle}{end}" for middle in middles for end in rest]
