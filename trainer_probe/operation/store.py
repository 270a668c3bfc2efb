"""The store of one generation: a process of the first node that serves a TCPStore of torch's, and ends with it.

It is of an executor, so that the ranks keep it while a killed driver is started again.
"""

import json
import socket
from collections.abc import Mapping
from typing import Any

from fabrictune.collectives.startup.servers import QUICK_RESOLVER
from fabrictune.collectives.startup.stores import listen, serve_tcp_store


def serve_store(task: Mapping[str, Any], channel: socket.socket) -> int:
    """Serve on the task's address, at a port the system chooses, until the executor closes the channel."""
    import os

    os.environ.update(QUICK_RESOLVER)
    listener = listen(str(task["address"]))
    port = listener.getsockname()[1]
    store = serve_tcp_store(listener)
    channel.send(json.dumps({"kind": "store ready", "port": port}).encode())
    channel.recv(1)
    del store
    return 0
