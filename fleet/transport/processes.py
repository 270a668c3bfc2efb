"""Nodes reached by a program of this machine: the machine itself, and the nodes of a Slurm job by `srun`."""

import os
import selectors
import shlex
import subprocess
import threading
import time
from collections.abc import Sequence

from fabrictune.fleet.hosts.host import FleetHost
from fabrictune.fleet.transport.answer import AskError, Limits, State

PIECE_BYTES = 2**16
POLL_S = 0.2


class ProcessTransport:
    """Runs a command for each node, with the script on its standard input; `{host}` stands for the node's name."""

    def __init__(self, command: Sequence[str], limits: Limits) -> None:
        self.command, self.limits = command, limits

    def ask(self, host: FleetHost, script: str, stop: threading.Event) -> bytes:
        """Return what the script printed; raises AskError."""
        try:
            process = subprocess.Popen(  # noqa: S603 - fixed words, and a name that was checked
                self._words(host), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise AskError(State.UNREACHABLE, f"{self.command[0]}: {error.strerror}") from None
        with process:
            feeder = threading.Thread(target=_feed, args=(process, script.encode()), daemon=True)
            feeder.start()
            try:
                output = self._read(process, stop)
                status = process.wait(timeout=self.limits.run_s)
            except (AskError, subprocess.TimeoutExpired) as error:
                process.kill()
                raise error if isinstance(error, AskError) else AskError(State.TIMED_OUT, "it does not end") from None
            finally:
                process.kill()
                feeder.join()
        if status or not output:
            raise AskError(State.ENDED, f"exit status {status} after {len(output):,} bytes")
        return output

    def describe(self, host: FleetHost) -> str:
        """Return the command as a shell takes it."""
        return f"{shlex.join(self._words(host))} < script"

    def close(self) -> None:
        """Nothing is shared."""

    def _words(self, host: FleetHost) -> list[str]:
        return [word.replace("{host}", host.address) for word in self.command]

    def _read(self, process: "subprocess.Popen[bytes]", stop: threading.Event) -> bytes:
        assert process.stdout, "it was asked for"
        ends_s, output = time.monotonic() + self.limits.run_s, bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                if stop.is_set():
                    raise AskError(State.STOPPED)
                if time.monotonic() > ends_s:
                    raise AskError(State.TIMED_OUT, f"running for {self.limits.run_s:g} s")
                if selector.select(POLL_S):
                    piece = os.read(process.stdout.fileno(), PIECE_BYTES)
                    if not piece:
                        return bytes(output)
                    output += piece
                    if len(output) > self.limits.max_bytes:
                        raise AskError(State.UNUSABLE, f"more than {self.limits.max_bytes:,} bytes")


def local_transport(limits: Limits) -> ProcessTransport:
    """Return the way to this machine itself."""
    return ProcessTransport(("sh", "-s"), limits)


def slurm_transport(limits: Limits) -> ProcessTransport:
    """Return the way to nodes by `srun`, inside an allocation or with one of its own for each node."""
    words = ("srun", "--quiet", "--nodes=1", "--ntasks=1", "--overlap", "--nodelist={host}", "sh", "-s")
    return ProcessTransport(words, limits)


def _feed(process: "subprocess.Popen[bytes]", script: bytes) -> None:
    assert process.stdin, "it was asked for"
    try:
        process.stdin.write(script)
        process.stdin.close()
    except OSError:
        pass  # it ended before it had all
