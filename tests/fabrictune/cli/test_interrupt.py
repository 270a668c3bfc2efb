"""Ctrl-C during a long run, on a terminal."""

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

from fabrictune.foundation.records import RunRecord
from tests.patience import patience

LONG = """
name: long
fabric: {builder: fat_tree, radix: 4}
traffic: {workload: permutation, message: 100 GB}
"""


def test_an_interrupted_run_leaves_what_it_had(tmp_path: Path) -> None:
    """The bar appears after a second, with the simulated time; Ctrl-C ends the run: exit code 130, a partial record.

    200 GB a host would take hours, so the run is still on when the bar is first seen.
    """
    (tmp_path / "long.yaml").write_text(LONG)
    terminal, stderr = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fabrictune", "sim", "run", "long.yaml"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )
    os.close(stderr)
    seen = b""
    while b" simulated" not in seen:
        seen += os.read(terminal, 1024)
    assert re.search(rb"long .* 0 % [\d.]+ [num]s simulated", seen)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=patience(120))
    os.close(terminal)
    assert process.returncode == 130
    assert printed.endswith("stopped; partial record in runs/long\n")
    record = RunRecord.read(tmp_path / "runs" / "long")
    assert record.run["outcome"] == "interrupted"
    assert (record.tables["transfers"]["finish_ps"] == -1).all()
