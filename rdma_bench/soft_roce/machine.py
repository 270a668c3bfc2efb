"""The virtual machine: booted by QEMU in software emulation, driven through a serial port, gone when its block ends.

No wait is unlimited: booting and every command have limits. The machine lives as long as the thread that booted it:
the kernel ends it with its parent (docs/decisions/0044-time-limits.md). An error quotes the console's last lines.

The guest sees the folders of `rdma_bench` and `foundation`, read-only, and one to exchange files in. Its network ends
at forwarded ports of this machine's loopback; it reaches nothing else.
"""

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from fabrictune import foundation, rdma_bench
from fabrictune.foundation.children import ending_with_parent
from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.temporary_folders import temporary_folder
from fabrictune.foundation.time_limits import scaled
from fabrictune.rdma_bench.soft_roce.image import Image
from fabrictune.rdma_bench.soft_roce.programs import WHERE, require_programs

GUEST_FOLDER = "/python/fabrictune/rdma_bench/soft_roce/guest"  # as the guest sees it
MEMORY_MB = 1024
CORES = 2
BOOT_TIMEOUT_S = 240.0  # 8 s where the machine has nothing else to do
COMMAND_TIMEOUT_S = 60.0
_CONSOLE_LINES = 12
_LONGEST_HEAD = 40
_END_TIMEOUT_S = 5.0
_CHECK_S = 0.1


@dataclass(frozen=True, kw_only=True)
class VirtualMachine:
    """A virtual machine that runs."""

    scratch: Path
    process: subprocess.Popen[bytes]
    commands: socket.socket
    port_by_guest_port: Mapping[int, int] = field(default_factory=dict)  # on this machine's loopback

    @property
    def share(self) -> Path:
        """A folder that the guest has as /share."""
        return self.scratch / "share"

    def run(self, command: str, *, timeout_s: float = COMMAND_TIMEOUT_S) -> str:
        """Run a shell command in the guest and return its output; raises UnavailableError where it fails."""
        assert "\n" not in command, "one line is one command"
        status, output = self.attempt(command, timeout_s=timeout_s)
        if status:
            self._fail(f"{command!r} ended with {status}: {output.strip()[-400:]}")
        return output

    def attempt(self, command: str, *, timeout_s: float = COMMAND_TIMEOUT_S) -> tuple[int, str]:
        """Run a shell command in the guest and return its status and output."""
        limit_s = scaled(timeout_s)
        self.commands.settimeout(limit_s)
        try:
            self.commands.sendall(command.encode() + b"\n")
            status, length = (int(word) for word in self._receive_line().split())
            return status, self._receive(length).decode(errors="replace")
        except TimeoutError:
            self.process.kill()  # its late answer would be taken for the next one's
            self._fail(f"{command!r} took longer than {limit_s:.0f} s")
        except (OSError, ValueError) as error:
            self._fail(f"{command!r} was not answered ({error})")

    def wait_until_ready(self, timeout_s: float) -> None:
        """Wait until the guest takes commands; raises UnavailableError."""
        self.commands.settimeout(timeout_s)
        try:
            line = self._receive_line()
        except OSError as error:
            self._fail(f"it did not start ({error})")
        if line != "ready":
            self._fail(f"the guest began with {line!r}")

    def _receive_line(self) -> str:
        line = b""
        while not line.endswith(b"\n"):
            line += self._receive(1)
            if len(line) > _LONGEST_HEAD:
                raise ValueError(f"began with {line!r}")
        return line.decode().strip()

    def _receive(self, num_bytes: int) -> bytes:
        received = b""
        while len(received) < num_bytes:
            try:
                part = self.commands.recv(num_bytes - len(received))
            except ConnectionResetError:  # it ended before it took the connection
                part = b""
            if not part:
                raise ConnectionError("the virtual machine has ended")
            received += part
        return received

    def _fail(self, what: str) -> NoReturn:
        console = (self.scratch / "console").read_text(errors="replace").splitlines()[-_CONSOLE_LINES:]
        tail = "".join(f"\n    {line}" for line in console)
        raise UnavailableError(Mistake(where=WHERE, found=f"{what}; its console's last lines:{tail}"))


@contextmanager
def boot(
    image: Image, *, guest_ports: Sequence[int] = (), timeout_s: float = BOOT_TIMEOUT_S
) -> Iterator[VirtualMachine]:
    """Give a machine that takes commands; raises UnavailableError where it does not start."""
    programs = require_programs(["qemu-system-x86_64", "setpriv"])
    with temporary_folder("fabrictune-soft-roce-") as scratch:
        (scratch / "share").mkdir()
        ports = {guest_port: _free_port() for guest_port in guest_ports}
        words = [*ending_with_parent(), *_command(programs["qemu-system-x86_64"], image, scratch, ports)]
        deadline = time.monotonic() + scaled(timeout_s)
        with (
            (scratch / "console").open("wb") as console,
            subprocess.Popen(  # noqa: S603 - words of our own
                words, stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True
            ) as process,
        ):
            try:
                with _connect(scratch / "commands", process, deadline) as commands:
                    machine = VirtualMachine(
                        scratch=scratch, process=process, commands=commands, port_by_guest_port=ports
                    )
                    machine.wait_until_ready(max(deadline - time.monotonic(), 0.1))
                    yield machine
            finally:
                process.kill()  # its file system is in memory: there is nothing to shut down
                process.wait(scaled(_END_TIMEOUT_S))


def _command(qemu: str, image: Image, scratch: Path, ports: Mapping[int, int]) -> list[str]:
    forwarded = "".join(f",hostfwd=tcp:127.0.0.1:{port}-:{guest_port}" for guest_port, port in ports.items())
    folders = {
        "share": f"{scratch / 'share'}",
        "rdma_bench": f"{_folder_of(rdma_bench)},readonly=on",
        "foundation": f"{_folder_of(foundation)},readonly=on",
    }
    shares = [
        word
        for tag, place in folders.items()
        for word in ("-virtfs", f"local,mount_tag={tag},security_model=none,path={place}")
    ]
    return [
        *(qemu, "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", f"{CORES}", "-m", f"{MEMORY_MB}"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-kernel", f"{image.kernel}", "-initrd", f"{image.root}"),
        # A kernel that its host keeps waiting would take its timer for broken, and panic.
        *("-append", "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off"),
        *("-serial", "stdio", "-serial", f"unix:{scratch / 'commands'},server=on,wait=off"),
        *("-device", "virtio-rng-pci"),
        *("-netdev", f"user,id=outside,restrict=on{forwarded}", "-device", "virtio-net-pci,netdev=outside,romfile="),
        *shares,
    ]


def _folder_of(package: object) -> Path:
    (folder,) = map(Path, package.__path__)  # type: ignore[attr-defined]
    return folder.resolve()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _connect(path: Path, process: subprocess.Popen[bytes], deadline: float) -> socket.socket:
    """Return a connection to the guest's serial port, which is there a moment after the program's start."""
    connection = socket.socket(socket.AF_UNIX)
    while True:
        try:
            connection.connect(str(path))
            return connection
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                connection.close()
                console = (path.parent / "console").read_text(errors="replace")[-400:]
                raise UnavailableError(Mistake(where=WHERE, found=f"QEMU did not start: {console}")) from error
        time.sleep(_CHECK_S)
