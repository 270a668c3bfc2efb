"""A host or switch of a cluster, and how it is reached."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from fabrictune.foundation.errors import InputError, Mistake, quote

MAX_HOSTS = 100_000  # of one inventory
SSH_PORT = 22

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%-]{0,252}")  # a host name or an address, and never an option of ssh
_TARGET = re.compile(r"(?:([^@\s]{1,64})@)?(\[[0-9A-Fa-f:.%\w]{2,64}\]|[^:\s]+|[0-9A-Fa-f:]{3,45})(?::(\d{1,5}))?")


@dataclass(frozen=True, kw_only=True)
class FleetHost:
    """One node; "" and 0 leave a setting to ssh_config and its defaults."""

    name: str
    address: str
    user: str = ""
    port: int = 0
    jump: str = ""  # of ProxyJump: `user@host:port`, several separated by commas
    key_file: str = ""
    where: str = ""  # in the inventory


def make_host(
    name: str,
    *,
    where: str,
    address: object = None,
    user: object = None,
    port: object = None,
    jump: object = None,
    key_file: object = None,
) -> FleetHost:
    """Return a host of an inventory's values; raises InputError for a name, an address or a port that is none."""
    known = _host_name(str(address or name), where)
    if port not in (None, "") and not (str(port).isdecimal() and 0 < int(str(port)[:6]) < 2**16):
        raise InputError(Mistake(where=where, found=f"the port {quote(str(port))}", allowed="1 to 65535"))
    return FleetHost(
        name=_host_name(name, where),
        address=known,
        user=str(user or ""),
        port=int(str(port)) if port else 0,
        jump=str(jump or ""),
        key_file=str(key_file or ""),
        where=where,
    )


def parse_target(text: str, *, where: str) -> FleetHost:
    """Return the host of `user@host:port`; raises InputError."""
    match = _TARGET.fullmatch(text)
    if match is None:
        raise InputError(Mistake(where=where, found=quote(text), allowed="host, user@host or user@host:port"))
    name = match[2].strip("[]")
    return make_host(name, where=where, user=match[1], port=match[3])


def distinct(hosts: Iterable[FleetHost]) -> tuple[FleetHost, ...]:
    """Return the hosts, each name once; raises InputError for one name with two addresses, and for too many."""
    of_name: dict[str, FleetHost] = {}
    mistakes = []
    for host in hosts:
        first = of_name.setdefault(host.name, host)
        if (first.address, first.port) != (host.address, host.port):
            found = f"{quote(host.name)} a second time, at another address (first at {first.where})"
            mistakes.append(Mistake(where=host.where, found=found, next_step="name each host once"))
        if len(of_name) > MAX_HOSTS:
            raise InputError(Mistake(where=host.where, found=f"more than {MAX_HOSTS:,} hosts"))
    if mistakes:
        raise InputError(*mistakes)
    return tuple(of_name.values())


def _host_name(text: str, where: str) -> str:
    if not _NAME.fullmatch(text):
        found, allowed = quote(text), "a host name or an address"
        raise InputError(Mistake(where=where, found=found, allowed=allowed))
    return text
