"""Address and credentials of a store.

`tcp://host:port` is a TCPStore of torch's, `redis://[user@]host:port[/database]` a Redis server, `rediss://` one behind
TLS. Passwords never stand in an address, which others can read in logs and lists of processes: they come apart from it.
"""

from dataclasses import dataclass, field
from typing import Self
from urllib.parse import SplitResult, urlsplit

from fabrictune.foundation.errors import InputError, Mistake, quote, require_one_of

SCHEMES = ("tcp", "redis", "rediss")
REDIS_PORT = 6379
PASSWORD_VARIABLE = "FABRICTUNE_STORE_PASSWORD"  # noqa: S105  # the name of a variable


@dataclass(frozen=True, kw_only=True)
class StoreAddress:
    """A store, without or with what opens it."""

    scheme: str
    host: str
    port: int
    database: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None  # authorities to trust instead of the system's
    certificate_file: str | None = None  # this client's own, where the server asks for one
    key_file: str | None = None

    @classmethod
    def parse(cls, text: str, *, where: str = "store") -> Self:
        """Return the store of an address; raises InputError."""
        parts = _split(text, where)
        require_one_of(parts.scheme, SCHEMES, where=where, what="kind of store", error=InputError)
        if parts.password is not None:
            raise InputError(
                Mistake(
                    where=where,
                    found="an address with a password in it",
                    next_step=f"take it out, and set {PASSWORD_VARIABLE}",
                )
            )
        port, database = _port(parts), parts.path.strip("/") or "0"
        if not parts.hostname or port is None or not database.isdecimal():
            raise InputError(_no_address(text, where))
        return cls(scheme=parts.scheme, host=parts.hostname, port=port, username=parts.username, database=int(database))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def _split(text: str, where: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError as error:  # brackets that do not match
        raise InputError(_no_address(text, where)) from error


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port or (REDIS_PORT if parts.scheme != "tcp" else None)
    except ValueError:  # no number, or out of range
        return None


def _no_address(text: str, where: str) -> Mistake:
    allowed = "tcp://host:port, redis://host:port/database, rediss://host:port/database"
    return Mistake(where=where, found=quote(text), allowed=allowed)
