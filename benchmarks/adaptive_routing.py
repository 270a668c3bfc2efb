"""Mean slowdown by how switches choose paths: a permutation, and web search at half load.

Fat tree of radix 8, `dcqcn_firmware`, selective repeat with a reorder window of 100 us; the table of
docs/decisions/0061-adaptive-routing.md.

Run: `python -m benchmarks.run adaptive_routing`, with `--quick` one seed and a tenth of the traffic
"""

from typing import Any

from benchmarks.scenarios import spread_of, written
from fabrictune.foundation.metrics.transfers import select_flows, slowdowns
from fabrictune.studies.simulation import simulate

SEEDS = (1, 2, 3)
CHOICES = {
    "hash": "{mode: hash}",
    "flowlet-500us": "{mode: flowlet, gap: 500 us}",
    "ars": "{mode: ars}",
    "ars-idle-8us-samples-1us": "{mode: ars, ars: {flowlet_idle_time: 8 us, sampling_interval: 1 us}}",
    "ars-per-packet": "{mode: ars, ars: {assign_mode: per_packet}}",
    "ars-per-packet-samples-1us": "{mode: ars, ars: {assign_mode: per_packet, sampling_interval: 1 us}}",
    "adaptive": "{mode: adaptive}",
}
TRAFFIC = {
    "permutation": "{{workload: permutation, message: {size} KB}}",
    "web-search": "{{workload: poisson, sizes: web_search, load: 50 %, duration: {size} us}}",
}
SCENARIO = """
name: path-choice
seed: {seed}
fabric: {{builder: fat_tree, radix: 8}}
traffic: {traffic}
law: dcqcn_firmware
engine:
  transport: {{reliability: selective-repeat, reorder_window: 100 us}}
  path_choice: {choice}
"""


def benchmarks(*, is_quick: bool = False) -> list[dict[str, Any]]:
    """Return mean slowdowns, as rows of benchmarks/results.json."""
    seeds, sizes = (SEEDS[:1], (400, 200)) if is_quick else (SEEDS, (4_000, 2_000))
    rows = []
    for (workload, traffic), size in zip(TRAFFIC.items(), sizes, strict=True):
        for name, choice in CHOICES.items():
            texts = [SCENARIO.format(seed=seed, traffic=traffic.format(size=size), choice=choice) for seed in seeds]
            spread = spread_of([_mean_slowdown(text) for text in texts])
            rows.append(
                {
                    "name": f"netsim.path-choice-slowdown.{workload}.{name}",
                    "value": spread.median,
                    "unit": "times alone",
                    "spread": f"{spread} over {len(seeds)} seeds",
                }
            )
    return rows


def _mean_slowdown(text: str) -> float:
    record = simulate(written(text), with_collisions=False)
    return float(slowdowns(select_flows(record.tables["transfers"])).mean())
