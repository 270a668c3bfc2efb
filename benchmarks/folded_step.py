"""A step of 175B on 12,288 GPUs in packets and shares: one rail of eight, folded, by the command `sim run`.

The plan is that of recipe `175b`, 137.7 million requests; the fabric is MegaScale's with a plane for each rail.
Processor time and peak memory are those of the whole command: reading, compiling, the run with its audits, metrics,
collisions and the record.

Run: `python -m benchmarks.run folded_step`, with `--quick` 256 GPUs of the same step
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.scenarios import command_cost
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.plan import make_plan
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

SCENARIO = """
name: folded-step
fabric: {{builder: megascale, num_hosts: {hosts}, hosts_per_tor_set: {set}, planes: 8}}
traffic: {{workload: comm_trace, file: job.parquet, layout: {{tp: 8, pp: 8, dp: {dp}}}}}
fold: rails
engine: {{name: packet, skip: fluid}}
"""


def benchmarks(*, is_quick: bool = False) -> list[dict[str, Any]]:
    """Return processor time, peak memory and the share in packets, as rows of benchmarks/results.json."""
    dp = 4 if is_quick else 192
    recipe = load_recipe(find_recipe("175b"), {"degrees.layout.dp": dp})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_plan(recipe, HardwareSpec()).trace.write(folder / "job.parquet")
        (folder / "step.yaml").write_text(SCENARIO.format(hosts=8 * dp, set=min(64, 8 * dp), dp=dp))
        cost = command_cost(("sim", "run", "step.yaml", "--quiet", "--out", "record"), folder)
        head = json.loads((folder / "record" / "run.json").read_text())
    fluid, fold = head["skip"]["fluid"], head["fold"]
    said = (
        f"one run, rail {fold['simulated_rail']} of {fold['rails']}, end {fluid['last_finish_ps'] / 1e9:.1f} ms, "
        f"{fluid['audited_counts_inside']} of {fluid['audited_counts']} audits inside"
    )
    figures = (
        ("processor-time", cost.processor_s, "s"),
        ("peak-memory", cost.peak_mib, "MiB"),
        ("packets", 100 * fluid["audited_share"], "%"),
    )
    return [
        {"name": f"netsim.folded-step-{64 * dp}.{what}", "value": value, "unit": unit, "spread": said}
        for what, value, unit in figures
    ]
