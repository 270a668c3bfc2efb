"""HPCC's figure 11 family (fabrictune/conformance/netsim/laws/hpcc_figure_11.py), for long enough to have long flows.

Flows begin for 1 ms, where the paper's do for 0.1 s, so that the longest, of 10 MB, are few.

Run: `python -m benchmarks.run hpcc_figure_11`
"""

import statistics
from collections.abc import Callable
from typing import Any

from fabrictune.conformance.netsim.laws.hpcc_figure_11 import LAWS, Load, Slowdowns, simulate_slowdowns

SEEDS = (1, 2, 3)
DURATION_NS = 1_000_000
LOADS = {
    "50%": Load(load_fraction=0.5, has_incast=False, duration_ns=DURATION_NS),
    "30%+incast": Load(load_fraction=0.3, has_incast=True, duration_ns=DURATION_NS),
}
FIGURES: dict[str, tuple[str, Callable[[Slowdowns], float]]] = {
    "short-flows-p50": ("times alone", lambda one: one.short_p50),
    "short-flows-p99": ("times alone", lambda one: one.short_p99),
    "long-flows-p50": ("times alone", lambda one: one.long_p50),
    "queue-p99": ("KB", lambda one: one.queue_p99_bytes / 1e3),
    "paused": ("us a port", lambda one: one.paused_us),
}


def benchmarks() -> list[dict[str, Any]]:
    """Return slowdowns, queues and pauses, as rows of benchmarks/results.json."""
    return [
        _row(
            f"netsim.hpcc-figure-11.{name}.{label}.{figure}",
            unit,
            [pick(simulate_slowdowns(label, load, seed)) for seed in SEEDS],
        )
        for name, load in LOADS.items()
        for label in LAWS
        for figure, (unit, pick) in FIGURES.items()
    ]


def _row(name: str, unit: str, values: list[float]) -> dict[str, Any]:
    return {
        "name": name,
        "value": statistics.median(values),
        "unit": unit,
        "spread": f"median of {len(SEEDS)} seeds, {min(values):.2f} to {max(values):.2f}",
    }
