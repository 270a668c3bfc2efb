"""Stores of torch's by their addresses: its own TCPStore, which needs no server, and Redis."""

import socket
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.collectives.startup.retry import retry
from fabrictune.foundation.errors import Mistake, StartupError
from fabrictune.foundation.extras import require_extra

if TYPE_CHECKING:
    import torch.distributed as dist

DEFAULT_TIMEOUT_S = 300.0
DEFAULT_EXPIRY_S = 24 * 3600.0
BACKLOG = 4096  # connections that the system keeps until a server takes them


def connect_store(
    address: StoreAddress,
    *,
    attempt: str,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    expiry_s: float = DEFAULT_EXPIRY_S,
) -> "dist.Store":
    """Return the store of one attempt, whose keys no other attempt sees; raises UnavailableError if it cannot be used.

    Keys in Redis expire `expiry_s` after they were written; those of a TCPStore end with its server.
    """
    require_extra("torch", extra="train", where=f"store {address}")
    if address.scheme == "tcp":
        return _connect_tcp(address, attempt, timeout_s)
    require_extra("redis", extra="redis", where=f"store {address}")
    from fabrictune.collectives.startup.redis_client import RedisClient
    from fabrictune.collectives.startup.redis_store import RedisStore

    client = RedisClient(address, attempt=attempt, timeout_s=timeout_s, expiry_s=expiry_s)
    client.connect()
    return RedisStore(client)


def listen(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """Return a socket that a TCPStore can be served on; clients may come at once, and wait for the server."""
    return socket.create_server((host, port), backlog=BACKLOG)


def serve_tcp_store(listener: socket.socket, *, use_libuv: bool = True) -> "dist.TCPStore":
    """Serve a TCPStore on a socket, in threads of this process, for as long as the returned object lives."""
    import torch.distributed as dist

    host, port = listener.getsockname()[:2]
    return dist.TCPStore(
        host,
        port,
        is_master=True,
        wait_for_workers=False,
        master_listen_fd=listener.detach(),  # the store closes it
        use_libuv=use_libuv,
    )


def _connect_tcp(address: StoreAddress, attempt: str, timeout_s: float) -> "dist.Store":
    import torch.distributed as dist

    from fabrictune.collectives.startup.store_runner import within

    _await_listener(address, timeout_s)
    try:
        store = within(
            timeout_s,
            lambda: dist.TCPStore(
                address.host,
                address.port,
                is_master=False,
                wait_for_workers=False,
                timeout=timedelta(seconds=timeout_s),
            ),
        )
    except dist.DistError as error:
        raise StartupError(_unreachable(address, error)) from error
    return dist.PrefixStore(attempt, store)


def _await_listener(address: StoreAddress, timeout_s: float) -> None:
    """Return when something listens there; torch's own retrying takes longer than its limit, and fills the screen."""
    try:
        retry(
            lambda left_s: socket.create_connection((address.host, address.port), timeout=left_s).close(),
            deadline_s=time.monotonic() + timeout_s,
        )
    except OSError as error:
        raise StartupError(_unreachable(address, error)) from error


def _unreachable(address: StoreAddress, error: Exception) -> Mistake:
    return Mistake(
        where=str(address),
        found=f"cannot be reached ({str(error).splitlines()[0]})",
        next_step="start the process that serves it, or correct the address",
    )
