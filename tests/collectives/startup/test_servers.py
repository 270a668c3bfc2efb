"""Store servers: they end with the process that has started them, however it ends."""

import os
import select
import subprocess
import sys

import pytest

from fabrictune.collectives.startup.servers import require_redis_server
from fabrictune.foundation.children import module_command
from fabrictune.foundation.errors import UnavailableError
from tests.patience import patience

OWNER = """
import time
from fabrictune.collectives.startup.servers import start_redis, start_tcp_store
with start_{kind}() as server:
    print(server.process.pid, flush=True)
    time.sleep(1000)
"""


@pytest.mark.parametrize("kind", ["redis", "tcp_store"])
def test_a_server_ends_with_its_owner_that_is_killed(kind: str) -> None:
    if kind == "redis":
        try:
            require_redis_server()
        except UnavailableError as error:
            pytest.skip(str(error))
    else:
        pytest.importorskip("torch")
    with subprocess.Popen([sys.executable, "-c", OWNER.format(kind=kind)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        server = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
    try:
        assert select.select([server], [], [], patience(10))[0] == [server]
    finally:
        os.close(server)


def test_a_server_whose_owner_is_gone_ends_without_a_word() -> None:
    pytest.importorskip("torch")
    reader, writer = os.pipe()
    os.close(reader)
    words = module_command("fabrictune.collectives.startup.servers", "libuv")
    ended = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")
