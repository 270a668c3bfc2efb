"""Programs of this machine that the virtual machine needs: a missing one is reported with its package."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.time_limits import scaled

WHERE = "soft-roce"
PACKAGES: Mapping[str, str] = {
    "qemu-system-x86_64": "qemu-system-x86",
    "tar": "tar",
    "cpio": "cpio",
    "zstd": "zstd",
    "depmod": "kmod",
    "modprobe": "kmod",
    "setpriv": "util-linux",
}
_SYSTEM_FOLDERS = "/usr/sbin:/sbin"  # where depmod is, which users have not on their path
_SHOWN_CHARACTERS = 400


def require_programs(names: Iterable[str]) -> dict[str, str]:
    """Return where each program is; raises UnavailableError with the packages of all that are missing."""
    path = f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM_FOLDERS}"
    place_by_name = {name: shutil.which(name, path=path) for name in names}
    missing = [name for name, place in place_by_name.items() if place is None]
    if missing:
        packages = " ".join(sorted({PACKAGES[name] for name in missing if name in PACKAGES}))
        next_step = f"apt-get install {packages}" if packages else "use a machine with Debian"
        raise UnavailableError(Mistake(where=WHERE, found=f"no {', '.join(missing)} on the path", next_step=next_step))
    return {name: place for name, place in place_by_name.items() if place is not None}


def run_program(
    words: Sequence[str | Path], *, timeout_s: float, stdin: bytes | None = None, folder: Path | None = None
) -> bytes:
    """Run a program and return what it printed; raises UnavailableError where it fails or takes too long."""
    try:
        ran = subprocess.run(  # noqa: S603 - a list of words, none of them from a file or a network
            words, input=stdin, cwd=folder, capture_output=True, timeout=scaled(timeout_s), check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(Mistake(where=WHERE, found=f"{Path(words[0]).name}: {error}")) from error
    if ran.returncode:
        words_of_its = ran.stderr.decode(errors="replace").strip()[-_SHOWN_CHARACTERS:]
        raise UnavailableError(
            Mistake(where=WHERE, found=f"{Path(words[0]).name} ended with {ran.returncode}: {words_of_its}")
        )
    return ran.stdout
