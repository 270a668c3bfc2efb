"""The page on adding a law: its files are saved, run and called as it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fabrictune.cc.differential import count_mismatches
from fabrictune.cc.flow_state import new_flow
from fabrictune.cc.interpreter import InterpretedLaw
from fabrictune.cc.laws import load_law

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "add-a-law.md").read_text()
LAW, BY_HAND = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(SCENARIO,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path):
    """A reader's folder, with both files saved."""
    (tmp_path / "my_law.py").write_text(LAW)
    (tmp_path / "my_incast.yaml").write_text(SCENARIO)
    return tmp_path


def run(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_law_runs_in_the_engine_with_leave_and_not_without(folder):
    """The command as printed; exit code 2 is for what a user can mend."""
    command = ["-m", "fabrictune", "sim", "run", "my_incast.yaml"]
    refused = run(folder, *command)
    assert (refused.returncode, "--trust-code" in refused.stderr) == (2, True)
    done = run(folder, *command, "--trust-code", "--quiet", "--fail-on", "never")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_law_is_short(folder):
    """The page promises a law of about 30 lines."""
    assert len([line for line in LAW.splitlines() if line.strip()]) <= 30


def test_the_law_agrees_with_itself_compiled(folder):
    """It keeps to the arithmetic the page names."""
    assert count_mismatches(load_law(str(folder / "my_law.py"), trust_code=True), num_events=1000, seed=1) == 0


def test_the_law_does_what_its_first_line_says(folder):
    """100 Gbps: a marked round trip leaves 75, an unmarked one adds 1."""
    law = InterpretedLaw(load_law(str(folder / "my_law.py"), trust_code=True))
    flow = new_flow(law.flow_dtype, line_rate_bps=100e9, base_rtt_ps=8_000_000)
    law.call("on_start", flow, 0)
    law.call("on_ack", flow, 7_000_000, 4096, 7_000_000, 0, 4, 1, None)
    assert flow["rate_bps"][0] == 100e9  # the round trip is not over
    law.call("on_ack", flow, 8_000_000, 4096, 9_000_000, 0, 4, 0, None)
    assert flow["rate_bps"][0] == 75e9
    law.call("on_ack", flow, 17_000_000, 4096, 9_000_000, 0, 4, 0, None)
    assert flow["rate_bps"][0] == 76e9


def test_the_example_by_hand_prints_what_the_page_says(folder):
    """400 Gbps less 40 %."""
    done = run(folder, "-c", BY_HAND)
    assert done.stdout == "240000000000.0\n"
    assert f"It prints {done.stdout.strip()}" in PAGE
