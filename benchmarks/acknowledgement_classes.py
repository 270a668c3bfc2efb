"""Slowdown of web search by class of acknowledgements: in a class of their own, or behind data.

From ready to the last acknowledgement, over the time in which the last byte arrives alone.

Half load on a fat tree of radix 8, without a law or marks, so that the class is all that differs
(docs/decisions/0060-classes-of-acknowledgements.md).

Run: `python -m benchmarks.run acknowledgement_classes`, with `--quick` one seed and 1 ms
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.scenarios import spread_of, written
from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.metrics.formulas import percentile
from fabrictune.foundation.metrics.transfers import select_flows
from fabrictune.studies.simulation import simulate

SEEDS, DURATION_MS = (1, 2, 3, 4), 2.8
FIGURES: dict[str, Callable[[FloatArray], float]] = {
    "mean": lambda slowdown_F: float(slowdown_F.mean()),
    "p50": lambda slowdown_F: percentile(slowdown_F, 0.5),
    "p99": lambda slowdown_F: percentile(slowdown_F, 0.99),
}
WEB_SEARCH = """
name: web-search
seed: {seed}
fabric: {{builder: fat_tree, radix: 8}}
traffic: {{workload: poisson, sizes: web_search, load: 50 %, duration: {duration_ms} ms}}
law: none
engine: {{ecn: {{enabled: false}}, queues: {{acknowledgement_class: {name}}}}}
"""


def benchmarks(*, is_quick: bool = False) -> list[dict[str, Any]]:
    """Return slowdowns, and how many times longer the second class takes, as rows of benchmarks/results.json."""
    seeds, duration_ms = ((1,), 1) if is_quick else (SEEDS, DURATION_MS)
    flows = {name: [_slowdowns(name, seed, duration_ms) for seed in seeds] for name in ("control", "data")}
    rows = []
    for figure, pick in FIGURES.items():
        values = {name: [pick(of_seed) for of_seed in flows[name]] for name in flows}
        values["data-over-control"] = [
            data / control for control, data in zip(values["control"], values["data"], strict=True)
        ]
        for name, of_seeds in values.items():
            spread = spread_of(of_seeds)
            rows.append(
                {
                    "name": f"netsim.acknowledgement-class.{name}.slowdown-{figure}",
                    "value": spread.median,
                    "unit": "times alone" if name in flows else "ratio",
                    "spread": f"{spread} over {len(seeds)} seeds",
                }
            )
    return rows


def _slowdowns(name: str, seed: int, duration_ms: float) -> FloatArray:
    scenario = written(WEB_SEARCH.format(seed=seed, duration_ms=duration_ms, name=name))
    flows = select_flows(simulate(scenario, with_collisions=False).tables["transfers"])
    return np.asarray((flows["acknowledged_ps"] - flows["ready_ps"]) / flows["ideal_ps"])
