"""Where a process stands, asked while it is stuck."""

import subprocess
import sys
from pathlib import Path

from trainer_probe.whereabouts import ask

PROGRAM = """
import sys, threading
from pathlib import Path
from trainer_probe.whereabouts import answer

def wait_for_ever():
    print("ready", flush=True)
    threading.Event().wait()

answer(Path(sys.argv[1]))
wait_for_ever()
"""


def test_ranks_at_the_same_place_share_a_line(tmp_path: Path) -> None:
    """Two processes wait in one function; a third has no file and says nothing."""
    processes = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path / name)], stdout=subprocess.PIPE, text=True)
        for name in ("0", "1")
    ]
    silent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True)
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        lines = ask({rank: (process.pid, tmp_path / str(rank)) for rank, process in enumerate([*processes, silent])})
    finally:
        for process in [*processes, silent]:
            process.kill()
            process.communicate()
    waiting, unknown = lines
    assert waiting.startswith("rank 0, 1: threading.py:")
    assert " < <string>:8 wait_for_ever < <string>:11 <module>" in waiting
    assert unknown == "rank 2: no answer"
