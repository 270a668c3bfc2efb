"""A predicted step of 175B on 12,288 GPUs with its communication at max-min shares, by `validate predict --scenario`.

Processor time, wall time and peak memory are those of the whole command: dry run, plan, fabric, folding, shares,
prices, intervals and record.

Run: `python -m benchmarks.run predicted_job`, with `--quick` 256 GPUs of the same step
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.scenarios import command_cost
from fabrictune.foundation.units import PS_PER_S

SCENARIO = """
name: predicted-job
fabric: {{builder: megascale, num_hosts: {hosts}, hosts_per_tor_set: {set}, planes: 8}}
fold: rails
engine: {{name: fluid}}
"""


def benchmarks(*, is_quick: bool = False) -> list[dict[str, Any]]:
    """Return times and peak memory of the command, as rows of benchmarks/results.json."""
    dp = 4 if is_quick else 192
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "fabric.yaml").write_text(SCENARIO.format(hosts=8 * dp, set=min(64, 8 * dp)))
        words = ("validate", "predict", "175b", "--set", f"degrees.layout.dp={dp}", "--scenario", "fabric.yaml")
        cost = command_cost((*words, "--quiet", "--out", "record"), folder)
        outcome = json.loads((folder / "record" / "run.json").read_text())["outcome"]
    closed_s, fabric_s = (outcome[key] / PS_PER_S for key in ("step_ps", "fabric_step_ps"))
    said = f"one run, step {closed_s:.2f} s in closed form, {fabric_s:.2f} s on the fabric"
    figures = (
        ("processor-time", cost.processor_s, "s"),
        ("wall-time", cost.wall_s, "s"),
        ("peak-memory", cost.peak_mib, "MiB"),
    )
    return [
        {"name": f"validate.predicted-job-{64 * dp}.{what}", "value": value, "unit": unit, "spread": said}
        for what, value, unit in figures
    ]
