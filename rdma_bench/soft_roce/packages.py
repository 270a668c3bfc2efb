"""Debian packages for the virtual machine: kernel, userland and their files, all without root.

apt resolves the dependencies against a system on which nothing is installed, downloads them, and checks their
signatures, from wherever this machine's own configuration says. Where the machine has no package lists (a container
from which they were removed), they are fetched into a folder of our own.

Left out: distributions other than Debian; Ubuntu's kernels carry rdma_rxe in a package of another name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.rdma_bench.soft_roce.programs import WHERE, require_programs, run_program

KERNEL = "linux-image-amd64"  # the full one: the cloud kernel has neither rdma_rxe nor 9p
USERLAND = (
    *("busybox-static", "dash", "coreutils", "grep", "kmod", "iproute2", "libc-bin", "procps"),
    *("python3-minimal", "python3", "python3-pyverbs", "ibverbs-providers", "perftest", "tcpdump"),
)
ASKING_TIMEOUT_S = 60
DOWNLOAD_TIMEOUT_S = 300
_NAME = re.compile(r"[a-z0-9][a-z0-9.+-]*")


@dataclass(frozen=True, kw_only=True)
class Apt:
    """apt with options of our own; `lists` is a folder for package lists, or None for the machine's."""

    folder: Path
    lists: Path | None = None

    def ask(self, program: str, *words: str, timeout_s: float = ASKING_TIMEOUT_S, folder: Path | None = None) -> str:
        """Run apt-get or apt-cache and return what it printed."""
        place = require_programs([program])[program]
        options = {
            "Dir::State::status": self.folder / "nothing-installed",
            "Dir::Cache": self.folder / "cache",
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "root",
            "Debug::NoLocking": "true",
        }
        if self.lists:
            options["Dir::State::lists"] = self.lists
        given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return run_program([place, *given, *words], timeout_s=timeout_s, folder=folder).decode()


def find_kernel(folder: Path) -> tuple[Apt, str]:
    """Return an apt, its state in `folder`, and the newest kernel that it knows: "linux-image-6.1.0-30-amd64".

    Raises UnavailableError where none is to be had.
    """
    (folder / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "nothing-installed").touch()
    apt = Apt(folder=folder)
    if kernels := _kernels(apt):
        return apt, kernels[0]
    apt = Apt(folder=folder, lists=folder / "lists")
    apt.ask("apt-get", "-qq", "update", timeout_s=DOWNLOAD_TIMEOUT_S)
    if kernels := _kernels(apt):
        return apt, kernels[0]
    raise UnavailableError(
        Mistake(where=WHERE, found=f"apt knows no package {KERNEL}", allowed="Debian on x86-64, with its archive")
    )


def download(apt: Apt, kernel: str, folder: Path) -> tuple[Path, list[Path]]:
    """Put the kernel's package and those of the userland into `folder`; returns both."""
    names = _closure(apt, USERLAND)
    apt.ask("apt-get", "-qq", "download", kernel, *names, timeout_s=DOWNLOAD_TIMEOUT_S, folder=folder)
    files = sorted(folder.glob("*.deb"))
    (kernel_file,) = (file for file in files if file.name.startswith(f"{kernel}_"))
    return kernel_file, [file for file in files if file != kernel_file]


def _kernels(apt: Apt) -> list[str]:
    try:
        lines = apt.ask("apt-cache", "depends", KERNEL).splitlines()
    except UnavailableError:  # no such package in these lists
        return []
    dependencies = [line.split()[-1] for line in lines if "Depends:" in line]
    return [name for name in dependencies if re.fullmatch(r"linux-image-\d[\w.+-]*", name)]


def _closure(apt: Apt, names: Sequence[str]) -> list[str]:
    """Return the names with everything that they depend on."""
    plan = apt.ask("apt-get", "-y", "--print-uris", "install", *names)
    files = [line.split()[1] for line in plan.splitlines() if line.startswith("'")]
    closure = [file.partition("_")[0] for file in files]
    assert all(map(_NAME.fullmatch, closure)), closure
    return closure
