"""A testbed's life: built, found again by its name, and taken down with everything in it.

Every namespace is named `ftb-NAME-NODE`; what runs in one belongs to the testbed and is ended with it. The hub is the
namespace of a bridge to every host's management port, from which the hosts are reached; it is made first and removed
last, so that whatever was killed half way is found by it.
"""

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.held_signals import HeldSignals
from fabrictune.foundation.network_namespaces import (
    inside,
    list_namespaces,
    processes_in,
    remove_namespace,
    require_namespaces,
    run_batch,
)
from fabrictune.foundation.time_limits import scaled
from fabrictune.testbed.owner import BRIDGE, BUILDS, MAX_FOLDER, RUNS, STAYS, Owner, claim, read_owner
from fabrictune.testbed.plan import (
    MANAGEMENT,
    MANAGEMENT_PORT,
    host_names,
    hub_address,
    management_address,
)
from fabrictune.testbed.servers import ServerFiles, await_servers, find_sshd, start_server, write_server_files
from fabrictune.testbed.shaping import TCP_SETTINGS, admit_filters, shape
from fabrictune.testbed.wiring import NamespaceFabric
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.files import read_fabric, write_fabric

DEFAULT_NAME = "testbed"
HUB = "hub:"  # no name of a node
END_TIMEOUT_S = 10  # for processes that were killed
_POLL_S = 0.01
_NAME = re.compile(r"[a-z0-9]{1,24}")
_MARK = re.compile(rf"ftb-({_NAME.pattern})-(.+)")
_FABRIC = "fabric.json"


@dataclass(frozen=True, kw_only=True)
class Testbed:
    """A testbed that is up."""

    name: str
    built: NamespaceFabric
    files: ServerFiles

    @property
    def fabric(self) -> Fabric:
        """The fabric as it was built."""
        return self.built.fabric

    @property
    def hosts(self) -> list[str]:
        """Names of the hosts."""
        return host_names(self.fabric)

    @property
    def fabric_file(self) -> Path:
        """The planned fabric, as a topology file."""
        return self.files.folder / _FABRIC

    def command(self, *words: str) -> list[str]:
        """Return the command that runs `words` where the hosts are reached by SSH."""
        return inside(hub_of(self.name), *words)

    def host_command(self, host: str, *words: str) -> list[str]:
        """Return the command that runs `words` in the network of a host."""
        return self.built.command(host, *words)

    def interfaces(self) -> dict[str, list[str]]:
        """Return the names of each host's NICs, by rail."""
        port_name, node_name = self.fabric.port_name_P, self.fabric.node_name_N
        return {host: [port_name[port] for port in self.built.ports_of(node_name.index(host))] for host in self.hosts}

    def reached_by(self) -> dict[str, Path]:
        """Return the files by which the hosts are reached, by what they are; none without SSH servers."""
        files = self.files
        if not files.ssh_config.is_file():
            return {}
        return {
            "hostfile": files.hostfile,
            "ssh_config": files.ssh_config,
            "known_hosts": files.known_hosts,
            "identity": files.identity,
        }

    def address(self, host: str) -> str:
        """Return a host's management address."""
        return management_address(self.hosts.index(host))


def prefix_of(name: str) -> str:
    """Return what the names of all namespaces of a testbed begin with; raises InputError for a name it cannot have."""
    if not _NAME.fullmatch(name):
        raise InputError(Mistake(where="--name", found=repr(name), allowed=f"{_NAME.pattern}: letters and digits"))
    return f"ftb-{name}-"


def hub_of(name: str) -> str:
    """Return the namespace from which a testbed's hosts are reached."""
    return prefix_of(name) + HUB


def list_testbeds() -> dict[str, list[str]]:
    """Return the namespaces of each testbed there is, by its name."""
    found: dict[str, list[str]] = {}
    for namespace in sorted(list_namespaces()):
        if match := _MARK.fullmatch(namespace):
            found.setdefault(match[1], []).append(namespace)
    return found


def owner_of(name: str) -> Owner | None:
    """Return the owner of a testbed; None where there is none, or one that was hardly begun."""
    hub = hub_of(name)
    return read_owner(hub) if hub in list_namespaces() else None


def find_testbed(name: str) -> Testbed:
    """Return the testbed of a name that is up; raises InputError where none is."""
    owner = owner_of(name)
    if owner is None or owner.state == BUILDS:
        others = ", ".join(other for other in list_testbeds() if other != name)
        mistake = Mistake(
            where=f"testbed {name!r}",
            found="is not up",
            allowed=others,
            next_step="fabrictune validate testbed up FABRIC",
        )
        raise InputError(mistake)
    built = NamespaceFabric(read_fabric(owner.folder / _FABRIC), prefix_of(name))
    return Testbed(name=name, built=built, files=ServerFiles(folder=owner.folder))


def bring_up(fabric: Fabric, name: str, folder: Path, *, with_ssh: bool = True) -> Testbed:
    """Build a testbed of a planned fabric, which stays; raises UnavailableError, and InputError where one of it is up.

    What a killed process left of that name is removed first; what fails half way is removed again.
    """
    with HeldSignals() as signals:
        return _make(fabric, name, folder, signals, state=STAYS, with_ssh=with_ssh)


@contextmanager
def temporary_testbed(fabric: Fabric, name: str, folder: Path, *, with_ssh: bool = True) -> Iterator[Testbed]:
    """Give a testbed as `bring_up` does, and take it down whatever happens."""
    with HeldSignals() as signals:
        made = _make(fabric, name, folder, signals, state=RUNS, with_ssh=with_ssh)
        try:
            with signals.let_through():
                yield made
        finally:
            take_down(name)


def take_down(name: str) -> int:
    """End every process of a testbed but this one and remove its namespaces, the hub last; returns how many."""
    namespaces = sorted(list_testbeds().get(name, []), key=lambda namespace: namespace == hub_of(name))
    ends_s = time.monotonic() + scaled(END_TIMEOUT_S)
    while left := {pid for namespace in namespaces for pid in processes_in(namespace)} - {os.getpid()}:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > ends_s:  # what the kernel does not let go keeps its own network and nothing else
            break
        time.sleep(_POLL_S)
    for namespace in namespaces:
        remove_namespace(namespace)
    return len(namespaces)


def _make(fabric: Fabric, name: str, folder: Path, signals: HeldSignals, *, state: str, with_ssh: bool) -> Testbed:
    require_namespaces()
    sshd = find_sshd() if with_ssh else ""
    folder = folder.resolve()
    _check_folder(folder)
    _refuse_living(name)
    take_down(name)
    try:
        with signals.let_through():
            made = _build(fabric, name, ServerFiles(folder=folder), sshd)
            claim(hub_of(name), state, folder)
            return made
    except BaseException:
        take_down(name)
        raise


def _build(fabric: Fabric, name: str, files: ServerFiles, sshd: str) -> Testbed:
    hub, hosts = hub_of(name), host_names(fabric)
    run_batch("", [f"netns add {hub}"])
    run_batch(hub, [f"link add {BRIDGE} type bridge", "link set lo up"])
    claim(hub, BUILDS, files.folder)
    write_fabric(fabric, files.folder / _FABRIC)
    built = NamespaceFabric(fabric, prefix_of(name))
    built.build(dict.fromkeys(fabric.node_name_N, TCP_SETTINGS))
    shape(built)
    admit_filters(built)
    _join_management(built, hub, hosts)
    if sshd:
        addresses = {host: management_address(number) for number, host in enumerate(hosts)}
        write_server_files(files, addresses)
        for host, address in addresses.items():
            start_server(files, sshd, host, built.namespace(host), address)
        await_servers(files, {host: built.namespace(host) for host in hosts})
    return Testbed(name=name, built=built, files=files)


def _join_management(built: NamespaceFabric, hub: str, hosts: list[str]) -> None:
    width = MANAGEMENT.prefixlen
    run_batch(hub, [f"address add {hub_address()}/{width} dev {BRIDGE}", f"link set {BRIDGE} up"])
    for number, host in enumerate(hosts):
        namespace, port = built.namespace(host), f"host{number}"
        link = f"link add {port} type veth peer name {MANAGEMENT_PORT} netns {namespace}"
        run_batch(hub, [link, f"link set {port} master {BRIDGE} up"])
        address = f"address add {management_address(number)}/{width} dev {MANAGEMENT_PORT}"
        run_batch(namespace, [address, f"link set {MANAGEMENT_PORT} up"])


def _check_folder(folder: Path) -> None:
    if len(str(folder)) > MAX_FOLDER:
        raise InputError(Mistake(where=str(folder), found="too long a path", allowed=f"up to {MAX_FOLDER} characters"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(Mistake(where=str(folder), found=f"cannot be made ({error.strerror})")) from None


def _refuse_living(name: str) -> None:
    owner = owner_of(name)
    if owner is None or owner.is_abandoned:
        return
    found = "is up" if owner.state == STAYS else f"is in use by process {owner.pid}"
    step = f"fabrictune validate testbed down --name {name}, or another --name"
    raise InputError(Mistake(where=f"testbed {name!r}", found=found, next_step=step))
