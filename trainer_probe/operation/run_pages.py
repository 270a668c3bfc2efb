"""Pages of a training run that no executor watches, in memory, found by the folder of the run's record.

They outlive a run that hangs or is killed, so that it can be asked afterwards. A run that ends takes its own away, the
next one into the same folder those that were left, and after a week any run does. A machine has those of its own ranks.
"""

import json
import os
import shutil
import socket
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.output_files import replaced_file
from fabrictune.trainer_probe.operation.node_folders import MEMORY, memory_of
from fabrictune.trainer_probe.operation.pages import RankPage

LAYOUT = "layout.json"
KEPT_S = 7 * 86400.0  # that pages of a run that did not end are kept


def run_pages(record: Path) -> Path:
    """Return the folder of the pages of a run on this machine."""
    return memory_of(f"{os.getuid()}:{record.absolute()}", socket.gethostname()) / "pages"


def create_run_page(folder: Path, rank: int, layout: ParallelLayout) -> RankPage | None:
    """Make the page of this process, a rank of a run; None where there is no room: a run does not end for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with replaced_file(folder / LAYOUT) as half:
            half.write_text(json.dumps(asdict(layout)))
        return RankPage.create(folder / f"{rank}")
    except (OSError, InputError):
        return None


def remove_run_pages(folder: Path) -> None:
    """Remove the pages of a run on this machine."""
    shutil.rmtree(folder.parent, ignore_errors=True)


def remove_old_pages() -> None:
    """Remove pages that runs of this user left here long ago."""
    for layout in MEMORY.glob(f"fabrictune-*/pages/{LAYOUT}"):
        with suppress(OSError):
            status = layout.stat()
            if status.st_uid == os.getuid() and time.time() - status.st_mtime > KEPT_S:
                remove_run_pages(layout.parent)
