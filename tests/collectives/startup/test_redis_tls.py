"""A Redis server behind TLS: its certificate is checked, and the password goes over it."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.collectives.startup.servers import free_port, start_redis
from fabrictune.collectives.startup.stores import connect_store
from fabrictune.foundation.errors import StartupError, UnavailableError
from tests.patience import patience


def make_certificate(folder: Path, subject: str) -> tuple[Path, Path]:
    """Make a certificate for the loopback address that vouches for itself; returns it and its key."""
    certificate, key = folder / f"{subject}.pem", folder / f"{subject}.key"
    kind = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -addext subjectAltName=IP:127.0.0.1"
    files = ("-keyout", key, "-out", certificate, "-subj", f"/CN={subject}")
    subprocess.run(["openssl", "req", *kind.split(), *files], check=True, capture_output=True)
    return certificate, key


@pytest.fixture(scope="module")
def encrypted(has_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreAddress]:
    """A server that listens for TLS only."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    certificate, key = make_certificate(tmp_path_factory.mktemp("tls"), "server")
    port = free_port()
    settings = {
        "port": "0",
        "tls-port": str(port),
        "tls-cert-file": str(certificate),
        "tls-key-file": str(key),
        "tls-auth-clients": "no",
    }
    try:
        server = start_redis(settings=settings)
    except UnavailableError:
        pytest.skip("redis-server was built without TLS")
    with server:
        yield replace(server.address, scheme="rediss", port=port, ca_file=str(certificate))


def test_a_store_works_over_tls(encrypted: StoreAddress) -> None:
    """The server's own authority is trusted, and the password is right."""
    store = connect_store(encrypted, attempt="tls", timeout_s=patience(10))
    store.set("key", "value")
    assert store.get("key") == b"value"


def test_a_certificate_of_somebody_else_is_refused_at_once(encrypted: StoreAddress, tmp_path: Path) -> None:
    """Whoever answers with another certificate gets no password; trying again for a minute would not help."""
    other, _ = make_certificate(tmp_path, "other")
    with pytest.raises(StartupError) as error:
        connect_store(replace(encrypted, ca_file=str(other)), attempt="tls", timeout_s=60)
    assert str(error.value).startswith(f"{encrypted}: has a certificate that is not trusted here (")


def test_a_wrong_password_is_said_over_tls_as_well(encrypted: StoreAddress) -> None:
    """The same words as without TLS."""
    with pytest.raises(StartupError, match="refuses the password given"):
        connect_store(replace(encrypted, password="wrong"), attempt="tls", timeout_s=60)
