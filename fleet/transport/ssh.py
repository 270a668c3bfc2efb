"""Nodes reached by SSH: one connection and one command a node, and no host key is ever accepted that is not known.

Jump hosts (ProxyJump) are connected to once and shared, and their keys are held to the same rule. Keys come from the
agent and from files; a password is never asked for.

Source: RFC 4252 to 4254; OpenSSH, sshd(8) on known_hosts and ssh(1) on -J; by paramiko.
"""

import getpass
import logging
import shlex
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabrictune.fleet.hosts.host import SSH_PORT, FleetHost, parse_target
from fabrictune.fleet.hosts.ssh_config import SshSettings
from fabrictune.fleet.transport.answer import AskError, Limits, State
from fabrictune.fleet.transport.known_hosts import read_known_hosts
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.extras import require_extra

if TYPE_CHECKING:
    import paramiko

COMMAND = "sh -s"
PIECE_BYTES = 2**16
POLL_S = 0.2
KNOWN_HOSTS = Path("~/.ssh/known_hosts")
MAX_JUMPS = 4
KEEPALIVE_S = 10
MAX_SAID_BYTES = 2**12


class SshTransport:
    """Asks nodes by SSH. `identity` is a private key's file, besides those of the agent and of ssh_config."""

    def __init__(
        self,
        limits: Limits,
        *,
        known_hosts: Path | None = None,
        identity: Path | None = None,
        settings: SshSettings | None = None,
    ) -> None:
        require_extra("paramiko", extra="fleet", where="fleet by SSH")
        import paramiko

        logging.getLogger("paramiko").setLevel(logging.CRITICAL)  # what went wrong is in the answer
        self.limits, self.identity, self.settings = limits, identity, settings
        self.known_hosts = known_hosts or KNOWN_HOSTS.expanduser()
        self._keys = read_known_hosts(self.known_hosts, is_named=known_hosts is not None)
        self._paramiko = paramiko
        self._jumps: dict[str, paramiko.SSHClient] = {}
        self._lock = threading.Lock()

    def ask(self, host: FleetHost, script: str, stop: threading.Event) -> bytes:
        """Return what the script printed; raises AskError."""
        with ExitStack() as stack:
            client = self._connected(host, self._way_to(host))
            stack.callback(client.close)
            return self._run(client, script, stop)

    def start(self, host: FleetHost, words: Sequence[str]) -> "SshProgram":
        """Start a program on a host, whose streams stay open until `close`; raises AskError."""
        client = self._connected(host, self._way_to(host))
        try:
            transport = client.get_transport()
            assert transport, "it is connected"
            transport.set_keepalive(KEEPALIVE_S)
            channel = transport.open_session(timeout=self.limits.login_s)
            channel.exec_command(shlex.join(words))
        except (self._paramiko.SSHException, EOFError, OSError) as error:
            client.close()
            raise AskError(State.ENDED, str(error) or "the connection was closed") from None
        return SshProgram(client, channel)

    def describe(self, host: FleetHost) -> str:
        """Return the command as a shell takes it."""
        jump = f"-J {host.jump} " if host.jump else ""
        port = f"-p {host.port} " if host.port else ""
        user = f"{host.user}@" if host.user else ""
        return f"ssh -o StrictHostKeyChecking=yes -o BatchMode=yes {jump}{port}{user}{host.address} {COMMAND} < script"

    def close(self) -> None:
        """Close the connections to jump hosts."""
        with self._lock:
            for client in self._jumps.values():
                client.close()
            self._jumps.clear()

    def _way_to(self, host: FleetHost) -> Any:
        """Return a channel through the jump hosts, None for the network itself; raises AskError."""
        if not host.jump:
            return None
        with self._lock:
            client: paramiko.SSHClient | None = None
            targets = host.jump.split(",")
            if len(targets) > MAX_JUMPS:
                raise AskError(State.UNREACHABLE, f"more than {MAX_JUMPS} jump hosts")
            for number, target in enumerate(targets):
                way = ",".join(targets[: number + 1])
                if way not in self._jumps:
                    jump = self._jump_host(target)
                    channel = None if client is None else self._channel(client, jump)
                    try:
                        self._jumps[way] = self._connected(jump, channel)
                    except AskError as error:
                        raise AskError(error.state, f"jump host {target}: {error.detail or error.state}") from None
                client = self._jumps[way]
        assert client, "there is one jump at least"
        return self._channel(client, host)

    def _jump_host(self, target: str) -> FleetHost:
        try:
            host = parse_target(target.removeprefix("ssh://"), where="ProxyJump")
        except InputError as error:
            raise AskError(State.UNREACHABLE, error.mistakes[0].found) from None
        return self.settings.applied_to(host) if self.settings else host

    def _channel(self, client: "paramiko.SSHClient", host: FleetHost) -> Any:
        transport = client.get_transport()
        if transport is None:
            raise AskError(State.UNREACHABLE, "the connection to the jump host is gone")
        try:
            destination = host.address, host.port or SSH_PORT
            return transport.open_channel("direct-tcpip", destination, ("127.0.0.1", 0), timeout=self.limits.connect_s)
        except self._paramiko.ChannelException as error:
            raise AskError(State.REFUSED, f"through the jump host: {error.text}") from None
        except (self._paramiko.SSHException, OSError, EOFError) as error:
            raise AskError(State.UNREACHABLE, f"through the jump host: {error}") from None

    def _connected(self, host: FleetHost, channel: Any) -> "paramiko.SSHClient":
        """Return a connection whose host key is known and that is logged in; raises AskError."""
        client = self._paramiko.SSHClient()
        client.set_missing_host_key_policy(_refuse_unknown(self._paramiko))
        name = host.address if (host.port or SSH_PORT) == SSH_PORT else f"[{host.address}]:{host.port}"
        for key in self._keys.keys_of(name):
            client.get_host_keys().add(name, key.get_name(), key)
        with self._told_apart(), ExitStack() as stack:
            stack.callback(client.close)
            destination = host.address, host.port or SSH_PORT
            sock = channel or socket.create_connection(destination, timeout=self.limits.connect_s)
            stack.callback(sock.close)
            client.connect(
                host.address,
                port=host.port or SSH_PORT,
                username=host.user or getpass.getuser(),
                key_filename=[  # type: ignore[arg-type]  # its stubs have one alone
                    str(Path(file).expanduser()) for file in (self.identity, host.key_file) if file
                ],
                sock=sock,
                banner_timeout=self.limits.handshake_s,
                timeout=self.limits.handshake_s,
                auth_timeout=self.limits.login_s,
                channel_timeout=self.limits.connect_s,
            )
            stack.pop_all()
        return client

    @contextmanager
    def _told_apart(self) -> Iterator[None]:
        """Raise AskError for what can go wrong while a connection is made, each by its name."""
        known = self._paramiko
        try:
            yield
        except _UnknownKeyError as error:
            raise AskError(State.KEY_UNKNOWN, f"{error}; not in {self.known_hosts}") from None
        except known.BadHostKeyException as error:
            found = f"{error.key.get_name()} {_fingerprint(error.key)}"
            raise AskError(State.KEY_CHANGED, f"{found}, where {self.known_hosts} has another") from None
        except known.AuthenticationException as error:
            raise AskError(State.NOT_AUTHENTICATED, str(error).rstrip(".")) from None
        except ConnectionRefusedError:
            raise AskError(State.REFUSED) from None
        except socket.gaierror as error:
            raise AskError(State.UNREACHABLE, error.strerror or "unknown name") from None
        except TimeoutError:
            raise AskError(State.TIMED_OUT, f"no connection within {self.limits.connect_s:g} s") from None
        except (known.SSHException, EOFError) as error:
            text = str(error).rstrip(".") or "the connection was closed"
            if "banner" in text or "imeout" in text or "No existing session" in text:
                raise AskError(State.TIMED_OUT, f"no SSH handshake within {self.limits.handshake_s:g} s") from None
            raise AskError(State.ENDED, f"in the handshake: {text}") from None
        except OSError as error:
            raise AskError(State.UNREACHABLE, error.strerror or str(error)) from None

    def _run(self, client: "paramiko.SSHClient", script: str, stop: threading.Event) -> bytes:
        """Run the script on an open connection; raises AskError."""
        transport = client.get_transport()
        assert transport, "it is connected"
        ends_s, output = time.monotonic() + self.limits.run_s, bytearray()
        try:
            channel = transport.open_session(timeout=self.limits.login_s)
            channel.settimeout(POLL_S)
            channel.set_combine_stderr(False)
            channel.exec_command(COMMAND)
            to_send = script.encode()
            while True:
                if stop.is_set():
                    raise AskError(State.STOPPED)
                if time.monotonic() > ends_s:
                    raise AskError(
                        State.TIMED_OUT, f"running for {self.limits.run_s:g} s, {len(output):,} bytes so far"
                    )
                with suppress(TimeoutError):
                    if to_send:
                        to_send = to_send[channel.send(to_send) :]
                        if not to_send:
                            channel.shutdown_write()
                        continue
                    piece = channel.recv(PIECE_BYTES)
                    if not piece:
                        break
                    output += piece
                    if len(output) > self.limits.max_bytes:
                        raise AskError(State.UNUSABLE, f"more than {self.limits.max_bytes:,} bytes")
            channel.status_event.wait(self.limits.login_s)
            status = channel.exit_status
        except (self._paramiko.SSHException, EOFError, OSError) as error:
            detail = f"after {len(output):,} bytes: {str(error) or 'the connection was closed'}"
            raise AskError(State.ENDED, detail) from None
        if status or not output:
            what = "the connection was closed" if status == -1 else f"exit status {status}"
            raise AskError(State.ENDED, f"{what} after {len(output):,} bytes")
        return bytes(output)


class SshProgram:
    """A program on a host; closing it ends its input."""

    def __init__(self, client: "paramiko.SSHClient", channel: "paramiko.Channel") -> None:
        self._client, self._channel, self._said = client, channel, b""

    def send(self, data: bytes) -> None:
        """Send all of it; raises OSError."""
        self._channel.sendall(data)

    def receive(self) -> bytes:
        """Return what the program printed, b"" at its end."""
        try:
            piece = self._channel.recv(PIECE_BYTES)
            while self._channel.recv_stderr_ready():
                self._said = (self._said + self._channel.recv_stderr(PIECE_BYTES))[-MAX_SAID_BYTES:]
        except (OSError, EOFError):
            return b""
        return piece

    def last_words(self) -> str:
        """Return the end of what the program said on standard error."""
        with suppress(OSError, EOFError):
            self._channel.settimeout(POLL_S)
            while piece := self._channel.recv_stderr(PIECE_BYTES):
                self._said = (self._said + piece)[-MAX_SAID_BYTES:]
        return self._said.decode(errors="replace")

    def close(self) -> None:
        """End the program's input, and the connection."""
        with suppress(OSError, EOFError):
            self._channel.close()
        self._client.close()


class _UnknownKeyError(Exception):
    """A host key that is in no file."""


def _refuse_unknown(known: Any) -> Any:
    """Return what paramiko asks about a key that no file has."""

    class RefuseUnknown(known.MissingHostKeyPolicy):  # type: ignore[misc]
        def missing_host_key(self, client: object, hostname: str, key: Any) -> None:
            raise _UnknownKeyError(f"{key.get_name()} {_fingerprint(key)}")

    return RefuseUnknown()


def _fingerprint(key: Any) -> str:
    return str(key.fingerprint)
