"""Real servers for the tests of start-up."""

from collections.abc import Iterator

import pytest

from fabrictune.collectives.startup.servers import Server, start_redis, start_tcp_store


@pytest.fixture(scope="module")
def redis_server(has_redis: None) -> Iterator[Server]:
    """A Redis server that the tests of a module share, each with an attempt of its own."""
    with start_redis() as server:
        yield server


@pytest.fixture(scope="module")
def tcp_server() -> Iterator[Server]:
    """A server of torch's TCPStore that the tests of a module share."""
    pytest.importorskip("torch")
    with start_tcp_store() as server:
        yield server


@pytest.fixture(scope="module", params=["redis", "tcp"])
def any_server(request: pytest.FixtureRequest) -> Server:
    """Each kind of server in turn."""
    server: Server = request.getfixturevalue(f"{request.param}_server")
    return server
