"""`fabrictune rdma serve`: let somebody measure from or to this host's RDMA devices."""

import os
from pathlib import Path
from typing import NoReturn

import click


@click.command()
@click.option(
    "--listen",
    default="127.0.0.1:18700",
    show_default=True,
    metavar="IPV4:PORT",
    help="Listening address of this host.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    required=True,
    help="File with a shared secret of at least 16 characters.",
)
@click.option("--cut-command", default="", metavar="WORDS", help="Command that cuts the path to this host.")
@click.option("--heal-command", default="", metavar="WORDS", help="Command that restores the path.")
def serve(listen: str, token_file: Path, cut_command: str, heal_command: str) -> NoReturn:
    """Wait for measurements that know the token, one at a time, until Ctrl-C.

    They may open a port of this host's RDMA devices, send and receive over it, read its counters, run perftest, and
    have the path cut by the commands given here, without a shell; nothing else. Start one on each host.

    \b
    Example:
      openssl rand -hex 32 > token
      fabrictune rdma serve --listen 10.0.0.1:18700 --token-file token
      fabrictune rdma serve --listen 10.0.0.2:18700 --token-file token \\
          --cut-command "ip link set eth0 down" --heal-command "ip link set eth0 up"
    """
    from fabrictune.rdma_bench.measurement.workers import find_python, worker_command, worker_environment

    options = {"--listen": listen, "--token-file": str(token_file)}
    options |= {"--cut-command": cut_command, "--heal-command": heal_command}
    words = worker_command(find_python(), *(word for option in options.items() for word in option))
    os.execve(words[0], words, worker_environment())  # noqa: S606 - no shell is what is wanted
