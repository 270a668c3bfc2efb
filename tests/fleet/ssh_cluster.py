"""Hosts for real: each a set of namespaces with an OpenSSH server of its own, on one bridge that nothing else is on.

Commands run in the namespace of the bridge. A host has its own network, processes, mounts and name; a folder of it may
stand in for its `/sys`, files may be laid over its `/etc`, and programs put before its PATH. Faults are those of
servers: slow, hanging before or after the login, dying, without a server, with another key than the one known.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from tests.patience import patience
from tests.real.namespaces import require_namespaces

Fault = Literal["", "slow", "refusing", "key-changed", "key-unknown", "silent", "hanging", "dying", "noisy", "no-login"]

FORCED: dict[Fault, str] = {  # what the server runs instead of what it is asked to
    "slow": "sleep 1; exec sh -s",
    "hanging": "exec sleep 3600",
    "dying": 'printf \'{"fabrictune_node": 1, "sections": [\'; kill -9 $PPID',
    "noisy": "echo welcome to this machine; exec sh -s",
}
SILENT = (
    "import socket,time; s=socket.create_server(('0.0.0.0',22)); print('up',flush=True); s.accept(); time.sleep(3600)"
)
SSHD = "/usr/sbin/sshd"


def require_sshd() -> None:
    """Skip the test, saying why, where no such hosts can be made."""
    require_namespaces()
    if not Path(SSHD).is_file() or shutil.which("ssh-keygen") is None:
        pytest.skip("openssh-server is not installed")


@dataclass(frozen=True, kw_only=True)
class SshNode:
    """One host, by its name."""

    name: str
    fault: Fault = ""
    files: Path | None = None  # a folder with sys/, etc/ and bin/ that this host has
    environment: dict[str, str] = field(default_factory=dict)  # of its logins


class SshCluster:
    """The hosts up and running; commands of `run` reach them, and nothing else does."""

    def __init__(self, folder: Path, nodes: Sequence[SshNode]) -> None:
        self.folder, self.nodes = folder, nodes
        self.hub = f"fleet{os.getpid()}"
        self.identity, self.known_hosts, self.inventory = (
            folder / name for name in ("identity", "known_hosts", "hosts.txt")
        )
        self.config = folder / "ssh_config"

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of fabrictune beside the hosts."""
        return subprocess.run(self._command(words), capture_output=True, text=True, check=False, timeout=patience(120))

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start one, so that a test can interrupt it."""
        return subprocess.Popen(self._command(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def _command(self, words: Sequence[str]) -> list[str]:
        options = ("--known-hosts", str(self.known_hosts), "--identity", str(self.identity))
        config = () if "--ssh-config" in words else ("--ssh-config", str(self.config))
        return ["ip", "netns", "exec", self.hub, sys.executable, "-m", "fabrictune", *words, *options, *config]

    def address(self, number: int) -> str:
        """Return the address of a host by its number."""
        return f"198.18.0.{number + 1}"


@contextmanager
def ssh_cluster(folder: Path, nodes: Sequence[SshNode]) -> Iterator[SshCluster]:
    """Give the hosts, each of whose servers answers or fails as it should; takes them down whatever happens."""
    require_sshd()
    cluster = SshCluster(folder, nodes)
    with ExitStack() as stack:
        _run("ip", "netns", "add", cluster.hub)
        stack.callback(_run, "ip", "netns", "del", cluster.hub)
        _run("ip", "-n", cluster.hub, "link", "add", "bridge", "up", "type", "bridge")
        _run("ip", "-n", cluster.hub, "address", "add", "198.18.0.254/24", "dev", "bridge")
        _run("ip", "-n", cluster.hub, "link", "set", "lo", "up")
        _make_key(cluster.identity)
        _make_key(folder / "host_key")  # of all hosts: what is told apart is where it is known
        _make_key(folder / "other_key")
        known = []
        for number, node in enumerate(nodes):
            namespace = f"{cluster.hub}-{number}"
            _run("ip", "netns", "add", namespace)
            stack.callback(_run, "ip", "netns", "del", namespace)
            _join(cluster, namespace, number)
            if node.fault != "refusing":
                stack.enter_context(_server(cluster, namespace, node, number))
            key = "other_key" if node.fault == "key-changed" else "host_key"
            if node.fault != "key-unknown":
                known.append(f"{cluster.address(number)} {(folder / f'{key}.pub').read_text()}")
        cluster.known_hosts.write_text("".join(known))
        cluster.inventory.write_text("".join(f"{node.name}\n" for node in nodes))
        cluster.config.write_text(
            "".join(
                f"Host {node.name}\n  HostName {cluster.address(number)}\n  User root\n"
                for number, node in enumerate(nodes)
            )
        )
        _wait_for_servers(cluster)
        yield cluster


def _join(cluster: SshCluster, namespace: str, number: int) -> None:
    port = f"port{number}"
    _run("ip", "-n", cluster.hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", namespace)
    _run("ip", "-n", cluster.hub, "link", "set", port, "master", "bridge", "up")
    _run("ip", "-n", namespace, "address", "add", f"{cluster.address(number)}/24", "dev", "eth0")
    _run("ip", "-n", namespace, "link", "set", "eth0", "up")
    _run("ip", "-n", namespace, "link", "set", "lo", "up")


@contextmanager
def _server(cluster: SshCluster, namespace: str, node: SshNode, number: int) -> Iterator[None]:
    command = ["ip", "netns", "exec", namespace, "unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child"]
    if node.fault == "silent":
        command = [*command[:4], sys.executable, "-c", SILENT]
    else:
        config = cluster.folder / f"sshd{number}.conf"
        config.write_text(_sshd_config(cluster, node))
        steps = ["mount -t proc proc /proc", "mount -t tmpfs tmpfs /run", "mkdir /run/sshd", f"hostname {node.name}"]
        if node.files:
            etc = f"mount -t overlay overlay -o lowerdir={node.files}/etc:/etc /etc"
            steps += [f"mount --bind {node.files}/sys /sys", etc]
        script = " && ".join([*steps, f"exec {SSHD} -D -e -f {config}"])
        command += ["sh", "-c", script]
    log = (cluster.folder / f"sshd{number}.log").open("wb")
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()
        log.close()


def _sshd_config(cluster: SshCluster, node: SshNode) -> str:
    allowed = "no" if node.fault == "no-login" else "prohibit-password"
    path = f"{node.files}/bin:{os.environ['PATH']}" if node.files else os.environ["PATH"]
    environment = {"PATH": path, **node.environment}
    lines = [
        f"HostKey {cluster.folder / 'host_key'}",
        f"AuthorizedKeysFile {cluster.identity}.pub",
        f"PermitRootLogin {allowed}",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "StrictModes no",
        "UsePAM no",
        "PidFile none",
        "AllowTcpForwarding yes",
        "SetEnv " + " ".join(f'{name}="{value}"' for name, value in environment.items()),
    ]
    if node.fault in FORCED:
        lines.append(f"ForceCommand {FORCED[node.fault]}")
    return "\n".join(lines) + "\n"


def _wait_for_servers(cluster: SshCluster) -> None:
    """Wait until every server listens, looked at from inside its own namespace."""
    ends_s = time.monotonic() + patience(30)
    for number, node in enumerate(cluster.nodes):
        words = ("ip", "netns", "exec", f"{cluster.hub}-{number}", "ss", "-Htln", "sport = 22")
        while node.fault != "refusing" and not _run(*words).strip():
            assert time.monotonic() < ends_s, (cluster.folder / f"sshd{number}.log").read_text()


def _make_key(path: Path) -> None:
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", socket.gethostname(), "-f", str(path))


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=patience(60)).stdout
