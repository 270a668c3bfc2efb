"""The two ends of a measurement, as options name them: on this host, on two others, or in a virtual machine."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabrictune.cli.framework.options import Command
from fabrictune.foundation.errors import InputError, Mistake

if TYPE_CHECKING:
    from fabrictune.rdma_bench.measurement.pair import WorkerPair


token_option = click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File with the shared secret of remote workers.",
)
_OPTIONS = (
    click.option(
        "--device", default="", metavar="NAME", help="Sender device.  [default: the first with an active port]"
    ),
    click.option("--peer-device", default=None, metavar="NAME", help="Receiver device.  [default: the sender's]"),
    click.option(
        "--port", type=click.IntRange(1, 255), default=1, show_default=True, help="Port number on both devices."
    ),
    click.option(
        "--gid-index",
        type=click.IntRange(0, 1023),
        metavar="N",
        help="GID index on both devices.  [default: RoCE v2 on IPv4]",
    ),
    click.option("--sender", metavar="HOST:PORT", help="Address of the sending worker (see `rdma serve`)."),
    click.option("--receiver", metavar="HOST:PORT", help="Address of the receiving worker."),
    token_option,
    click.option(
        "--soft-roce", is_flag=True, help="Measure in a virtual machine with Soft-RoCE; no device needed (see doctor)."
    ),
)


def pair_options(command: Command) -> Command:
    """Give a command the options that say between which ports it measures."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@contextmanager
def opened_pair(
    context: click.Context, settings: Mapping[str, Any], *, cut: str = "", heal: str = ""
) -> "Iterator[tuple[WorkerPair, str]]":
    """Give workers at both ends, and where they are; raises InputError for options that go ill together."""
    remote = [settings["sender"], settings["receiver"]]
    if any(remote) and (settings["soft_roce"] or not all(remote) or settings["token_file"] is None):
        raise InputError(
            Mistake(
                where=context.command_path,
                found="one end alone, or no token",
                allowed="--sender, --receiver and --token-file together; --soft-roce; or none, for this host",
            )
        )
    with ExitStack() as stack:
        if settings["soft_roce"]:
            from fabrictune.rdma_bench.soft_roce import workers

            machine = stack.enter_context(workers.soft_roce_machine())
            ports = workers.SENDER_PORT, workers.RECEIVER_PORT
            places = stack.enter_context(workers.running_workers(machine, *ports))
            yield stack.enter_context(workers.soft_roce_pair(machine, *places)), "soft-RoCE in a virtual machine"
        else:
            yield _pair(stack, settings, cut, heal), " to ".join(remote) if any(remote) else "this host"


def _pair(stack: ExitStack, settings: Mapping[str, Any], cut: str, heal: str) -> "WorkerPair":
    from fabrictune.rdma_bench.measurement.pair import PortChoice, WorkerPair
    from fabrictune.rdma_bench.measurement.workers import find_python, local_worker, remote_worker
    from fabrictune.rdma_bench.verbs.tokens import read_token

    if settings["sender"]:
        token = read_token(settings["token_file"])
        near, far = (stack.enter_context(remote_worker(settings[name], token)) for name in ("sender", "receiver"))
    else:
        python = find_python()
        near = stack.enter_context(local_worker(python, "sender"))
        far = stack.enter_context(local_worker(python, "receiver", cut=cut, heal=heal))
    common = {"port": settings["port"], "gid_index": -1 if settings["gid_index"] is None else settings["gid_index"]}
    device, peer = settings["device"], settings["peer_device"]
    return WorkerPair(
        sender=near,
        receiver=far,
        sender_place=PortChoice(device=device, **common),
        receiver_place=PortChoice(device=device if peer is None else peer, **common),
    )
