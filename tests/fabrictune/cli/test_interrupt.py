"""Ctrl-C, SIGTERM and SIGHUP during a long run, on a terminal."""

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fabrictune.cli import main
from fabrictune.foundation.records import RunRecord
from tests.patience import patience

LONG = """
name: long
fabric: {builder: fat_tree, radix: 4}
traffic: {workload: permutation, message: 100 GB}
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_leaves_what_it_had(tmp_path: Path, number: signal.Signals) -> None:
    """The bar appears after a second, with the simulated time; each ends the run: exit code 130, a partial record.

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
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # whatever the tests' own start ignores
    )
    os.close(stderr)
    seen = b""
    while b" simulated" not in seen:
        seen += os.read(terminal, 1024)
    assert re.search(rb"long .* 0 % [\d.]+ [num]s simulated", seen)
    process.send_signal(number)
    printed, _ = process.communicate(timeout=patience(120))
    os.close(terminal)
    assert process.returncode == 130
    assert printed.endswith("stopped; partial record in runs/long\n")
    record = RunRecord.read(tmp_path / "runs" / "long")
    assert record.run["outcome"] == "interrupted"
    assert (record.tables["transfers"]["finish_ps"] == -1).all()
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["long"]


def test_an_ignored_signal_stays_ignored() -> None:
    """What `nohup` starts goes on when its terminal closes."""
    code = "import signal; from fabrictune.cli import main; main.stop_like_ctrl_c(); signal.raise_signal(signal.SIGHUP)"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        check=False,
    )
    assert ran.returncode == 0


DROPPED = """
import signal
from threading import Event
from fabrictune.cli import main

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

def invoke(_):
    Finalized()
    Event().wait()

main.fabrictune.invoke = invoke
main.main()
"""


def test_an_interrupt_in_a_finalizer_comes_again() -> None:
    """Python drops what a finalizer raises, and prints a traceback."""
    ran = subprocess.run(
        [sys.executable, "-c", DROPPED, "doctor"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        timeout=patience(120),
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (130, "stopped\n")


def test_an_interrupt_while_a_class_is_made_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python 3.11 raises RuntimeError from what a descriptor raises, in modules that are imported late."""

    class Interrupted:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    def invoke(_: object) -> int:
        type("Late", (), {"name": Interrupted()})
        return 0

    monkeypatch.setattr(main.fabrictune, "invoke", invoke)
    assert main.run(["doctor"]) == 130
    assert capsys.readouterr().err == "stopped\n"
