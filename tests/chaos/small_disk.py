"""A disk of a few megabytes: a tmpfs of the run's own, which a ballast file fills."""

import os
import subprocess
from pathlib import Path

BALLAST = ".ballast"
_BLOCK = bytes(2**16)


def lack() -> str:
    """Return why a disk cannot be mounted here, or nothing."""
    return "" if os.geteuid() == 0 else "a small disk needs root to mount it"


class SmallDisk:
    """A mounted tmpfs; unmounted by `close`."""

    def __init__(self, place: Path, num_bytes: int) -> None:
        self.place = place
        place.mkdir(parents=True, exist_ok=True)
        self.close()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={num_bytes}", "chaos", str(place)], check=True)

    def fill(self) -> None:
        """Write the ballast until nothing more fits."""
        with (self.place / BALLAST).open("ab", buffering=0) as file:
            try:
                while file.write(_BLOCK):
                    pass
            except OSError:
                return

    def free(self) -> None:
        """Remove the ballast."""
        (self.place / BALLAST).unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it."""
        if os.path.ismount(self.place):
            subprocess.run(["umount", "--lazy", str(self.place)], check=True)
