"""One rank of the diagnostics: a process that takes orders until it is told to end.

`python -m fabrictune.diagnostics.rank_process` reads its settings as JSON from the standard input.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fabrictune.collectives.startup.addresses import StoreAddress
from fabrictune.diagnostics.exchange import RankSide
from fabrictune.diagnostics.node_process import run_apart
from fabrictune.foundation.children import ending_with_parent, module_command

_ORDER_S = 900.0  # without an order for so long, the leader is gone
_START_S = 120.0


@dataclass(frozen=True, kw_only=True)
class RankSettings:
    """What a rank needs to take part."""

    host: str  # of the store
    port: int
    attempt: str
    rank: int
    folder: str
    interface: str = ""  # through which ranks communicate; gloo chooses where it is empty
    prefix: Sequence[str] = ()  # before the commands of its tests


@contextmanager
def rank_process(settings: RankSettings) -> Iterator["subprocess.Popen[str]"]:
    """Give a rank's process, which is ended with the block."""
    with subprocess.Popen(  # noqa: S603  # this interpreter and this module
        [*ending_with_parent(), *module_command(__name__)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # Ctrl-C is for the leader
    ) as process:
        assert process.stdin, "a pipe"
        try:
            process.stdin.write(json.dumps(asdict(settings)))
            process.stdin.close()
            yield process
        finally:
            process.kill()


@contextmanager
def local_ranks(
    num_ranks: int, folder: Path, address: tuple[str, int], prefixes: Mapping[int, Sequence[str]] | None = None
) -> Iterator[list["subprocess.Popen[str]"]]:
    """Give processes of this machine as ranks, each with a folder of its own, that communicate over loopback."""
    with ExitStack() as stack:
        processes = []
        for rank in range(num_ranks):
            own = folder / f"rank{rank}"
            own.mkdir()
            settings = RankSettings(
                host=address[0],
                port=address[1],
                attempt="diagnose",
                rank=rank,
                folder=str(own),
                interface="lo",
                prefix=(prefixes or {}).get(rank, ()),
            )
            processes.append(stack.enter_context(rank_process(settings)))
        yield processes


def take_orders(settings: RankSettings) -> None:
    """Take orders until one is to end, or none comes."""
    from fabrictune.collectives.startup.stores import connect_store

    address = StoreAddress(scheme="tcp", host=settings.host, port=settings.port)
    store = connect_store(address, attempt=settings.attempt, timeout_s=_START_S)
    orders = RankSide(store, settings.rank)
    while (order := orders.next_order(limit_s=_ORDER_S)) is not None:
        orders.answer(order, _carry_out(order, settings, store))
        if order["do"] == "end":
            return


def _carry_out(order: Mapping[str, Any], settings: RankSettings, store: Any) -> Any:
    from fabrictune.collectives.measurement.clocks import host_number
    from fabrictune.diagnostics.group_test import run_group

    if order["do"] == "introduce":
        return {"host": socket.gethostname(), "host_number": host_number(), "pid": os.getpid()}
    if order["do"] == "node test":
        return run_apart(order["test"], Path(settings.folder), prefix=settings.prefix).as_json()
    if order["do"] == "group test":
        group = next(group for group in order["groups"] if settings.rank in group)
        name = f"group/{order['number']}/{group[0]}"
        return run_group(store, name, group, settings.rank, operation=order["operation"], limit_s=order["limit_s"])
    return {}


def main() -> None:
    """Read the settings and take orders."""
    settings = RankSettings(**json.load(sys.stdin))
    if settings.interface:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", settings.interface)
    import torch

    torch.set_num_threads(1)
    take_orders(settings)


if __name__ == "__main__":
    main()
