"""Max-min shares beside packets in processor time: a permutation and a ring of 1,024 hosts, an all-to-all of 128.

Each row is a ratio of two runs in turn, scenarios compiled before; its spread says how far their makespans are apart.

Run: `python -m benchmarks.run fluid_speed`, with `--quick` 128 hosts and smaller messages
"""

import time
from functools import partial
from typing import Any

from benchmarks.scenarios import paired_ratio, written
from fabrictune.foundation.metrics.transfers import makespan_ps
from fabrictune.scenario.compilation import CompiledScenario, compile_scenario
from fabrictune.scenario.overrides import override
from fabrictune.studies.simulation import run_engine

SCENARIO = """
name: {name}
fabric: {{builder: fat_tree, radix: {radix}, link_rate: 100 Gbps}}
traffic: {traffic}
law: none
"""


def benchmarks(*, is_quick: bool = False) -> list[dict[str, Any]]:
    """Return how many times as fast the fluid engine is, as rows of benchmarks/results.json."""
    radix, message = (8, "8 MB") if is_quick else (16, "64 MB")
    hosts = radix**3 // 4
    cases = {
        f"permutation-{hosts}": (radix, f"{{workload: permutation, message: {message}}}"),
        f"ring-{hosts}": (radix, f"{{workload: all_reduce, layout: {{dp: {hosts}}}, message: {message}}}"),
    }
    cases |= {} if is_quick else {"all-to-all-128": (8, "{workload: all_to_all, message: 1 MB}")}
    return [_row(name, radix, traffic) for name, (radix, traffic) in cases.items()]


def _row(name: str, radix: int, traffic: str) -> dict[str, Any]:
    scenario = written(SCENARIO.format(name=name, radix=radix, traffic=traffic))
    makespans: dict[str, float] = {}

    def seconds(engine: str, compiled: CompiledScenario) -> float:
        started_s = time.process_time()
        record = run_engine(compiled)
        taken_s = time.process_time() - started_s
        makespans[engine] = makespan_ps(record.tables["transfers"])
        return taken_s

    fluid, packets = (
        partial(seconds, engine, compile_scenario(override(scenario, {"engine.name": engine}, origin="benchmark")))
        for engine in ("fluid", "packet")
    )
    ratio = paired_ratio(fluid, packets, rounds=1)
    return {
        "name": f"netsim.fluid-speed.{name}",
        "value": ratio.median,
        "unit": "times as fast",
        "spread": f"1 round, makespan in packets {makespans['packet'] / makespans['fluid']:.3f} times that at shares",
    }
