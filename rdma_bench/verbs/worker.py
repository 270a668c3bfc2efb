"""Worker program on a host with an RDMA device, which measures for controllers that know its token.

    python3 -m fabrictune.rdma_bench.verbs.worker --listen 10.0.0.1:18700 --token-file token \\
        --cut-command "ip link set eth0 down" --heal-command "ip link set eth0 up"

`fabrictune rdma serve` starts it under a Python that has pyverbs. It serves one measurement at a time, and listens on
no address that was not named.
"""

import argparse
import shlex
import signal
import socket
import sys
from pathlib import Path

from fabrictune.foundation.errors import FabrictuneError, InputError, Mistake, UnavailableError
from fabrictune.rdma_bench.verbs.channel import ChannelError, greet_as_worker, keep_alive
from fabrictune.rdma_bench.verbs.path_cut import CutCommands, Cutter
from fabrictune.rdma_bench.verbs.session import Session
from fabrictune.rdma_bench.verbs.tokens import read_token

_NUM_WAITING = 4
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Serve until interrupted, or until the one connection given by its descriptor ends."""
    arguments = _parse()
    commands = CutCommands(
        cut=tuple(shlex.split(arguments.cut_command)), heal=tuple(shlex.split(arguments.heal_command))
    )
    cutter = Cutter(commands)
    _stop_on_signals()
    try:
        try:
            if arguments.descriptor is not None:
                with socket.socket(fileno=arguments.descriptor) as connection:
                    Session(connection, cutter).serve()
            else:
                _listen(arguments.listen, read_token(Path(arguments.token_file)), cutter)
        finally:
            cutter.heal()  # again, where the signal interrupted it
    except FabrictuneError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m fabrictune.rdma_bench.verbs.worker")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--listen", metavar="IPV4:PORT")
    place.add_argument("--descriptor", type=int, metavar="N", help="of a connected socket")
    parser.add_argument("--token-file", default="", metavar="FILE")
    parser.add_argument("--cut-command", default="", metavar="WORDS")
    parser.add_argument("--heal-command", default="", metavar="WORDS")
    return parser.parse_args()


def _stop_on_signals() -> None:
    """Let the first signal that asks for an end raise KeyboardInterrupt, and ignore those after it."""

    def stop(*_: object) -> None:
        for number in answered:
            signal.signal(number, lambda *_: None)  # not SIG_IGN, which the heal command would inherit
        raise KeyboardInterrupt

    answered = [number for number in _STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in answered:
        signal.signal(number, stop)


def _listen(place: str, token: str, cutter: Cutter) -> None:
    host, _, port = place.rpartition(":")
    if not host:  # which would be every address of this host
        raise InputError(Mistake(where=f"--listen {place}", found="no address", allowed="IPV4:PORT"))
    try:
        listener = socket.create_server((host, int(port)), backlog=_NUM_WAITING)
    except (OSError, ValueError, OverflowError) as error:
        raise UnavailableError(Mistake(where=f"--listen {place}", found=str(error), allowed="IPV4:PORT")) from error
    with listener:
        print(f"listening on {host}:{listener.getsockname()[1]}", flush=True)
        while True:
            connection, _ = listener.accept()
            with connection:
                keep_alive(connection)
                try:
                    greet_as_worker(connection, token)
                except ChannelError as error:
                    print(error, file=sys.stderr, flush=True)
                    continue
                Session(connection, cutter).serve()


if __name__ == "__main__":
    sys.exit(main())
