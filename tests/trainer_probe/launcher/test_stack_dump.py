"""Where a process stands, asked while it is stuck."""

import subprocess
import sys
from pathlib import Path

from fabrictune.trainer_probe.launcher.stack_dump import ask

PROGRAM = """
import os, sys
from pathlib import Path
from fabrictune.trainer_probe.launcher.stack_dump import answer

def wait_for_ever():
    os.write(1, b"ready\\n"), os.read(0, 1)  # in one line: nothing else to be found at

answer(Path(sys.argv[1]))
wait_for_ever()
"""


def test_ranks_at_the_same_place_share_a_line(tmp_path: Path) -> None:
    """Two processes wait in one function; a third has no file and says nothing."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path / name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
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
    assert waiting == "rank 0, 1: <string>:7 wait_for_ever < <string>:10 <module>"
    assert unknown == "rank 2: no answer"


def test_a_rank_that_has_just_ended_gives_no_answer(tmp_path: Path) -> None:
    """Several end at once when a request between them fails."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert ask({0: (ended.pid, tmp_path / "0")}) == ["rank 0: no answer"]
