"""The virtual machine answers each command with its status and exact output, or ends with what its console said."""

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.rdma_bench.soft_roce.image import Image, get_image
from fabrictune.rdma_bench.soft_roce.machine import VirtualMachine, boot
from fabrictune.rdma_bench.soft_roce.programs import PACKAGES, require_programs, run_program
from tests.patience import patience


def _none_found(names: list[str]) -> dict[str, str]:
    raise UnavailableError(Mistake(where="soft-roce", found=f"no {', '.join(names)} on the path"))


def test_missing_programs_are_named_with_their_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once, in one command to type."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError) as caught:
        require_programs(["qemu-system-x86_64", "zstd"])
    assert str(caught.value) == (
        "soft-roce: no qemu-system-x86_64, zstd on the path\n  next: apt-get install qemu-system-x86 zstd"
    )


def test_every_program_that_is_installed_for_tests_is_one_of_them() -> None:
    """The set-up installs what the machine needs."""
    listed = (Path(__file__).parents[3] / "setup" / "test_packages.txt").read_text()
    needed = set(PACKAGES.values()) - {"tar", "util-linux"}  # which every Debian has
    assert [package for package in sorted(needed) if f"\n{package}  #" not in listed] == []


def test_a_program_that_fails_is_quoted() -> None:
    """Its status and its last words."""
    with pytest.raises(UnavailableError, match="sh ended with 3: no space"):
        run_program(["/bin/sh", "-c", "echo no space >&2; exit 3"], timeout_s=10)


@pytest.mark.real
def test_an_image_that_was_built_serves_without_an_archive(
    machine: VirtualMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No apt on the path: the image is taken from the cache; from an empty cache there is none."""
    built = get_image()
    monkeypatch.setattr("fabrictune.rdma_bench.soft_roce.packages.require_programs", _none_found)
    assert get_image() == built
    with pytest.raises(UnavailableError):
        get_image(tmp_path)


@pytest.mark.real
def test_output_arrives_byte_for_byte(machine: VirtualMachine) -> None:
    """What a terminal would change, and more than a serial port's buffer."""
    assert machine.run(r"printf 'a\r\n\tb\nno end'") == "a\r\n\tb\nno end"
    assert machine.run("seq 20000") == "".join(f"{number}\n" for number in range(1, 20_001))
    assert machine.attempt("exit 7") == (7, "")


@pytest.mark.real
def test_a_command_that_fails_is_an_error_with_its_words(machine: VirtualMachine) -> None:
    """And the next one is answered."""
    with pytest.raises(UnavailableError, match="'echo oops; exit 3' ended with 3: oops"):
        machine.run("echo oops; exit 3")
    assert machine.run("echo fine") == "fine\n"


@pytest.mark.real
def test_the_guest_reaches_nothing_outside(machine: VirtualMachine) -> None:
    """Not even the host, but for what it serves on its forwarded ports."""
    status, _ = machine.attempt("timeout 3 python3 -c 'import socket; socket.create_connection((\"10.0.2.2\", 22), 2)'")
    assert status != 0


@pytest.mark.real
def test_a_kernel_that_is_none_is_an_error_at_once(machine: VirtualMachine, tmp_path: Path) -> None:
    """QEMU refuses it, and says so; nothing keeps running."""
    broken = Image(folder=tmp_path)
    broken.kernel.write_bytes(b"no kernel")
    broken.root.write_bytes(b"")
    with pytest.raises(UnavailableError, match=r"QEMU did not start|the virtual machine has ended"), boot(broken):
        pass


OWNER = """
import sys
from fabrictune.rdma_bench.soft_roce.image import get_image
from fabrictune.rdma_bench.soft_roce.machine import boot

with boot(get_image()) as machine:
    print(machine.process.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.real
def test_a_machine_ends_with_a_killed_owner(machine: VirtualMachine) -> None:
    """A killed process cannot end what it started: the kernel does."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        booted = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
    has_ended, _, _ = select.select([booted], [], [], patience(30))
    os.close(booted)
    assert has_ended
