"""Inventories: the hosts that arguments name, as files of six forms, lists of Slurm, or single hosts.

A file is told by what is in it. An argument that is no file is a list of hosts.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabrictune.fleet.hosts.ansible import is_ansible_tree, read_ansible_ini, read_ansible_yaml
from fabrictune.fleet.hosts.containerlab import is_containerlab_tree, read_containerlab
from fabrictune.fleet.hosts.host import FleetHost, distinct
from fabrictune.fleet.hosts.host_files import expand_targets, read_host_file
from fabrictune.fleet.hosts.nornir import is_nornir_tree, read_nornir
from fabrictune.fleet.hosts.ssh_config import SshSettings, read_ssh_settings
from fabrictune.foundation.documents import Document, parse_yaml, read_text
from fabrictune.foundation.errors import InputError, Mistake

MAX_INVENTORY_BYTES = 16 * 2**20
FORMS = "a host file, ssh_config, an Ansible inventory (INI or YAML), Nornir's hosts.yaml, a topology of containerlab"

_INI_SECTION = re.compile(r"^\s*\[[^\]\n]+\]\s*(?:[#;].*)?$", re.MULTILINE)
_SSH_HOST = re.compile(r"^\s*host[ \t=]+\S", re.MULTILINE | re.IGNORECASE)
_YAML = re.compile(r"^[^\s#\[][^\n]*:(?:\s|$)", re.MULTILINE)

YAML_FORMS: Mapping[Callable[[Any], bool], Callable[[Document], Iterator[FleetHost]]] = {
    is_containerlab_tree: read_containerlab,
    is_ansible_tree: read_ansible_yaml,
    is_nornir_tree: read_nornir,
}


def read_hosts(arguments: Sequence[str], *, ssh_config: Path | None = None) -> tuple[FleetHost, ...]:
    """Return the hosts of files and lists, with what ssh_config sets for them; raises InputError."""
    hosts = distinct(host for argument in arguments for host in _hosts_of(argument))
    if not hosts:
        raise InputError(Mistake(where=", ".join(arguments), found="no host", allowed=f"{FORMS}, or names"))
    if ssh_config is None:
        return hosts
    settings = read_ssh_settings(ssh_config)
    return tuple(settings.applied_to(host) for host in hosts)


def _hosts_of(argument: str) -> Iterator[FleetHost]:
    path = Path(argument)
    if not path.exists():
        if "/" in argument:
            raise InputError(Mistake(where=argument, found="no such file", next_step="check the path"))
        return expand_targets(argument, where=argument[:60])
    text = read_text(path, max_bytes=MAX_INVENTORY_BYTES)
    if path.suffix in (".yaml", ".yml", ".json"):
        return _yaml_hosts(text, path)
    if _INI_SECTION.search(text) and not _SSH_HOST.search(text):
        return read_ansible_ini(text, path)
    if _SSH_HOST.search(text):
        return SshSettings(text, path).named_hosts()
    if _YAML.search(text):
        return _yaml_hosts(text, path)
    return read_host_file(text, path)


def _yaml_hosts(text: str, path: Path) -> Iterator[FleetHost]:
    document = parse_yaml(text, path)
    for is_form, read in YAML_FORMS.items():
        if is_form(document.tree):
            return read(document)
    raise InputError(Mistake(where=document.where(), found="no inventory that is known", allowed=FORMS))
