"""An SSH server for each host of a testbed, in namespaces of its own, with keys that were made for this testbed alone.

A host has its own network, processes, mounts and name, and knows the others by name. Its server listens on its
management address only, and ends with everything that it has started.

Source: OpenSSH, sshd_config(5), ssh_config(5); unshare(1).
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.network_namespaces import inside, run_tool
from fabrictune.foundation.time_limits import scaled

SSHD_PLACES = ("/usr/sbin", "/usr/local/sbin", "/sbin")
START_TIMEOUT_S = 30
_POLL_S = 0.02


@dataclass(frozen=True, kw_only=True)
class ServerFiles:
    """The files in a testbed's folder by which its servers are reached."""

    folder: Path

    @property
    def identity(self) -> Path:
        """Private key to log in with."""
        return self.folder / "identity"

    @property
    def known_hosts(self) -> Path:
        """The hosts' keys."""
        return self.folder / "known_hosts"

    @property
    def ssh_config(self) -> Path:
        """How each host is reached, by its name."""
        return self.folder / "ssh_config"

    @property
    def hostfile(self) -> Path:
        """The hosts, a name a line."""
        return self.folder / "hosts.txt"

    @property
    def etc_hosts(self) -> Path:
        """Names and management addresses as the hosts' `/etc/hosts` have them."""
        return self.folder / "etc_hosts"

    @property
    def host_key(self) -> Path:
        """The key of all servers."""
        return self.folder / "host_key"


def find_sshd() -> str:
    """Return the SSH server of this machine; raises UnavailableError."""
    found = shutil.which("sshd", path=os.pathsep.join((*SSHD_PLACES, os.environ.get("PATH", ""))))
    if found is None or shutil.which("ssh-keygen") is None:
        mistake = Mistake(where="sshd", found="not installed", next_step="apt install openssh-server, or --no-ssh")
        raise UnavailableError(mistake)
    return found


def write_server_files(files: ServerFiles, address_by_host: Mapping[str, str]) -> None:
    """Make the keys and write everything by which the hosts are reached."""
    for key in (files.identity, files.host_key):
        key.unlink(missing_ok=True)
        run_tool(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "testbed", "-f", str(key)])
    public_key = files.host_key.with_suffix(".pub").read_text().strip()
    files.known_hosts.write_text("".join(f"{address} {public_key}\n" for address in address_by_host.values()))
    files.hostfile.write_text("".join(f"{host}\n" for host in address_by_host))
    names = "".join(f"{address}\t{host}\n" for host, address in address_by_host.items())
    files.etc_hosts.write_text(f"127.0.0.1\tlocalhost\n{names}")
    files.ssh_config.write_text(
        "".join(
            f"Host {host}\n  HostName {address}\n  User root\n  IdentityFile {files.identity}\n"
            f"  UserKnownHostsFile {files.known_hosts}\n  IdentitiesOnly yes\n"
            for host, address in address_by_host.items()
        )
    )


def start_server(files: ServerFiles, sshd: str, host: str, namespace: str, address: str) -> None:
    """Start a host's server, which goes on when this process ends."""
    config = files.folder / f"sshd-{host}.conf"
    config.write_text(_server_settings(files, address))
    steps = (
        "mount -t proc proc /proc",
        "mount -t tmpfs tmpfs /run",
        "mkdir -p /run/sshd",
        'mount --bind "$1" /etc/hosts',
        'hostname "$2"',
        'exec "$3" -D -e -f "$4"',
    )
    unshared = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child")
    words = (*unshared, "sh", "-c", " && ".join(steps), "sh", str(files.etc_hosts), host, sshd, str(config))
    detached = ["setsid", "--fork", *inside(namespace, *words)]
    with (files.folder / f"sshd-{host}.log").open("wb") as log:
        subprocess.run(detached, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True)  # noqa: S603  # ours


def await_servers(files: ServerFiles, namespace_by_host: Mapping[str, str]) -> None:
    """Return when every server listens; raises UnavailableError with what one said that does not."""
    ends_s = time.monotonic() + scaled(START_TIMEOUT_S)
    for host, namespace in namespace_by_host.items():
        while not run_tool(inside(namespace, "ss", "-Htln", "sport = 22")).strip():
            if time.monotonic() > ends_s:
                said = (files.folder / f"sshd-{host}.log").read_text(errors="replace").strip()
                raise UnavailableError(Mistake(where=f"sshd of {host}", found=said or "does not listen on port 22"))
            time.sleep(_POLL_S)


def _server_settings(files: ServerFiles, address: str) -> str:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")))
    lines = (
        f"ListenAddress {address}",
        f"HostKey {files.host_key}",
        f"AuthorizedKeysFile {files.identity}.pub",
        "PermitRootLogin prohibit-password",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "StrictModes no",
        "UsePAM no",
        "PidFile none",
        "MaxStartups 100",
        f'SetEnv PATH="{path}"',
    )
    return "".join(f"{line}\n" for line in lines)
