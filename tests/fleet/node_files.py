"""The clean site's hosts as folders that stand in for their /sys, /etc and tools, for hosts that are reached by SSH."""

import shlex
from pathlib import Path

STUBS = ("/sys/class", "/sys/kernel", "/etc", "/bin", "/outputs")


def write_node_files(folder: Path, texts: dict[str, str]) -> Path:
    """Write what a host's files and commands say; files of /proc are left out. Returns the folder."""
    for stub in STUBS:
        (folder / stub.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        if name.endswith(("/device", "/driver")):
            path = folder / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_dir():
                path.symlink_to(_end_of_link(folder, name, text))
        elif name.startswith(("/sys/", "/etc/")):
            path = folder / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not name.startswith("/"):
            _write_command(folder, name, text)
    return folder


def _end_of_link(folder: Path, name: str, text: str) -> str:
    """Return where a link leads: a device's to a folder of its own, in which its files lie."""
    end = text.strip().rsplit("/", 1)[-1]
    place = folder / "sys" / "devices" / end
    place.mkdir(parents=True, exist_ok=True)
    return f"{'../' * (name.count('/') - 2)}devices/{end}"


def _write_command(folder: Path, name: str, text: str) -> None:
    program, *words = name.split()
    (folder / "outputs" / "_".join([program, *words]).replace("/", "%")).write_text(text)
    script = folder / "bin" / program
    script.write_text(f'#!/bin/sh\nIFS=_; exec cat {shlex.quote(str(folder / "outputs"))}/{program}_"$*" 2>/dev/null\n')
    script.chmod(0o755)
