"""Nodes that a launcher started: torchrun or srun, with this command as each rank.

Rank 0 is the controller. The first rank of each other machine connects to it and serves it as a node's program, other
ranks have nothing to do. Where to connect, and the token without which nobody is served, go through the launcher's
store. The network carries orders here, as a launcher's own does; over SSH it need not.
"""

import hmac
import json
import secrets
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.collectives.startup.launchers import Launched
from fabrictune.collectives.startup.stores import connect_store, listen, serve_tcp_store
from fabrictune.fleet.transport.answer import AskError, State
from fabrictune.fleet.transport.asking import Program
from fabrictune.fleet.transport.processes import LocalProgram
from fabrictune.foundation.errors import Mistake, StartupError
from fabrictune.foundation.time_limits import scaled
from fabrictune.validate.cluster.crew import Crew
from fabrictune.validate.cluster.nodes.node_process import SocketChannel, serve

if TYPE_CHECKING:
    import torch.distributed as dist

START_S = 120.0  # for all ranks to come
CONNECT_S = 30.0
PIECE_BYTES = 2**16
MAX_GREETING = 512


class SocketProgram:
    """The connection of a node that serves."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, data: bytes) -> None:
        """Send all of it; raises OSError."""
        self._connection.sendall(data)

    def receive(self) -> bytes:
        """Return what came, b"" at its end."""
        try:
            return self._connection.recv(PIECE_BYTES)
        except OSError:
            return b""

    def last_words(self) -> str:
        """Nothing: what a rank says is on its launcher's output."""
        return ""

    def close(self) -> None:
        """End the node's input."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


@dataclass(frozen=True, kw_only=True)
class _Rank:
    """What a rank says of itself."""

    host: str
    local_rank: int


@contextmanager
def launched_crew(launched: Launched) -> Iterator[Crew | None]:
    """Give rank 0 its crew; None on other ranks, after they have served. Raises StartupError."""
    with _store(launched) as store:
        own = {"host": socket.gethostname(), "local_rank": launched.local_rank}
        store.set(f"rank/{launched.rank}", json.dumps(own))
        if launched.rank:
            if launched.local_rank == 0:
                _serve(launched, store)
            yield None
            return
        ranks = {rank: _Rank(**json.loads(_get(store, f"rank/{rank}"))) for rank in range(launched.num_ranks)}
        names = _names(ranks)
        token = secrets.token_hex(16)
        with socket.create_server(("", 0), backlog=max(1, len(names))) as listener:
            store.set("leader", json.dumps({"port": listener.getsockname()[1], "token": token}))
            connections = _accept(listener, token, [rank for rank in names if rank])

            def start(name: str, words: Sequence[str]) -> Program:
                rank = next(rank for rank, own in names.items() if own == name)
                if rank == 0:
                    return LocalProgram(words)
                if rank not in connections:
                    raise AskError(State.UNREACHABLE, f"rank {rank} did not connect within {CONNECT_S:.0f} s")
                return SocketProgram(connections[rank])

            yield Crew(list(names.values()), start, python=sys.executable, parallel=len(names), start_s=START_S)


def _serve(launched: Launched, store: "dist.Store") -> None:
    """Serve rank 0 as this machine's program until it ends."""
    leader = json.loads(_get(store, "leader"))
    try:
        with socket.create_connection((launched.host, leader["port"]), timeout=scaled(CONNECT_S)) as connection:
            greeting = {"rank": launched.rank, "token": leader["token"]}
            connection.sendall(json.dumps(greeting).encode() + b"\n")
            serve(SocketChannel(connection))
    except OSError as error:
        where = f"{launched.host}:{leader['port']}"
        raise StartupError(Mistake(where=where, found=f"rank 0 cannot be reached ({error})")) from None


def _accept(listener: socket.socket, token: str, expected: Sequence[int]) -> dict[int, socket.socket]:
    """Return the connections by rank, of those that know the token and come in time."""
    connections: dict[int, socket.socket] = {}
    listener.settimeout(scaled(CONNECT_S))
    with suppress(TimeoutError):
        while len(connections) < len(expected):
            connection, _ = listener.accept()
            connection.settimeout(scaled(CONNECT_S))
            greeting = _greeting(connection)
            if hmac.compare_digest(str(greeting.get("token")), token) and greeting.get("rank") in expected:
                connection.settimeout(None)
                connections[int(str(greeting["rank"]))] = connection
            else:
                connection.close()
    return connections


def _greeting(connection: socket.socket) -> Mapping[str, object]:
    line = bytearray()
    try:
        while not line.endswith(b"\n") and len(line) < MAX_GREETING:
            piece = connection.recv(1)
            if not piece:
                return {}
            line += piece
        values = json.loads(line)
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def _names(ranks: Mapping[int, _Rank]) -> dict[int, str]:
    """Return the name of each machine by its first rank; machines of one name are told apart by that rank."""
    firsts = {rank: one.host for rank, one in ranks.items() if one.local_rank == 0}
    hosts = list(firsts.values())
    return {rank: host if hosts.count(host) == 1 else f"{host}-rank{rank}" for rank, host in firsts.items()}


@contextmanager
def _store(launched: Launched) -> Iterator["dist.Store"]:
    """Give the launcher's store, or the one that rank 0 serves at its address."""
    served = None
    if launched.rank == 0 and not launched.has_store:
        try:
            served = serve_tcp_store(listen("", launched.port))
        except OSError as error:
            step = "set MASTER_PORT to a port that is free"
            mistake = Mistake(where=f"port {launched.port}", found=str(error.strerror), next_step=step)
            raise StartupError(mistake) from None
    address = StoreAddress(scheme="tcp", host=launched.host, port=launched.port)
    yield connect_store(address, attempt=f"{launched.attempt}-cluster", timeout_s=scaled(START_S))
    del served


def _get(store: "dist.Store", key: str) -> bytes:
    import torch.distributed as dist

    try:
        store.wait([key], timedelta(seconds=scaled(START_S)))
    except dist.DistStoreError:
        found = f"no {key} within {scaled(START_S):.0f} s"
        raise StartupError(
            Mistake(where="launcher's store", found=found, next_step="look for a rank that ended")
        ) from None
    return bytes(store.get(key))
