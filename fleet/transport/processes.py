"""Nodes reached by a program of this machine: the machine itself, and the nodes of a Slurm job by `srun`."""

import os
import selectors
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from fabrictune.fleet.hosts.host import FleetHost
from fabrictune.fleet.transport.answer import AskError, Limits, State

PIECE_BYTES = 2**16
POLL_S = 0.2
SHELL = ("sh", "-s")
MAX_SAID_BYTES = 2**12
END_S = 10.0  # for a program whose input has ended
ASKED_S = 2.0  # for one that is asked to end


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
                raise error if isinstance(error, AskError) else AskError(State.TIMED_OUT, "it does not end") from None
            finally:
                _end(process)
                feeder.join()
        if status or not output:
            raise AskError(State.ENDED, f"exit status {status} after {len(output):,} bytes")
        return output

    def start(self, host: FleetHost, words: Sequence[str]) -> "LocalProgram":
        """Start a program on a host in place of the shell, whose streams stay open until `close`; raises AskError."""
        way = [word.replace("{host}", host.address) for word in self.command[: -len(SHELL)]]
        try:
            return LocalProgram([*way, *words])
        except OSError as error:
            raise AskError(State.UNREACHABLE, f"{(*way, *words)[0]}: {error.strerror}") from None

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


class LocalProgram:
    """A program that this machine runs; closing it ends its input."""

    def __init__(self, words: Sequence[str]) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the program
        self._process = subprocess.Popen(  # noqa: S603 - fixed words, and a name that was checked
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, start_new_session=True
        )

    def send(self, data: bytes) -> None:
        """Send all of it; raises OSError."""
        assert self._process.stdin, "it was asked for"
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except ValueError:  # closed
            raise BrokenPipeError from None

    def receive(self) -> bytes:
        """Return what the program printed, b"" at its end."""
        assert self._process.stdout, "it was asked for"
        return os.read(self._process.stdout.fileno(), PIECE_BYTES)

    def last_words(self) -> str:
        """Return the end of what the program said on standard error."""
        size = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, size - MAX_SAID_BYTES))
        return self._said.read().decode(errors="replace")

    def close(self) -> None:
        """End the program's input, wait for it a while, and kill it then."""
        assert self._process.stdin, "it was asked for"
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            _end(self._process)
            self._process.wait()


def local_transport(limits: Limits) -> ProcessTransport:
    """Return the way to this machine itself."""
    return ProcessTransport(SHELL, limits)


def slurm_transport(limits: Limits) -> ProcessTransport:
    """Return the way to nodes by `srun`, inside an allocation or with one of its own for each node."""
    words = ("srun", "--quiet", "--nodes=1", "--ntasks=1", "--overlap", "--nodelist={host}", *SHELL)
    return ProcessTransport(words, limits)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a program: asked first, since `srun` then takes back what it asked Slurm for."""
    process.terminate()
    try:
        process.wait(ASKED_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _feed(process: "subprocess.Popen[bytes]", script: bytes) -> None:
    assert process.stdin, "it was asked for"
    try:
        process.stdin.write(script)
        process.stdin.close()
    except OSError:
        pass  # it ended before it had all
