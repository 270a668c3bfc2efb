"""Connection to a Redis server: authentication, and a deadline for every reply."""

import ssl
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import Connection, SSLConnection
from redis.exceptions import NoScriptError
from redis.retry import Retry

from fabrictune.collectives.startup.addresses import PASSWORD_VARIABLE, StoreAddress
from fabrictune.collectives.startup.redis_commands import SCRIPTS, Command
from fabrictune.foundation.errors import Mistake, StartupError

LOST = (redis.ConnectionError, redis.TimeoutError, OSError)  # what may be better when tried again


def open_connection(address: StoreAddress, timeout_s: float) -> Connection:
    """Return a connection that the server has let in.

    Raises one of LOST where the server cannot be reached, StartupError where it will not have this client or its
    certificate is not to be trusted.
    """
    settings: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "db": address.database,
        "username": address.username,
        "password": address.password,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
    }
    if address.scheme == "redis":
        connection = Connection(**settings)
    else:
        connection = SSLConnection(
            ssl_ca_certs=address.ca_file,
            ssl_certfile=address.certificate_file,
            ssl_keyfile=address.key_file,
            **settings,
        )
    try:
        connection.connect()
    except redis.AuthenticationError as error:
        raise StartupError(not_let_in(address, error)) from error
    except redis.ConnectionError as error:
        if _is_about_certificates(error):
            raise StartupError(_not_trusted(address, error)) from error
        raise
    return connection


def exchange(connection: Connection, command: Command, timeout_s: float) -> Any:
    """Send one command and return its reply; a script that the server does not know is sent in full.

    Raises redis.TimeoutError if no reply has begun in time, and redis.ResponseError where the server refuses.
    """
    try:
        return _send(connection, command, timeout_s)
    except NoScriptError:
        for script in SCRIPTS:
            _send(connection, script.introduce(), timeout_s)
        return _send(connection, command, timeout_s)


def not_let_in(address: StoreAddress, error: Exception) -> Mistake:
    """Describe a server that asks for another password, or for one."""
    given = "the password given" if address.password else "a client without password"
    return Mistake(
        where=str(address),
        found=f"refuses {given} ({error})",
        next_step=f"set {PASSWORD_VARIABLE} to the server's password (requirepass, or the user's in its ACL)",
    )


def _send(connection: Connection, command: Command, timeout_s: float) -> Any:
    connection.send_command(*command)
    if not connection.can_read(timeout=timeout_s):
        raise redis.TimeoutError
    return connection.read_response()


def _not_trusted(address: StoreAddress, error: Exception) -> Mistake:
    return Mistake(
        where=str(address),
        found=f"has a certificate that is not trusted here ({error})",
        next_step="name the authorities that it comes from (--ca-file), or the host as its certificate does",
    )


def _is_about_certificates(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
